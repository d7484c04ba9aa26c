/*
 * admin: separate listeners for the operator: /metrics, and a page that draws them; and for
 * balancers: agent.h.  It has its own thread and event base, so it answers while a worker
 * stalls; by libevent's evhttp, since little depends on it.
 *
 * By a Unix socket it also takes orders: POST /drain, POST /undrain (pagewise drain).
 *
 * Only loopback addresses or Unix sockets (0660): there is no password.  A name in the
 * Host field, other than localhost, is refused (403), so that a foreign page cannot
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
	struct health *ac_health; /* NULL: neither ready nor agent is set */
	/*
	 * Balancers are to send nobody new, or again: on the admin thread, 0 or -errno.  Then
	 * hl_withdrawn is set.
	 */
	int (*ac_withdraw)(void *arg, bool yes);
	void *ac_arg;
};

/* Creates it, without a thread and without sockets.  0 or -errno. */
int admin_create(const struct admin_conf *, struct admin **);

/* Copies of listening sockets.  0 or -errno. */
int admin_listen(struct admin *, int fd);
int admin_listen_agent(struct admin *, int fd);

/* Starts the thread.  0 or -errno. */
int admin_start(struct admin *);

/* It answers from now on.  NULL is fine. */
void admin_accept(struct admin *);

/* Ends the thread.  NULL is fine. */
void admin_destroy(struct admin **);

#endif
