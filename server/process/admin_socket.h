/*
 * admin_socket: a Unix socket with a path, for admin.
 */
#ifndef SERVER_PROCESS_ADMIN_SOCKET_H
#define SERVER_PROCESS_ADMIN_SOCKET_H

#include "server/conf/conf.h"
#include "server/process/listen_table.h"

/*
 * Fills in sk_fd and the identity of its file.  A file that is left over is replaced.
 * 0 or -errno.  Changes the umask for a moment: one thread only.
 */
int admin_socket_open(const struct listen_addr *, struct sock *);

#endif
