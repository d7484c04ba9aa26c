/*
 * callers: see callers.h.
 *
 * evhttp does not tell when it frees a connection.  So each entry has a reference to its bufferevent, which
 * keeps the descriptor from other uses.  bufferevent_free, which evhttp calls, removes the callbacks.
 */
#include <event2/buffer.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "lib/util/clock.h"

#include "server/admin/callers.h"

#define TIMEOUT_US (CALLERS_TIMEOUT * (uint64_t)1000000)

struct caller {
	struct bufferevent *ca_bev; /* one reference */
	uint64_t ca_since; /* time of accept or of the last request, us */
};

struct callers {
	struct event *cl_tick;	 /* every second, while there is a connection */
	struct event *cl_resume; /* active after a new connection */
	void (*cl_call)(void *);
	void *cl_arg;
	unsigned cl_count;
	struct caller cl_list[CALLERS];
};

/* Removes an entry.  If evhttp still has the connection, the shutdown lets evhttp close it. */
static void
callers_remove(struct callers *cl, unsigned i)
{
	struct bufferevent *bev = cl->cl_list[i].ca_bev;

	shutdown(bufferevent_getfd(bev), SHUT_RDWR);
	bufferevent_decref(bev);
	cl->cl_list[i] = cl->cl_list[--cl->cl_count];
}

/* Returns true if evhttp has freed the connection. */
static bool
callers_has_closed(const struct caller *ca)
{
	bufferevent_event_cb on_event;

	bufferevent_getcb(ca->ca_bev, NULL, NULL, &on_event, NULL);
	return on_event == NULL;
}

/* Removes closed connections, and those whose time has passed at the time `now`. */
static void
callers_sweep(struct callers *cl, uint64_t now)
{
	for (unsigned i = cl->cl_count; i-- > 0;)
		if (callers_has_closed(&cl->cl_list[i]) ||
		    cl->cl_list[i].ca_since + TIMEOUT_US < now)
			callers_remove(cl, i);
}

/* Returns true if the client still has to read a part of a response. */
static bool
callers_reads(const struct caller *ca)
{
	return evbuffer_get_length(bufferevent_get_output(ca->ca_bev)) > 0;
}

/* Removes the oldest entry, of a client that reads a response only if all do. */
static void
callers_remove_oldest(struct callers *cl)
{
	const struct caller *ca, *oldest = &cl->cl_list[0];

	for (ca = oldest + 1; ca < cl->cl_list + cl->cl_count; ca++)
		if (callers_reads(ca) != callers_reads(oldest)
			? callers_reads(oldest)
			: ca->ca_since < oldest->ca_since)
			oldest = ca;
	callers_remove(cl, (unsigned)(oldest - cl->cl_list));
}

static void
callers_on_tick(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval second = {1, 0};
	struct callers *cl = arg;

	(void)fd;
	(void)what;
	callers_sweep(cl, clock_now());
	if (cl->cl_count > 0)
		event_add(cl->cl_tick, &second);
}

static void
callers_on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct callers *cl = arg;

	(void)fd;
	(void)what;
	cl->cl_call(cl->cl_arg);
}

struct callers *
callers_create(struct event_base *base, void (*resume)(void *), void *arg)
{
	struct callers *cl = calloc(1, sizeof(*cl));

	if (cl == NULL)
		return NULL;
	cl->cl_call = resume;
	cl->cl_arg = arg;
	cl->cl_tick = event_new(base, -1, 0, callers_on_tick, cl);
	cl->cl_resume = event_new(base, -1, 0, callers_on_resume, cl);
	if (cl->cl_tick == NULL || cl->cl_resume == NULL)
		callers_destroy(&cl);
	return cl;
}

void
callers_destroy(struct callers **clp)
{
	struct callers *cl = *clp;

	if (cl == NULL)
		return;
	*clp = NULL;
	while (cl->cl_count > 0)
		callers_remove(cl, 0);
	if (cl->cl_tick != NULL)
		event_free(cl->cl_tick);
	if (cl->cl_resume != NULL)
		event_free(cl->cl_resume);
	free(cl);
}

void
callers_add(struct callers *cl, struct bufferevent *bev)
{
	static const struct timeval second = {1, 0};

	callers_sweep(cl, 0);
	if (cl->cl_count == CALLERS)
		callers_remove_oldest(cl);
	bufferevent_incref(bev);
	cl->cl_list[cl->cl_count++] = (struct caller){bev, clock_now()};
	event_add(cl->cl_tick, &second);
	event_active(cl->cl_resume, 0, 0);
}

void
callers_heard(struct callers *cl, const struct bufferevent *bev)
{
	for (unsigned i = 0; i < cl->cl_count; i++)
		if (cl->cl_list[i].ca_bev == bev)
			cl->cl_list[i].ca_since = clock_now();
}
