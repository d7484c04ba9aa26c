/*
 * admin: a listener of its own, for whoever runs the server: /metrics, and a page
 * that draws them.  On a thread and an event base of its own, so that it answers
 * while a worker stands still; by libevent's evhttp, since little depends on it.
 *
 * Only a loopback address or a Unix socket (0660): nobody is asked for a password.
 * A name in the Host field, other than localhost, is refused (403), so that no page
 * from elsewhere can read it by having its name lead to this machine.
 */
#ifndef SERVER_ADMIN_H
#define SERVER_ADMIN_H

#include <stddef.h>

#include "metrics.h"

struct admin;

/*
 * Binds the socket: before any thread is started.  A socket's file that is left over
 * is replaced.  *out is NULL if conf_admin is off.  0, or -1 after a message.
 */
int admin_create(const struct conf *, struct admin **out);

/* Answers from now on.  0 or -errno. */
int admin_start(struct admin *, const struct metrics *);

/* Where it can be reached: "http://ADDR:PORT/" or "unix:PATH". */
void admin_url(const struct admin *, char *text, size_t size);

/* Ends the thread and removes the socket's file.  NULL is fine. */
void admin_destroy(struct admin **);

#endif
