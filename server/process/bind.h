/*
 * bind: the sockets that a server process listens on: those that an earlier one
 * had, and new ones for what is missing.  Before there are threads.
 *
 * Each worker has a socket of its own for each address (SO_REUSEPORT), so that the
 * kernel spreads connections and workers share nothing.  With fewer workers than
 * before all sockets stay: connections wait in their queues.
 *
 * A socket that would take connections from the process that serves does not listen
 * yet: the master has it listen (listen_listen) when this start cannot fail any more.
 * Where such a socket would have clients refused (os_share_late), workers share those there are.
 * Of a Unix socket there is one, which all workers share, as do an old process and a new one.
 */
#ifndef SERVER_PROCESS_BIND_H
#define SERVER_PROCESS_BIND_H

#include "server/conf/conf.h"
#include "server/process/listen_table.h"

/*
 * Moves what is of use from old to now, in the order of conf_listen, and adds to
 * it.  The service manager's sockets replace conf_listen's default; beside addresses
 * that were chosen it is used where it has one of them.  Port 0 is the same free port
 * for all workers, and stays what it was.  0, or -1 after a message that says which
 * address, why, and what to do about it.
 */
int bind_sites(
    const struct conf *, struct listen_table *old, struct listen_table *now);

/*
 * The same for conf_admin, loopback addresses or paths, 0660, and for conf_agent.  A
 * socket's file that is left over is replaced, one that is gone is made again.  Changes the umask for a moment.
 */
int bind_admin(
    const struct conf *, struct listen_table *old, struct listen_table *now);

/* "http://ADDR:PORT/" of a listening socket, as a browser takes it, or "unix:PATH". */
void bind_url(int fd, bool tls, char *text, size_t size);

#endif
