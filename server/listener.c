/*
 * listener: see listener.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"
#include "listener.h"
#include "log.h"
#include "worker.h"

#define ACCEPTS_PER_TURN 16

static const char cure_reclaim[] =
    "closing idle ones; raise ulimit -n, or lower open_files";
static const char cure_pause[] = "pausing; raise ulimit -n";

int
listener_take(struct worker *wk, int fd)
{
	struct listening *ls = calloc(1, sizeof(*ls));

	if (ls == NULL)
		return -ENOMEM;
	ls->ls_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (ls->ls_fd == -1) {
		free(ls);
		return -errno;
	}
	ls->ls_worker = wk;
	SLIST_INSERT_HEAD(&wk->wk_listening, ls, ls_next);
	return 0;
}

static void
tell(struct worker *wk, struct limit *lim, int error, const char *cure)
{
	if (limit_tell(lim, worker_now()))
		log_warn(wk->wk_log, "cannot accept connections: %s; %s",
		    strerror(error), cure);
}

static void
tell_left_out(struct worker *wk, struct limit *lim, const char *cure)
{
	uint64_t n = limit_left_out(lim, worker_now());

	if (n > 0)
		log_warn(wk->wk_log,
		    "cannot accept connections: %llu times more since the "
		    "last message; %s",
		    (unsigned long long)n, cure);
}

/* The tick resumes, when some descriptors may have been closed. */
static void
pause_accepting(struct worker *wk)
{
	struct listening *ls;

	wk->wk_paused = true;
	SLIST_FOREACH(ls, &wk->wk_listening, ls_next)
	event_del(&ls->ls_event);
}

/* Linux looks for a descriptor first, and then whether anybody waits. */
static bool
client_waits(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

/* What to do about a failed accept.  True: try again. */
static bool
overcome(struct worker *wk, int fd, int error)
{
	switch (error) {
	case EMFILE:
	case ENFILE:
		if (!client_waits(fd))
			return false;
		if (worker_reclaim(wk)) {
			tell(wk, &wk->wk_told_reclaim, error, cure_reclaim);
			return true;
		}
		break;
	case ENOMEM:
	case ENOBUFS:
		break;
	default:
		return false;
	}
	stat_add(&wk->wk_stats.sta_accept_failed, 1);
	tell(wk, &wk->wk_told_pause, error, cure_pause);
	pause_accepting(wk);
	return false;
}

static void
close_one(struct listening *ls)
{
	SLIST_REMOVE(&ls->ls_worker->wk_listening, ls, listening, ls_next);
	if (event_initialized(&ls->ls_event))
		event_del(&ls->ls_event);
	close(ls->ls_fd);
	free(ls);
}

/* Whoever comes from now on is for the others that have the socket, or for nobody. */
static void
close_empty(struct listening *ls)
{
	struct worker *wk = ls->ls_worker;

	if (client_waits(ls->ls_fd))
		return;
	close_one(ls);
	worker_quiet(wk);
}

/* Level-triggered: what is over the cap comes again in the next turn. */
static void
on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct listening *ls = arg;
	struct worker *wk = ls->ls_worker;
	struct sockaddr_storage addr;
	socklen_t len;
	int n, sock;

	(void)what;
	worker_lap(wk, LAP_ACCEPT);
	for (n = 0; n < ACCEPTS_PER_TURN; n++) {
		len = sizeof(addr);
		sock = accept4(fd, (struct sockaddr *)&addr, &len,
		    SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (sock != -1)
			conn_create(wk, sock, (struct sockaddr *)&addr, len);
		else if (!overcome(wk, fd, errno))
			break;
	}
	if (wk->wk_draining && !wk->wk_paused)
		close_empty(ls);
}

int
listener_start(struct worker *wk)
{
	struct listening *ls;

	SLIST_FOREACH(ls, &wk->wk_listening, ls_next)
	{
		event_assign(&ls->ls_event, wk->wk_base, ls->ls_fd,
		    EV_READ | EV_PERSIST, on_accept, ls);
		if (event_add(&ls->ls_event, NULL) != 0)
			return -ENOMEM;
	}
	return 0;
}

static void
resume(struct worker *wk)
{
	struct listening *ls;

	wk->wk_paused = false;
	SLIST_FOREACH(ls, &wk->wk_listening, ls_next)
	event_add(&ls->ls_event, NULL);
}

void
listener_drain(struct worker *wk)
{
	struct listening *ls, *next;

	for (ls = SLIST_FIRST(&wk->wk_listening); ls != NULL; ls = next) {
		next = SLIST_NEXT(ls, ls_next);
		close_empty(ls);
	}
}

void
listener_tick(struct worker *wk)
{
	if (wk->wk_paused)
		resume(wk);
	if (wk->wk_draining && worker_now() >= wk->wk_drain_until)
		listener_close(wk);
	tell_left_out(wk, &wk->wk_told_pause, cure_pause);
	tell_left_out(wk, &wk->wk_told_reclaim, cure_reclaim);
}

void
listener_close(struct worker *wk)
{
	if (SLIST_EMPTY(&wk->wk_listening))
		return;
	while (!SLIST_EMPTY(&wk->wk_listening))
		close_one(SLIST_FIRST(&wk->wk_listening));
	worker_quiet(wk);
}
