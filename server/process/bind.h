/*
 * bind: prepares the sockets that a server process listens on.  Keeps the sockets of an earlier
 * process and creates the missing ones.  Runs before any thread starts.
 *
 * Each worker has its own socket for each address (SO_REUSEPORT), so that the kernel spreads
 * connections and workers share nothing.  If the number of workers shrinks, all sockets stay, as
 * connections wait in their backlogs.
 *
 * A new socket for an address that an earlier process serves does not listen yet, since it would
 * accept clients of that process.  The master makes the socket listen (listen_listen) when this
 * start can no longer fail.  Where the kernel refuses clients of such a socket (os_share_late
 * returns false), the workers share the existing sockets.  A Unix socket exists once: all workers
 * share it, and so do an old and a new process.
 */
#ifndef SERVER_PROCESS_BIND_H
#define SERVER_PROCESS_BIND_H

#include "server/conf/conf.h"
#include "server/process/listen_table.h"

/*
 * Moves the usable sockets from `old` to `now`, in the order of conf_listen, and adds the missing
 * ones.  The service manager's sockets replace conf_listen's default; if the operator chose
 * addresses, a socket of the service manager is used only for one of these addresses.  Port 0
 * becomes one free port for all workers, which later processes keep.  Returns 0, or -1 after a
 * message with the address, the cause and a remedy.
 */
int bind_sites(
    const struct conf *, struct listen_table *old, struct listen_table *now);

/*
 * Moves or creates the sockets of conf_admin (loopback addresses or paths, mode 0660) and
 * conf_agent.  Replaces a stale socket file, and recreates a missing one.  Changes the umask while
 * it creates a file.  Returns as bind_sites does.
 */
int bind_admin(
    const struct conf *, struct listen_table *old, struct listen_table *now);

/*
 * Writes the URL of a listening socket as a browser accepts it, such as "http://ADDR:PORT/", or
 * "unix:PATH".
 */
void bind_url(int fd, bool tls, char *text, size_t size);

#endif
