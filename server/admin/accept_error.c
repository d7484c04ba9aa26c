/*
 * accept_error: see accept_error.h.
 */
#include <event2/event.h>

#include "server/admin/accept_error.h"

static void
accept_error_on_resume(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	evconnlistener_enable(arg);
}

void
accept_error(struct evconnlistener *listener, void *arg)
{
	static const struct timeval second = {1, 0};

	(void)arg;
	if (event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT,
		accept_error_on_resume, listener, &second) == 0)
		evconnlistener_disable(listener);
}
