/*
 * libuv: the server of epoll.c in a loop of libuv.  Usage: libuv DIRECTORY
 * PORT.  The library's descriptor and the sockets are ordinary handles
 * (uv_poll_t); the server uses no thread of libuv's pool.
 */
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "client.h"

static void
on_client(uv_poll_t *poll, int status, int events)
{
	struct client *c = poll->data;

	if (status >= 0 && (events & UV_DISCONNECT) == 0) {
		client_run(c);
		return;
	}
	/* libuv would report this in each iteration until a pending transmission ends. */
	uv_poll_stop(poll);
	client_leave(c);
}

/*
 * Sets the events to poll for.  libuv reports a ready socket in each iteration,
 * so other clients run before CLIENT_AGAIN is reported.
 */
void
loop_watch(struct client *c, enum client_wants wants)
{
	int events = UV_DISCONNECT;

	if (wants == CLIENT_WANTS_READ)
		events |= UV_READABLE;
	else if (wants != CLIENT_WAITS)
		events |= UV_WRITABLE;
	if (events == c->cl_watches)
		return;
	c->cl_watches = events;
	uv_poll_start(c->cl_own, events, on_client);
}

static void
on_closed(uv_handle_t *handle)
{
	struct client *c = handle->data;

	close(c->cl_sock);
	free(c);
	free(handle);
}

void
loop_close(struct client *c)
{
	uv_close(c->cl_own, on_closed);
}

static void
on_listener(uv_poll_t *poll, int status, int events)
{
	int *listener = poll->data;
	struct client *c;

	(void)status, (void)events;
	while ((c = client_accept(*listener)) != NULL) {
		uv_poll_t *own = malloc(sizeof(*own));

		if (own == NULL ||
		    uv_poll_init(poll->loop, own, c->cl_sock) != 0)
			abort();
		own->data = c;
		c->cl_own = own;
		client_run(c);
	}
}

static void
on_loop(uv_poll_t *poll, int status, int events)
{
	(void)poll, (void)status, (void)events;
	pw_loop_drain(clients_loop);
}

static void
on_tick(uv_timer_t *timer)
{
	(void)timer;
	clients_tick();
}

int
main(int argc, char **argv)
{
	int listener = clients_start(argc, argv);
	uv_loop_t *uv = uv_default_loop();
	uv_poll_t accepts = {.data = &listener}, completions;
	uv_timer_t timer;

	uv_poll_init(uv, &accepts, listener);
	uv_poll_start(&accepts, UV_READABLE, on_listener);
	uv_poll_init(uv, &completions, pw_loop_fd(clients_loop));
	uv_poll_start(&completions, UV_READABLE, on_loop);
	uv_timer_init(uv, &timer);
	uv_timer_start(&timer, on_tick, CLIENTS_TICK, CLIENTS_TICK);
	return uv_run(uv, UV_RUN_DEFAULT);
}
