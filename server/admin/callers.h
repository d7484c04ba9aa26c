/*
 * callers: bounds the connections of the admin listeners, so that their descriptors are not taken from
 * clients.  At most CALLERS connections are open: a further one closes the connection whose last request
 * is the oldest.  A connection that completes no request within CALLERS_TIMEOUT closes as well, also if its
 * client sends a byte now and then.  The functions run on the admin thread.
 */
#ifndef SERVER_ADMIN_CALLERS_H
#define SERVER_ADMIN_CALLERS_H

#include <event2/bufferevent.h>
#include <event2/event.h>

#define CALLERS		64
#define CALLERS_TIMEOUT 60 /* seconds */

struct callers;

/*
 * Creates the list.  Calls `resume` after each new connection, in a loop iteration of its own: the
 * caller pauses its listeners until then, so that no more connections are accepted than closed.  Returns
 * NULL if memory is short.
 */
struct callers *callers_create(
    struct event_base *, void (*resume)(void *arg), void *arg);

/* Frees the list.  Does nothing if *callers is NULL.  Call when evhttp has freed the connections. */
void callers_destroy(struct callers **);

/* Adds a connection, of which evhttp will set the descriptor. */
void callers_add(struct callers *, struct bufferevent *);

/* Notes a request of the connection. */
void callers_heard(struct callers *, const struct bufferevent *);

#endif
