/*
 * admin: a listener of its own, for whoever runs the server: /metrics, and a page
 * that draws them.  On a thread and an event base of its own, so that it answers
 * while a worker stands still; by libevent's evhttp, since little depends on it.
 *
 * Only a loopback address or a Unix socket (0660): nobody is asked for a password.
 * A name in the Host field, other than localhost, is refused (403), so that no page
 * from elsewhere can read it by having its name lead to this machine.
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
