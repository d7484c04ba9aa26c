/*
 * unix_socket: opens and checks Unix sockets that have a path.
 */
#ifndef SERVER_PROCESS_UNIX_SOCKET_H
#define SERVER_PROCESS_UNIX_SOCKET_H

#include "server/conf/conf.h"
#include "server/process/listen_table.h"

/*
 * Binds la_text with la_mode, listens, and sets sk_fd, sk_dev and sk_ino.  Replaces a file without
 * a listener.  Returns 0 or -errno; -EADDRINUSE if another program listens there, or the file is no
 * socket.  Changes the umask while it binds, so the process must have one thread only.
 */
int unix_socket_open(const struct listen_addr *, struct sock *);

/*
 * Returns true if a socket of an earlier process can stay in use: it listens, and its file, if the
 * server created one, still exists and is the same.  Then also sets the file's mode to la_mode.
 */
bool unix_socket_keep(const struct listen_addr *, const struct sock *);

#endif
