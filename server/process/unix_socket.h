/* unix_socket: opens and checks Unix sockets with a path. */
#ifndef SERVER_PROCESS_UNIX_SOCKET_H
#define SERVER_PROCESS_UNIX_SOCKET_H

#include "server/conf/conf.h"
#include "server/process/listen_table.h"

/*
 * Binds a socket to la_text with la_mode, makes it listen, and sets sk_fd, sk_dev and sk_ino.
 * Replaces a socket file on which no program listens.  Returns 0 or -errno; -EADDRINUSE if another
 * program listens there or the file is not a socket.  Changes the umask, so the process must have
 * only one thread.
 */
int unix_socket_open(const struct listen_addr *, struct sock *);

/*
 * Returns true if a socket of an earlier process can stay in use: it listens, and its file, if any,
 * still exists with the same inode.  If so, sets the file's mode to la_mode.
 */
bool unix_socket_keep(const struct listen_addr *, const struct sock *);

#endif
