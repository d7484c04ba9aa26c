/*
 * listener: see listener.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"
#include "listener.h"
#include "log.h"
#include "worker.h"

#define BACKLOG		 4096
#define ACCEPTS_PER_TURN 16

static const int on = 1;
static const int off = 0;

static const char cure_reclaim[] =
    "closing idle ones; raise ulimit -n, or lower open_files";
static const char cure_pause[] = "pausing; raise ulimit -n";

static const char *
cure(int error)
{
	switch (error) {
	case EADDRINUSE:
		return ": another program listens there; stop it, or choose "
		       "another port";
	case EACCES:
		return ": ports below 1024 need root or CAP_NET_BIND_SERVICE; "
		       "choose a higher one";
	case EADDRNOTAVAIL:
		return ": no interface of this machine has that address";
	default:
		return "";
	}
}

static void
complain(const struct listen_addr *la, const char *what, int error)
{
	log_error(NULL, "cannot %s %s: %s%s", what, la->la_text,
	    strerror(error), cure(error));
}

static int
bind_one(const struct listen_addr *la, const struct sockaddr_storage *addr,
    bool reuseport)
{
	int fd, error;

	fd = socket(
	    addr->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1) {
		complain(la, "open a socket for", errno);
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (reuseport)
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (addr->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	/* Accepted sockets inherit it. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)addr, la->la_len) == -1 ||
	    listen(fd, BACKLOG) == -1) {
		error = errno;
		close(fd);
		complain(la, "listen on", error);
		return -1;
	}
	return fd;
}

int
listener_open(const struct listen_addr *la)
{
	return bind_one(la, &la->la_addr, false);
}

/*
 * SO_REUSEPORT would quietly let two servers share a port; a bind without it
 * finds out, and finds a port for port 0.
 */
static int
bind_alone(const struct listen_addr *la, struct sockaddr_storage *addr)
{
	socklen_t len = la->la_len;
	int fd = bind_one(la, addr, false);

	if (fd == -1)
		return -1;
	if (getsockname(fd, (struct sockaddr *)addr, &len) == -1) {
		complain(la, "ask for the name of", errno);
		close(fd);
		return -1;
	}
	close(fd);
	return 0;
}

static int
bind_address(const struct conf *conf, size_t i, int *fds)
{
	const struct listen_addr *la = &conf->conf_listen[i];
	struct sockaddr_storage addr = la->la_addr;
	unsigned w;

	if (bind_alone(la, &addr) == -1)
		return -1;
	for (w = 0; w < conf->conf_workers; w++) {
		fds[w * conf->conf_nlisten + i] = bind_one(la, &addr, true);
		if (fds[w * conf->conf_nlisten + i] == -1)
			return -1;
	}
	return 0;
}

int
listener_bind(const struct conf *conf, int *fds)
{
	size_t i;

	for (i = 0; i < conf->conf_nlisten; i++)
		if (bind_address(conf, i, fds) == -1)
			return -1;
	return 0;
}

void
listener_url(int fd, char *text, size_t size)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} addr = {0};
	socklen_t len = sizeof(addr);
	char ip[INET6_ADDRSTRLEN] = "", host[INET6_ADDRSTRLEN + 2];
	bool any;

	getsockname(fd, &addr.sa, &len);
	if (addr.sa.sa_family == AF_INET6) {
		any = IN6_IS_ADDR_UNSPECIFIED(&addr.in6.sin6_addr);
		inet_ntop(AF_INET6, &addr.in6.sin6_addr, ip, sizeof(ip));
		snprintf(host, sizeof(host), "[%s]", ip);
	} else {
		any = addr.in.sin_addr.s_addr == htonl(INADDR_ANY);
		inet_ntop(AF_INET, &addr.in.sin_addr, host, sizeof(host));
	}
	/* The port is at the same place in both. */
	snprintf(text, size, "http://%s:%u/", any ? "localhost" : host,
	    ntohs(addr.in.sin_port));
}

int
listener_take(struct worker *wk, const int *fds)
{
	size_t i, n = wk->wk_conf->conf_nlisten;

	wk->wk_listening = calloc(n, sizeof(*wk->wk_listening));
	if (wk->wk_listening == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		wk->wk_listening[i].ls_fd = fds[i];
		wk->wk_listening[i].ls_worker = wk;
	}
	wk->wk_nlistening = n;
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
	size_t i;

	wk->wk_paused = true;
	for (i = 0; i < wk->wk_nlistening; i++)
		event_del(&wk->wk_listening[i].ls_event);
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

/* Level-triggered: what is over the cap comes again in the next turn. */
static void
on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct listening *ls = arg;
	struct sockaddr_storage addr;
	socklen_t len;
	int n, sock;

	(void)what;
	worker_lap(ls->ls_worker, LAP_ACCEPT);
	for (n = 0; n < ACCEPTS_PER_TURN; n++) {
		len = sizeof(addr);
		sock = accept4(fd, (struct sockaddr *)&addr, &len,
		    SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (sock != -1)
			conn_create(
			    ls->ls_worker, sock, (struct sockaddr *)&addr, len);
		else if (!overcome(ls->ls_worker, fd, errno))
			break;
	}
}

int
listener_start(struct worker *wk)
{
	struct listening *ls;
	size_t i;

	for (i = 0; i < wk->wk_nlistening; i++) {
		ls = &wk->wk_listening[i];
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
	size_t i;

	wk->wk_paused = false;
	for (i = 0; i < wk->wk_nlistening; i++)
		event_add(&wk->wk_listening[i].ls_event, NULL);
}

void
listener_tick(struct worker *wk)
{
	if (wk->wk_paused && !wk->wk_draining)
		resume(wk);
	tell_left_out(wk, &wk->wk_told_pause, cure_pause);
	tell_left_out(wk, &wk->wk_told_reclaim, cure_reclaim);
}

void
listener_close(struct worker *wk)
{
	size_t i;

	for (i = 0; i < wk->wk_nlistening; i++) {
		if (event_initialized(&wk->wk_listening[i].ls_event))
			event_del(&wk->wk_listening[i].ls_event);
		close(wk->wk_listening[i].ls_fd);
	}
	wk->wk_nlistening = 0;
}
