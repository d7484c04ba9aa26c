/*
 * listener: a worker's listening sockets.  Called by the worker's thread, except listener_take and
 * listener_start, which main's thread calls.
 */
#ifndef SERVER_WORKER_LISTENER_H
#define SERVER_WORKER_LISTENER_H

#include <stdbool.h>

struct client;
struct sockaddr;
struct worker;

/*
 * Counts a connection that was reserved and accepted, as limits_enter does.  Does not count addresses
 * of trusted_proxies.  Logs an address that has reached its limit.
 */
int listener_enter(
    struct worker *, const struct sockaddr *, struct client **out);

/*
 * Adds a copy of the listening socket fd.  Call before the worker starts.  With proxied, connections
 * begin with a PROXY header; with secure, a TLS handshake follows.  Returns 0 or -errno.
 */
int listener_take(struct worker *, int fd, bool proxied, bool secure);

/* Creates the events, in main's thread.  The worker accepts only after listener_accept. */
void listener_start(struct worker *);
void listener_accept(struct worker *);

/* Resumes after a pause, ends a drain in time, logs suppressed messages.  Call a few times a second. */
void listener_tick(struct worker *);

/* Accepts into the slot of COMMAND_PLACE, or passes an unused slot to the next worker. */
void listener_room(struct worker *);

/*
 * Accepts until the backlog is empty, at most until wk_drain_until, then closes the sockets and calls
 * worker_quiet for each.  Other processes that share these sockets keep theirs open.
 */
void listener_drain(struct worker *);

/*
 * Closes the sockets at once.  Connections in the backlog are lost, unless another process has the
 * same socket.
 */
void listener_close(struct worker *);

#endif
