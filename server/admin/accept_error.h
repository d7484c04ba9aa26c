/*
 * accept_error: a libevent listener that cannot accept, for want of descriptors, pauses for a
 * second: it would be called again at once, and complain.
 */
#ifndef SERVER_ADMIN_ACCEPT_ERROR_H
#define SERVER_ADMIN_ACCEPT_ERROR_H

#include <event2/listener.h>

/* Callback for evconnlistener_set_error_cb.  Ignores its argument. */
void accept_error(struct evconnlistener *, void *);

#endif
