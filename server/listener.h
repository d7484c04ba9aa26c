/*
 * listener: listening sockets.  Each worker has one of its own for each
 * address (SO_REUSEPORT), so that the kernel spreads connections and workers
 * share nothing.
 */
#ifndef SERVER_LISTENER_H
#define SERVER_LISTENER_H

#include "conf.h"

struct worker;

/*
 * Binds a socket for each worker to each address: fds[worker * nlisten + i].
 * Port 0 becomes the same free port for all.  0, or -1 after a message that says
 * which address, why, and what to do about it.  Before the workers start.
 */
int listener_bind(const struct conf *, int *fds);

/* One more socket that listens, nobody else's.  -1 after such a message. */
int listener_open(const struct listen_addr *);

/* "http://ADDR:PORT/" of a listening socket, as a browser takes it. */
void listener_url(int fd, char *text, size_t size);

/* The following are the worker's own: take over, start, stop accepting. */
int listener_take(struct worker *, const int *fds);
int listener_start(struct worker *);
void listener_tick(struct worker *); /* a few times a second */
void listener_close(struct worker *);

#endif
