/*
 * admin: separate listeners for the operator (/metrics, and a page that draws the metrics) and for
 * balancers (agent.h).  It has its own thread and event base, so it responds while a worker stalls.
 * It uses libevent's evhttp, since its performance matters little.
 *
 * On a Unix socket it also accepts POST /drain and POST /undrain (pagewise drain).
 *
 * It listens only on loopback addresses or Unix sockets (0660), as there is no password.  It
 * refuses a name other than localhost in the Host field with 403, so that a foreign page cannot
 * read it through a DNS name of this machine.
 */
#ifndef SERVER_ADMIN_ADMIN_H
#define SERVER_ADMIN_ADMIN_H

#include <stdbool.h>

#include "server/admin/metrics.h"

struct admin;
struct health;

struct admin_conf {
	struct metrics ac_metrics;
	struct health *ac_health; /* NULL if live, ready and agent are off */
	/*
	 * Tells balancers to send no new clients, or to send them again, and sets hl_withdrawn.
	 * Runs on the admin thread.  Returns 0 or -errno.
	 */
	int (*ac_withdraw)(void *arg, bool yes);
	void *ac_arg;
};

/* Creates an admin without thread and sockets.  Returns 0 or -errno. */
int admin_create(const struct admin_conf *, struct admin **);

/* Add a copy of a listening socket.  Return 0 or -errno. */
int admin_listen(struct admin *, int fd);
int admin_listen_agent(struct admin *, int fd);

/* Starts the thread.  Returns 0 or -errno. */
int admin_start(struct admin *);

/* Starts to accept connections.  Accepts NULL. */
void admin_accept(struct admin *);

/* Stops the thread and frees all.  Accepts NULL. */
void admin_destroy(struct admin **);

#endif
