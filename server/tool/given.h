/*
 * given: opens a directory that was given on the command line.
 */
#ifndef SERVER_TOOL_GIVEN_H
#define SERVER_TOOL_GIVEN_H

/*
 * Follows links where only root and the caller decide what they are: in directories of these
 * in which not everybody may write, nor, if root calls, a group other than root's.  Returns a
 * descriptor for reading, or -errno; -EPERM if the path leads over another link.  Nobody can put
 * one there between a check and the open.
 */
int given_open(const char *path);

#endif
