/*
 * accept_error: pauses a libevent listener for a second when accept fails, for example because
 * descriptors ran out.  Otherwise accept would fail again at once.
 */
#ifndef SERVER_ADMIN_ACCEPT_ERROR_H
#define SERVER_ADMIN_ACCEPT_ERROR_H

#include <event2/listener.h>

/* Callback for evconnlistener_set_error_cb.  Ignores its argument. */
void accept_error(struct evconnlistener *, void *);

#endif
