/*
 * unix_socket: a Unix socket with a path, for the sites or for admin.
 */
#ifndef SERVER_PROCESS_UNIX_SOCKET_H
#define SERVER_PROCESS_UNIX_SOCKET_H

#include "server/conf/conf.h"
#include "server/process/listen_table.h"

/*
 * Binds la_text with la_mode, listens, and fills in sk_fd and the identity of the file.  A
 * file that nobody listens on is replaced.  0 or -errno; -EADDRINUSE: another program
 * listens there, or the file is no socket.  Changes the umask for a moment: one thread only.
 */
int unix_socket_open(const struct listen_addr *, struct sock *);

/*
 * One of an earlier process.  True: its file is there and its own, or it has none that is
 * ours; then it has la_mode.
 */
bool unix_socket_keep(const struct listen_addr *, const struct sock *);

#endif
