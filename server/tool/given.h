/*
 * given: opens a directory that was given on the command line.
 */
#ifndef SERVER_TOOL_GIVEN_H
#define SERVER_TOOL_GIVEN_H

/*
 * Opens a directory for reading.  Follows a symbolic link only if no other user can place one
 * there: the directory of the link must belong to root or the caller, and other users must not have
 * write permission there.  If the caller is root, the directory's group must not have write
 * permission either, unless the group is root's.  Returns a descriptor, or -errno; -EPERM means
 * that the path contains a link that these rules forbid.
 */
int given_open(const char *path);

#endif
