/*
 * bind: prepares the sockets that a server process listens on.  Keeps the sockets of an earlier
 * process, and creates the missing sockets.  Runs before any thread starts.
 *
 * Each worker has its own socket for each address (SO_REUSEPORT), so that the kernel spreads
 * connections over the workers and the workers share nothing.  If a reload reduces the number of
 * workers, all sockets stay, because connections may wait in their backlogs.
 *
 * If an earlier process serves an address, a new socket for this address does not listen at first:
 * it would accept clients of the earlier process.  The master makes the socket listen
 * (listen_listen) when the start can no longer fail.  If the kernel refuses clients of such a
 * socket (os_share_late returns false), the workers share the existing sockets instead.  A Unix
 * socket exists only once: all workers share it, and so do an old and a new process.
 */
#ifndef SERVER_PROCESS_BIND_H
#define SERVER_PROCESS_BIND_H

#include "server/conf/conf.h"
#include "server/process/listen_table.h"

/*
 * Moves the usable sockets from `old` to `now`, in the order of conf_listen, and creates the
 * missing sockets.  The service manager's sockets replace the default of conf_listen; if the
 * operator chose addresses, only sockets for these addresses are used.  For port 0, all workers use
 * one free port, and later processes keep it.  Returns 0, or -1 after a message with the address,
 * the cause and a remedy.
 */
int bind_sites(
    const struct conf *, struct listen_table *old, struct listen_table *now);

/*
 * Moves or creates the sockets of conf_admin (loopback addresses or paths, mode 0660) and of
 * conf_agent.  Replaces a stale socket file, and recreates a missing file.  Changes the umask while
 * it creates a file.  Returns as bind_sites does.
 */
int bind_admin(
    const struct conf *, struct listen_table *old, struct listen_table *now);

/*
 * Writes the URL of a listening socket for a browser, such as "http://ADDR:PORT/", with "localhost"
 * for a wildcard address.  For a Unix socket, writes "unix:PATH".
 */
void bind_url(int fd, bool tls, char *text, size_t size);

#endif
