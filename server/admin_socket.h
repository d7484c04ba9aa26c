/*
 * admin_socket: a Unix socket with a path, for admin.
 */
#ifndef SERVER_ADMIN_SOCKET_H
#define SERVER_ADMIN_SOCKET_H

#include "conf.h"
#include "sockets.h"

/*
 * Fills in sk_fd and whose its file is.  A file that is left over is replaced.  0 or
 * -errno.  Changes the umask for a moment: one thread only.
 */
int admin_socket_open(const struct listen_addr *, struct sock *);

#endif
