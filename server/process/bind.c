/*
 * bind: see bind.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/os/os.h"

#include "server/log/log.h"
#include "server/process/bind.h"
#include "server/process/cure.h"
#include "server/process/unix_socket.h"

static const int on = 1;
static const int off = 0;

static const char *
bind_cure(int error)
{
	switch (error) {
	case EADDRINUSE:
		return ": another program listens on this address; stop it, or "
		       "choose another port";
	case EACCES:
		return ": ports below 1024 need root or CAP_NET_BIND_SERVICE; "
		       "choose a higher one";
	case EADDRNOTAVAIL:
		return ": no interface of this machine has this address; "
		       "listen on an address of this machine, or on *";
	default:
		return cure_of(-error);
	}
}

static const char *
bind_cure_path(int error)
{
	switch (error) {
	case EADDRINUSE:
		return ": another program listens on this path, or the file is "
		       "not a socket; choose another path";
	case ENOENT:
		return ": its directory does not exist; create it";
	case EACCES:
		return ": make its directory writable, or choose another path";
	default:
		return cure_of(-error);
	}
}

static void
bind_complain(const struct listen_addr *la, const char *what, int error)
{
	log_error(NULL, "cannot %s %s: %s%s", what, la->la_text,
	    strerror(error),
	    la->la_addr.ss_family == AF_UNIX ? bind_cure_path(error)
					     : bind_cure(error));
}

/* Flags for bind_one. */
#define SHARED 1 /* several sockets of this server share the address */
#define LISTEN 2 /* the socket listens at once */

static int
bind_one(
    const struct listen_addr *la, const struct sockaddr_storage *addr, int how)
{
	int fd, error;

	fd = socket(
	    addr->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1) {
		bind_complain(la, "open a socket for", errno);
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if ((how & SHARED) != 0)
		(void)os_share_port(fd);
	if (addr->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	/* Accepted sockets inherit this option. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)addr, la->la_len) == -1 ||
	    ((how & LISTEN) != 0 && listen_hear(fd) == -1)) {
		error = errno;
		close(fd);
		bind_complain(la, "listen on", error);
		return -1;
	}
	return fd;
}

static int
bind_ask_name(
    const struct listen_addr *la, int fd, struct sockaddr_storage *addr)
{
	socklen_t len = la->la_len;

	if (getsockname(fd, (struct sockaddr *)addr, &len) == 0)
		return 0;
	bind_complain(la, "get the address of", errno);
	return -1;
}

static int
bind_add(struct listen_table *now, const struct sock *sk)
{
	if (listen_add(now, sk) == 0)
		return 0;
	close(sk->sk_fd);
	log_error(NULL, "%s", strerror(ENOMEM));
	return -1;
}

/*
 * Opens the first socket of an address.  The socket listens without SO_REUSEPORT, which would hide
 * that another server uses the port.  Afterwards the socket shares the port.  Stores the address,
 * with the port that the kernel chose for port 0.  If a listening socket cannot share its port,
 * only checks that the port is free, and stores no socket; another server that starts at the same
 * time may then pass the same check.
 */
static int
bind_first(const struct listen_addr *la, const char *name,
    struct sockaddr_storage *addr, struct listen_table *now, unsigned *count)
{
	struct sock sk = {.sk_use = SOCKET_SERVE};
	int error;

	sk.sk_fd = bind_one(la, addr, os_share_listening() ? LISTEN : 0);
	if (sk.sk_fd == -1)
		return -1;
	error = bind_ask_name(la, sk.sk_fd, addr);
	if (error != 0 || !os_share_listening()) {
		close(sk.sk_fd);
		return error;
	}
	(void)os_share_port(sk.sk_fd);
	snprintf(sk.sk_name, sizeof(sk.sk_name), "%s", name);
	*count = 1;
	return bind_add(now, &sk);
}

/*
 * Moves the usable old sockets with this name to `now`, counts them, and copies the last to *sk.
 * Closes sockets that do not listen: an earlier process shares them, and may have called
 * shutdown(2).
 */
static int
bind_keep_old(const char *name, struct listen_table *old,
    struct listen_table *now, struct sock *sk, unsigned *count)
{
	struct sock next;

	*count = 0;
	while (listen_take(old, name, SOCKET_SERVE, &next)) {
		if (listen_deaf(next.sk_fd)) {
			log_warn(NULL,
			    "a listening socket of %s no longer accepts "
			    "connections, because a process called shutdown(2) "
			    "on it; opening a new one",
			    name);
			close(next.sk_fd);
			continue;
		}
		next.sk_use = SOCKET_SERVE;
		if (bind_add(now, &next) == -1)
			return -1;
		*sk = next;
		(*count)++;
	}
	return 0;
}

/*
 * Returns true if a socket of this server already uses the address, for example because "*"
 * includes it.  bind_first would fail then.
 */
static bool
bind_is_ours(const struct listen_addr *la, const struct listen_table *old,
    const struct listen_table *now)
{
	const struct sockaddr *sa = (const void *)&la->la_addr;

	return listen_overlap(old, sa) || listen_overlap(now, sa);
}

/*
 * Keeps the old Unix socket, or opens a new one.  All workers share this socket, because only one
 * socket can have the path.
 */
static int
bind_unix(const struct listen_addr *la, const char *name, enum socket_use use,
    struct listen_table *old, struct listen_table *now)
{
	struct sock sk;
	int error;

	if (listen_take(old, name, use, &sk)) {
		sk.sk_use = use;
		if (unix_socket_keep(la, &sk))
			return bind_add(now, &sk);
		close(sk.sk_fd);
	}
	sk = (struct sock){.sk_use = use};
	snprintf(sk.sk_name, sizeof(sk.sk_name), "%s", name);
	error = unix_socket_open(la, &sk);
	if (error == 0)
		return bind_add(now, &sk);
	bind_complain(la, "listen on", -error);
	return -1;
}

static int
bind_address(const struct listen_addr *la, const char *name, unsigned workers,
    struct listen_table *old, struct listen_table *now)
{
	struct sockaddr_storage addr = la->la_addr;
	int error = 0, how = SHARED;
	struct sock sk;
	unsigned n;

	if (addr.ss_family == AF_UNIX)
		return bind_unix(la, name, SOCKET_SERVE, old, now);
	if (bind_keep_old(name, old, now, &sk, &n) == -1)
		return -1;
	if (n > 0 && (sk.sk_given || !os_share_late()))
		return 0;
	if (n > 0)
		error = bind_ask_name(la, sk.sk_fd, &addr);
	else if (!bind_is_ours(la, old, now)) {
		error = bind_first(la, name, &addr, now, &n);
		how |= LISTEN;
	}
	if (!os_share_late())
		how |= LISTEN;
	for (; error == 0 && n < workers; n++) {
		sk = (struct sock){.sk_use = SOCKET_SERVE};
		snprintf(sk.sk_name, sizeof(sk.sk_name), "%s", name);
		sk.sk_fd = bind_one(la, &addr, how);
		error = sk.sk_fd == -1 ? -1 : bind_add(now, &sk);
	}
	return error;
}

/*
 * Makes the name of an address.  conf_listen may have port 0 several times, each time for another
 * port, so a repeated name gets a number ("#2").
 */
static void
bind_make_name(const struct listen_addr *la, const struct listen_table *now,
    char name[static LISTEN_NAME])
{
	size_t len;
	unsigned i;

	listen_name((const struct sockaddr *)&la->la_addr, name);
	len = strlen(name);
	for (i = 2; listen_has(now, name, SOCKET_SERVE); i++)
		snprintf(name + len, LISTEN_NAME - len, "#%u", i);
}

static int
bind_keep_given(
    struct listen_table *old, struct listen_table *now, enum socket_use use)
{
	struct sock sk;

	while (listen_take_given(old, &sk)) {
		if (use == SOCKET_UNUSED)
			log_warn(NULL,
			    "socket %s from the service manager is not in "
			    "listen: add it to listen, or remove it from the "
			    "service manager's unit",
			    sk.sk_name);
		sk.sk_use = use;
		if (bind_add(now, &sk) == -1)
			return -1;
	}
	return 0;
}

int
bind_sites(
    const struct conf *conf, struct listen_table *old, struct listen_table *now)
{
	const struct listen_addr *la;
	char name[LISTEN_NAME];
	size_t i, first;

	if (conf->conf_listen_default) {
		if (bind_keep_given(old, now, SOCKET_SERVE) == -1)
			return -1;
		if (now->ss_count > 0)
			return 0;
	}
	for (i = 0; i < conf->conf_nlisten; i++) {
		la = &conf->conf_listen[i];
		first = now->ss_count;
		bind_make_name(la, now, name);
		if (bind_address(la, name, conf->conf_workers, old, now) == -1)
			return -1;
		for (; first < now->ss_count; first++) {
			now->ss_list[first].sk_proxy = la->la_proxy;
			now->ss_list[first].sk_tls = la->la_tls;
		}
	}
	return bind_keep_given(old, now, SOCKET_UNUSED);
}

/* Opens one socket for all workers. */
static int
bind_single(const struct listen_addr *la, enum socket_use use,
    struct listen_table *old, struct listen_table *now)
{
	struct sock sk = {.sk_use = use};
	char name[LISTEN_NAME];

	listen_name((const struct sockaddr *)&la->la_addr, name);
	if (la->la_addr.ss_family == AF_UNIX)
		return bind_unix(la, name, use, old, now);
	if (listen_take(old, name, use, &sk)) {
		if (!listen_deaf(sk.sk_fd))
			return bind_add(now, &sk);
		close(sk.sk_fd);
		sk = (struct sock){.sk_use = use};
	}
	snprintf(sk.sk_name, sizeof(sk.sk_name), "%s", name);
	sk.sk_fd = bind_one(la, &la->la_addr, LISTEN);
	return sk.sk_fd == -1 ? -1 : bind_add(now, &sk);
}

int
bind_admin(
    const struct conf *conf, struct listen_table *old, struct listen_table *now)
{
	const struct listen_addr *agent = &conf->conf_agent;
	int error = 0;

	for (size_t i = 0; error == 0 && i < conf->conf_nadmin; i++)
		error =
		    bind_single(&conf->conf_admin[i], SOCKET_ADMIN, old, now);
	return error != 0 || agent->la_text == NULL
		   ? error
		   : bind_single(agent, SOCKET_AGENT, old, now);
}

void
bind_url(int fd, bool tls, char *text, size_t size)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	} addr = {0};
	socklen_t len = sizeof(addr);
	char ip[INET6_ADDRSTRLEN] = "", host[INET6_ADDRSTRLEN + 2];
	bool any;

	getsockname(fd, &addr.sa, &len);
	if (addr.sa.sa_family == AF_UNIX) {
		snprintf(text, size, "unix:%s", addr.un.sun_path);
		return;
	}
	if (addr.sa.sa_family == AF_INET6) {
		any = IN6_IS_ADDR_UNSPECIFIED(&addr.in6.sin6_addr);
		inet_ntop(AF_INET6, &addr.in6.sin6_addr, ip, sizeof(ip));
		snprintf(host, sizeof(host), "[%s]", ip);
	} else {
		any = addr.in.sin_addr.s_addr == htonl(INADDR_ANY);
		inet_ntop(AF_INET, &addr.in.sin_addr, host, sizeof(host));
	}
	/* sin6_port has the same offset as sin_port */
	snprintf(text, size, "%s://%s:%u/", tls ? "https" : "http",
	    any ? "localhost" : host, ntohs(addr.in.sin_port));
}
