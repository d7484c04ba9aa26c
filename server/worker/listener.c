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

#include "lib/util/clock.h"
#include "server/worker/evict.h"
#include "server/log/log.h"
#include "server/worker/listener.h"
#include "server/worker/worker.h"

#define ACCEPTS_PER_CALL 16

int
listener_take(struct worker *wk, int fd, bool proxied, bool secure)
{
	struct listening *ls = calloc(1, sizeof(*ls));

	if (ls == NULL)
		return -ENOMEM;
	ls->ls_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (ls->ls_fd == -1) {
		free(ls);
		return -errno;
	}
	ls->ls_proxied = proxied;
	ls->ls_secure = secure;
	ls->ls_worker = wk;
	SLIST_INSERT_HEAD(&wk->wk_listening, ls, ls_next);
	return 0;
}

static void
listener_tell_full(struct worker *wk)
{
	if (message_rate_tell(wk->wk_service.svc_told, TOLD_FULL, clock_now()))
		log_warn(wk->wk_service.svc_log,
		    "cannot accept connections: max_connections reached (%u); "
		    "raise it, if there is memory for more",
		    wk->wk_service.svc_conf->conf_max_connections);
}

static void
listener_tell_address(struct worker *wk, const struct sockaddr *addr)
{
	char text[INET6_ADDRSTRLEN];

	if (!message_rate_tell_of(
		wk->wk_service.svc_told, TOLD_ADDRESS, clock_now(), addr, text))
		return;
	log_warn(wk->wk_service.svc_log,
	    "refused a connection from %s: max_connections_per_address reached "
	    "(%u); raise it, if many clients share that address",
	    text, wk->wk_service.svc_conf->conf_max_per_address);
}

static const char *
listener_cure(int error)
{
	switch (error) {
	case EMFILE:
		return "; raise ulimit -n, or lower open_files";
	case ENFILE:
		return "; raise the sysctl fs.file-max";
	default:
		return "";
	}
}

static void
listener_tell(
    struct worker *wk, enum message_rate_kind kind, int error, const char *what)
{
	if (message_rate_tell(wk->wk_service.svc_told, kind, clock_now()))
		log_warn(wk->wk_service.svc_log,
		    "cannot accept connections: %s: %s%s", strerror(error),
		    what, listener_cure(error));
}

/* Stops accepting.  listener_tick resumes, as descriptors may have been closed by then. */
static void
listener_pause_accepting(struct worker *wk)
{
	struct listening *ls;

	wk->wk_paused = true;
	SLIST_FOREACH(ls, &wk->wk_listening, ls_next)
	event_del(&ls->ls_event);
}

/*
 * Returns true if a client waits.  accept4(2) on Linux may fail although no client waits, since it
 * allocates first.
 */
static bool
listener_client_waits(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

/* Returns true if the limit on descriptors is lower than max_connections needs. */
static bool
listener_lacks_descriptors(const struct worker *wk)
{
	return limits_most(wk->wk_clients) !=
	       wk->wk_service.svc_conf->conf_max_connections;
}

static void
listener_stop_for(struct worker *wk, int error)
{
	counter_add(&wk->wk_service.svc_stats.sta_accept_failed, 1);
	listener_tell(wk, TOLD_PAUSE, error, "pausing");
	listener_pause_accepting(wk);
}

static void
listener_wait_for_slot(struct worker *wk)
{
	if (listener_lacks_descriptors(wk)) {
		listener_stop_for(wk, EMFILE);
		return;
	}
	counter_add(&wk->wk_service.svc_stats.sta_capped[CAP_TOTAL], 1);
	listener_tell_full(wk);
	listener_pause_accepting(wk);
}

/*
 * Frees a slot for a waiting client when all slots are in use.  Returns true if the caller should
 * try again.
 */
static bool
listener_make_room(struct worker *wk)
{
	enum evicted evicted = evict_connection(wk);

	if (evicted == EVICTED_ONE) {
		if (listener_lacks_descriptors(wk))
			listener_tell(wk, TOLD_RECLAIM, EMFILE,
			    "closing idle connections");
		return true;
	}
	if (!limits_wait(wk->wk_clients, wk->wk_id))
		return true;
	if (evicted == EVICTED_LATER)
		listener_pause_accepting(wk);
	else
		listener_wait_for_slot(wk);
	return false;
}

/* Frees a descriptor for a waiting client.  Returns true if the caller should try again. */
static bool
listener_make_descriptor(struct worker *wk, int error)
{
	switch (evict_descriptor(wk)) {
	case EVICTED_ONE:
		listener_tell(
		    wk, TOLD_RECLAIM, error, "closing idle connections");
		return true;
	case EVICTED_LATER:
		listener_pause_accepting(wk);
		break;
	case EVICTED_NONE:
		listener_stop_for(wk, error);
		break;
	}
	return false;
}

/* Handles a failed accept.  Returns true if the caller should try again. */
static bool
listener_recover(struct worker *wk, int fd, int error)
{
	switch (error) {
	case EUSERS:
		return listener_client_waits(fd) && listener_make_room(wk);
	case EMFILE:
	case ENFILE:
		return listener_client_waits(fd) &&
		       listener_make_descriptor(wk, error);
	case ENOMEM:
	case ENOBUFS:
		listener_stop_for(wk, error);
		return false;
	default:
		return false;
	}
}

static void
listener_close_one(struct listening *ls)
{
	if (event_initialized(&ls->ls_event))
		event_del(&ls->ls_event);
	close(ls->ls_fd);
	free(ls);
}

/*
 * Closes a listening socket with an empty backlog.  New clients are accepted by the other processes
 * that share the socket, if any.
 */
static void
listener_close_empty(struct listening *ls)
{
	struct worker *wk = ls->ls_worker;

	if (listener_client_waits(ls->ls_fd))
		return;
	SLIST_REMOVE(&wk->wk_listening, ls, listening, ls_next);
	listener_close_one(ls);
	worker_quiet(wk);
}

/* Accepts as accept4 does.  Fails with EUSERS if max_connections is reached. */
static int
listener_accept_one(struct worker *wk, int fd, struct sockaddr_storage *addr)
{
	socklen_t len = sizeof(*addr);
	int sock;

	/* A client of a Unix socket may have no address. */
	addr->ss_family = AF_UNSPEC;
	if (!limits_reserve(wk->wk_clients, wk->wk_id)) {
		errno = EUSERS;
		return -1;
	}
	sock = accept4(
	    fd, (struct sockaddr *)addr, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (sock == -1)
		limits_release(wk->wk_clients);
	return sock;
}

/*
 * Resets the connection, so that the kernel keeps no state of it.  Sends no response, since that
 * would require reading the request first, which costs too much.
 */
static void
listener_refuse(struct worker *wk, int sock)
{
	static const struct linger at_once = {.l_onoff = 1};

	setsockopt(sock, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(sock);
	limits_release(wk->wk_clients);
}

int
listener_enter(
    struct worker *wk, const struct sockaddr *sa, struct client **out)
{
	int error;

	*out = NULL;
	if (conf_trusts(wk->wk_service.svc_conf, sa))
		return 0;
	error = limits_enter(wk->wk_clients, sa, out);
	if (error == -EDQUOT) {
		counter_add(
		    &wk->wk_service.svc_stats.sta_capped[CAP_ADDRESS], 1);
		listener_tell_address(wk, sa);
	}
	return error;
}

static void
listener_admit(
    struct listening *ls, int sock, const struct sockaddr_storage *addr)
{
	struct worker *wk = ls->ls_worker;
	const struct sockaddr *sa = (const struct sockaddr *)addr;
	struct client *client;

	if (listener_enter(wk, sa, &client) == 0)
		wk->wk_accept(ls, sock, sa, client);
	else
		listener_refuse(wk, sock);
}

/*
 * Accepts up to ACCEPTS_PER_CALL clients.  The event is level-triggered, so it fires again if more
 * clients wait.
 */
static void
listener_on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct listening *ls = arg;
	struct worker *wk = ls->ls_worker;
	struct sockaddr_storage addr;
	int n, sock;

	(void)what;
	worker_lap(wk, LOOP_ACCEPT);
	for (n = 0; n < ACCEPTS_PER_CALL; n++) {
		sock = listener_accept_one(wk, fd, &addr);
		if (sock != -1) {
			listener_admit(ls, sock, &addr);
			if (wk->wk_short)
				evict_for_memory(wk);
		} else if (!listener_recover(wk, fd, errno))
			break;
	}
	if (wk->wk_draining && !wk->wk_paused)
		listener_close_empty(ls);
}

void
listener_start(struct worker *wk)
{
	struct listening *ls;

	SLIST_FOREACH(ls, &wk->wk_listening, ls_next)
	event_assign(&ls->ls_event, wk->wk_base, ls->ls_fd,
	    EV_READ | EV_PERSIST, listener_on_accept, ls);
}

/*
 * Rotates the sockets, so that the first slot goes to another socket each time while slots are
 * scarce.
 */
static void
listener_rotate(struct worker *wk)
{
	struct listening *first = SLIST_FIRST(&wk->wk_listening), *last;

	if (first == NULL || SLIST_NEXT(first, ls_next) == NULL)
		return;
	for (last = first; SLIST_NEXT(last, ls_next) != NULL;)
		last = SLIST_NEXT(last, ls_next);
	SLIST_REMOVE_HEAD(&wk->wk_listening, ls_next);
	SLIST_INSERT_AFTER(last, first, ls_next);
}

void
listener_accept(struct worker *wk)
{
	struct listening *ls;

	wk->wk_paused = false;
	listener_rotate(wk);
	SLIST_FOREACH(ls, &wk->wk_listening, ls_next)
	if (event_add(&ls->ls_event, NULL) != 0) {
		listener_pause_accepting(wk);
		return;
	}
}

void
listener_drain(struct worker *wk)
{
	struct listening *ls, *next;

	for (ls = SLIST_FIRST(&wk->wk_listening); ls != NULL; ls = next) {
		next = SLIST_NEXT(ls, ls_next);
		listener_close_empty(ls);
	}
}

void
listener_tick(struct worker *wk)
{
	if (wk->wk_paused)
		listener_accept(wk);
	if (wk->wk_draining && clock_now() >= wk->wk_drain_until)
		listener_close(wk);
}

/* Accepts at once.  If no client waits any more, the next worker gets the slot. */
void
listener_room(struct worker *wk)
{
	struct listening *ls, *next;

	if (wk->wk_paused)
		listener_accept(wk);
	for (ls = SLIST_FIRST(&wk->wk_listening); ls != NULL && !wk->wk_paused;
	     ls = next) {
		next = SLIST_NEXT(ls, ls_next);
		listener_on_accept(ls->ls_fd, EV_READ, ls);
	}
	limits_decline(wk->wk_clients, wk->wk_id);
}

void
listener_close(struct worker *wk)
{
	struct listening *ls;

	if (SLIST_EMPTY(&wk->wk_listening))
		return;
	while ((ls = SLIST_FIRST(&wk->wk_listening)) != NULL) {
		SLIST_REMOVE_HEAD(&wk->wk_listening, ls_next);
		listener_close_one(ls);
	}
	worker_quiet(wk);
}
