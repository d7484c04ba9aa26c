/*
 * given: opens a directory that was given on the command line.
 */
#ifndef SERVER_TOOL_GIVEN_H
#define SERVER_TOOL_GIVEN_H

/*
 * Opens a directory for reading.  Follows a symbolic link only if its directory belongs to root or
 * the caller and is not writable for others nor, if root calls, for a group other than root's; so no
 * other user can place a link between a check and the open.  Returns a descriptor, or -errno: -EPERM
 * if the path leads over any other link.
 */
int given_open(const char *path);

#endif
