/*
 * kqueue: the server of epoll.c in a loop of kqueue(2).  Usage: kqueue
 * DIRECTORY PORT.
 */
#include <sys/types.h>

#include <sys/event.h>
#include <sys/time.h>

#include <stdlib.h>
#include <unistd.h>

#include "client.h"

static int kq;

/*
 * Adds or renews an event.  With EV_CLEAR, kqueue reports each change once, and
 * reports the current state when the event is renewed.
 */
static void
watch(int fd, short filter, unsigned short flags, void *whose)
{
	struct kevent ev;

	EV_SET(&ev, fd, filter, EV_ADD | flags, 0, 0, whose);
	if (kevent(kq, &ev, 1, NULL, 0, NULL) != 0)
		abort();
}

/*
 * All events of a client are watched already.  For CLIENT_AGAIN, makes kqueue
 * report again that the socket is writable, after the events of other clients.
 */
void
loop_watch(struct client *c, enum client_wants wants)
{
	if (wants == CLIENT_AGAIN)
		watch(c->cl_sock, EVFILT_WRITE, EV_CLEAR, c);
}

/* Clients that have left.  free_left frees them when no event in the list refers to them any more. */
static struct client *left;

void
loop_close(struct client *c)
{
	close(c->cl_sock);
	c->cl_closed = true;
	c->cl_own = left;
	left = c;
}

static void
free_left(void)
{
	struct client *c;

	while ((c = left) != NULL) {
		left = c->cl_own;
		free(c);
	}
}

static void
on_event(const struct kevent *ev)
{
	struct client *c = ev->udata;

	if (c->cl_closed)
		return;
	if ((ev->flags & (EV_EOF | EV_ERROR)) != 0)
		client_leave(c);
	else
		client_run(c);
}

static void
on_listener(int listener)
{
	struct client *c;

	while ((c = client_accept(listener)) != NULL) {
		watch(c->cl_sock, EVFILT_READ, EV_CLEAR, c);
		watch(c->cl_sock, EVFILT_WRITE, EV_CLEAR, c);
	}
}

int
main(int argc, char **argv)
{
	struct timespec tick = {.tv_nsec = CLIENTS_TICK * 1000000};
	int i, n, listener = clients_start(argc, argv);
	struct kevent evs[64];

	kq = kqueue();
	watch(listener, EVFILT_READ, 0, &kq);
	watch(pw_loop_fd(clients_loop), EVFILT_READ, 0, clients_loop);
	for (;;) {
		n = kevent(kq, NULL, 0, evs, 64, &tick);
		for (i = 0; i < n; i++)
			if (evs[i].udata == &kq)
				on_listener(listener);
			else if (evs[i].udata == clients_loop)
				pw_loop_drain(clients_loop);
			else
				on_event(&evs[i]);
		free_left();
		clients_tick();
	}
}
