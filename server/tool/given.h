/*
 * given: opens a directory that was given on the command line.
 */
#ifndef SERVER_TOOL_GIVEN_H
#define SERVER_TOOL_GIVEN_H

/*
 * Opens a directory for reading.  Follows symbolic links only where root and the caller alone
 * control them: in directories that one of these owns and that are not writable for others, nor, if
 * root calls, for a group other than root's.  Returns a descriptor, or -errno: -EPERM if the path
 * leads over another link.  No other user can create one between a check and the open.
 */
int given_open(const char *path);

#endif
