/*
 * admin: a separate listener for the operator: /metrics, and a page that draws them.  It
 * has its own thread and event base, so it answers while a worker stalls; by libevent's
 * evhttp, since little depends on it.
 *
 * Only a loopback address or a Unix socket (0660): there is no password.  A name in the
 * Host field, other than localhost, is refused (403), so that a foreign page cannot
 * read it through a DNS name of this machine.
 */
#ifndef SERVER_ADMIN_ADMIN_H
#define SERVER_ADMIN_ADMIN_H

#include <stdbool.h>

#include "server/admin/metrics.h"

struct admin;

/*
 * Starts the thread, with a copy of a listening socket.  is_path: it is a Unix one.  0 or
 * -errno.
 */
int admin_start(
    int fd, bool is_path, const struct metrics *, struct admin **out);

/* It answers from now on.  NULL is fine. */
void admin_accept(struct admin *);

/* Ends the thread.  NULL is fine. */
void admin_destroy(struct admin **);

#endif
