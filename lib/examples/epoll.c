/*
 * epoll: a server for one directory, in a loop of epoll(7).  Usage: epoll
 * DIRECTORY PORT.  One thread serves all clients, and never waits for a disk.
 */
#include <sys/epoll.h>

#include <stdlib.h>
#include <unistd.h>

#include "client.h"

static int ep;

/*
 * Adds or renews the events of a descriptor.  With EPOLLET, epoll reports each
 * change once, and reports the current state when the events are renewed.
 */
static void
watch(int op, int fd, uint32_t events, void *whose)
{
	struct epoll_event ev = {.events = events, .data.ptr = whose};

	if (epoll_ctl(ep, op, fd, &ev) != 0)
		abort();
}

static void
watch_client(int op, struct client *c)
{
	watch(op, c->cl_sock, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, c);
}

/*
 * All events of a client are watched already.  For CLIENT_AGAIN, makes epoll
 * report these events again, after the events of other clients.
 */
void
loop_watch(struct client *c, enum client_wants wants)
{
	if (wants == CLIENT_AGAIN)
		watch_client(EPOLL_CTL_MOD, c);
}

void
loop_close(struct client *c)
{
	close(c->cl_sock);
	free(c);
}

static void
on_event(const struct epoll_event *ev)
{
	struct client *c = ev->data.ptr;

	if ((ev->events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0)
		client_leave(c);
	else
		client_run(c);
}

static void
on_listener(int listener)
{
	struct client *c;

	while ((c = client_accept(listener)) != NULL)
		watch_client(EPOLL_CTL_ADD, c);
}

int
main(int argc, char **argv)
{
	int i, n, listener = clients_start(argc, argv);
	struct epoll_event evs[64];
	bool woken;

	ep = epoll_create1(EPOLL_CLOEXEC);
	watch(EPOLL_CTL_ADD, listener, EPOLLIN, &ep);
	watch(EPOLL_CTL_ADD, pw_loop_fd(clients_loop), EPOLLIN, clients_loop);
	for (;;) {
		n = epoll_wait(ep, evs, 64, CLIENTS_TICK);
		woken = false;
		for (i = 0; i < n; i++)
			if (evs[i].data.ptr == &ep)
				on_listener(listener);
			else if (evs[i].data.ptr == clients_loop)
				woken = true;
			else
				on_event(&evs[i]);
		/*
		 * Drains last, since pw_loop_drain may free clients that have
		 * events in evs.
		 */
		if (woken)
			pw_loop_drain(clients_loop);
		clients_tick();
	}
}
