/*
 * open: opens the files that lines are written to.  They are often opened as root, in
 * directories that other users can write to.
 */
#ifndef SERVER_LOG_OPEN_H
#define SERVER_LOG_OPEN_H

/*
 * A descriptor for appending, non-blocking, or -errno; the file is made, 0640, if it is not
 * there.  If the path's last name is a symbolic link, or leads to one, that is followed
 * only if it belongs to root or to this user: -ELOOP for another, since a user with
 * write access to a directory of logs could choose a file.  Names before the last are
 * followed anyway.
 */
int log_file_open(const char *path);

/*
 * Whether it looks as if log_file_open would succeed: 0 or -errno.  Opens and makes nothing, since
 * the reader of a FIFO would see its end.
 */
int log_file_try(const char *path);

#endif
