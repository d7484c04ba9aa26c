/*
 * listener: a worker's listening sockets.  The worker's thread calls all functions except
 * listener_take and listener_start, which main's thread calls.  Main's thread also calls
 * listener_close when the worker's thread has ended.
 */
#ifndef SERVER_WORKER_LISTENER_H
#define SERVER_WORKER_LISTENER_H

#include <stdbool.h>

struct client;
struct sockaddr;
struct worker;

/*
 * Counts an accepted connection as limits_enter does, unless its address is in trusted_proxies.
 * Logs an address that has reached its limit.
 */
int listener_enter(
    struct worker *, const struct sockaddr *, struct client **out);

/*
 * Adds a copy of the listening socket fd.  Call before the worker starts.  If `proxied` is true,
 * connections begin with a PROXY header; if `secure` is true, a TLS handshake follows.  Returns 0
 * or -errno.
 */
int listener_take(struct worker *, int fd, bool proxied, bool secure);

/*
 * listener_start creates the events, in main's thread.  The worker accepts only after
 * listener_accept.
 */
void listener_start(struct worker *);
void listener_accept(struct worker *);

/*
 * Resumes after a pause, closes the sockets at the end of a drain, and logs the number of
 * suppressed messages.  Call four times a second.
 */
void listener_tick(struct worker *);

/* Accepts into the slot of COMMAND_PLACE, or passes an unused slot to the next worker. */
void listener_room(struct worker *);

/*
 * Closes each socket whose backlog is empty.  Accepts from the other sockets until their backlog
 * is empty or wk_drain_until has passed, and then closes these sockets.  Calls worker_quiet when
 * it has closed a socket.  The sockets stay open in other processes that share them.
 */
void listener_drain(struct worker *);

/*
 * Closes the sockets at once.  Connections in the backlog are lost, unless another process has the
 * same socket.
 */
void listener_close(struct worker *);

#endif
