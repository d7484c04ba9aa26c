/*
 * open: opens log files.  The server often opens log files as root, in directories that other users
 * can write to.
 */
#ifndef SERVER_LOG_OPEN_H
#define SERVER_LOG_OPEN_H

/*
 * Opens a file for appending, non-blocking; creates it with mode 0640.  Returns a descriptor or
 * -errno.  If the last name of the path is a symbolic link, follows that link, and any further
 * link, only if the link belongs to root or to this user.  Otherwise returns -ELOOP, since a user
 * with write access to a log directory could choose the file.  Always follows links in the names
 * before the last.
 */
int log_file_open(const char *path);

/*
 * Returns 0 if log_file_open would probably succeed, or -errno.  Opens and creates nothing, because
 * the reader of a FIFO would see an end of file after the close.
 */
int log_file_try(const char *path);

#endif
