/*
 * listener: a worker's listening sockets.  Its thread, but for the first two.
 */
#ifndef SERVER_WORKER_LISTENER_H
#define SERVER_WORKER_LISTENER_H

#include <stdbool.h>

struct client;
struct sockaddr;
struct worker;

/*
 * A connection that was reserved and accepted: limits_enter, but for the addresses of
 * trusted_proxies, which are not counted.  Tells of an address that has too many.
 */
int listener_enter(
    struct worker *, const struct sockaddr *, struct client **out);

/*
 * One more, a copy of fd; before the worker starts.  proxied: its connections begin with a
 * PROXY header; secure: and then with a handshake of TLS.  0 or -errno.
 */
int listener_take(struct worker *, int fd, bool proxied, bool secure);

/* Makes its events, in main's thread; it accepts after listener_accept. */
void listener_start(struct worker *);
void listener_accept(struct worker *);
void listener_tick(struct worker *); /* a few times a second */
void listener_room(struct worker *); /* COMMAND_PLACE has come */

/*
 * Accepts until the backlog is empty, for wk_drain_until at most, and closes;
 * worker_quiet after each.  Others may have the same sockets: theirs go on.
 */
void listener_drain(struct worker *);

/*
 * At once.  Connections in the backlog are lost, unless another process has that socket.
 */
void listener_close(struct worker *);

#endif
