/*
 * admin: separate listeners for the operator (/metrics, and a page that draws the metrics) and for
 * balancers (agent.h).  The admin has its own thread and event base, so it responds while a worker
 * stalls.  The admin uses libevent's evhttp, since few requests arrive.
 *
 * On a Unix socket the admin also accepts POST /drain and POST /undrain (pagewise drain).
 *
 * The admin has no password.  So the configuration allows only loopback addresses and Unix sockets
 * (0660) for the admin, and the admin refuses a name other than localhost in the Host field with
 * 403.  Otherwise a page of another site could read the metrics through a DNS name of this machine.
 */
#ifndef SERVER_ADMIN_ADMIN_H
#define SERVER_ADMIN_ADMIN_H

#include <stdbool.h>

#include "server/admin/metrics.h"

struct admin;
struct health;

struct admin_conf {
	struct metrics ac_metrics;
	struct health *ac_health; /* NULL if ready and agent are off */
	/*
	 * Makes health checks fail if `yes` is true, so that balancers send no new clients, and
	 * succeed again if `yes` is false.  Runs on the admin thread.  Returns 0 or -errno.
	 */
	int (*ac_withdraw)(void *arg, bool yes);
	void *ac_arg;
};

/* Creates an admin without thread and sockets.  Returns 0 or -errno. */
int admin_create(const struct admin_conf *, struct admin **);

/*
 * admin_listen adds a copy of a listening socket for the operator, and admin_listen_agent
 * adds a copy of a listening socket for agent-check.  Both return 0 or -errno.
 */
int admin_listen(struct admin *, int fd);
int admin_listen_agent(struct admin *, int fd);

/* Starts the thread.  Returns 0 or -errno. */
int admin_start(struct admin *);

/* Makes the thread accept connections.  Does nothing if the admin is NULL. */
void admin_accept(struct admin *);

/* Stops the thread and frees the admin.  Does nothing if *admin is NULL. */
void admin_destroy(struct admin **);

#endif
