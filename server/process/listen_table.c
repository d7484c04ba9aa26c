/*
 * listen_table: see listen_table.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/os/os.h"

#include "server/process/listen_table.h"

#define BACKLOG 4096 /* maximum connections that wait for accept */

int
listen_add(struct listen_table *ss, const struct sock *sk)
{
	struct sock *grown =
	    reallocarray(ss->ss_list, ss->ss_count + 1, sizeof(*grown));

	if (grown == NULL)
		return -ENOMEM;
	ss->ss_list = grown;
	grown[ss->ss_count++] = *sk;
	return 0;
}

/*
 * Returns true if the socket has this name and use.  SOCKET_UNUSED, an inherited unused socket,
 * matches SOCKET_SERVE.
 */
static bool
listen_table_is(const struct sock *sk, const char *name, enum socket_use use)
{
	enum socket_use now =
	    sk->sk_use == SOCKET_UNUSED ? SOCKET_SERVE : sk->sk_use;

	return now == use && strcmp(sk->sk_name, name) == 0;
}

static void
listen_table_take(struct listen_table *ss, size_t i, struct sock *out)
{
	*out = ss->ss_list[i];
	ss->ss_count--;
	memmove(&ss->ss_list[i], &ss->ss_list[i + 1],
	    (ss->ss_count - i) * sizeof(ss->ss_list[0]));
}

bool
listen_take(struct listen_table *ss, const char *name, enum socket_use use,
    struct sock *out)
{
	size_t i;

	for (i = 0; i < ss->ss_count; i++)
		if (listen_table_is(&ss->ss_list[i], name, use)) {
			listen_table_take(ss, i, out);
			return true;
		}
	return false;
}

bool
listen_take_given(struct listen_table *ss, struct sock *out)
{
	size_t i;

	for (i = 0; i < ss->ss_count; i++)
		if (ss->ss_list[i].sk_given) {
			listen_table_take(ss, i, out);
			return true;
		}
	return false;
}

bool
listen_has(const struct listen_table *ss, const char *name, enum socket_use use)
{
	size_t i;

	for (i = 0; i < ss->ss_count; i++)
		if (listen_table_is(&ss->ss_list[i], name, use))
			return true;
	return false;
}

union address {
	struct sockaddr_storage any;
	struct sockaddr sa;
	struct sockaddr_in in; /* sin6_port has the same offset */
};

static bool
listen_table_address_of(int fd, union address *addr)
{
	socklen_t len = sizeof(*addr);

	*addr = (union address){.any = {0}};
	return getsockname(fd, &addr->sa, &len) == 0;
}

/*
 * Returns the address as IPv6.  An IPv4 address becomes IPv4-mapped, because an IPv6 socket may
 * also accept IPv4 clients.
 */
static struct in6_addr
listen_table_as_inet6(const struct sockaddr *sa)
{
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_in *in = (const void *)sa;
	struct in6_addr ip = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

	if (sa->sa_family == AF_INET6)
		return in6->sin6_addr;
	memcpy(&ip.s6_addr[12], &in->sin_addr, sizeof(in->sin_addr));
	return ip;
}

static bool
listen_table_covers(const struct in6_addr *a, const struct in6_addr *b)
{
	static const struct in6_addr all4 = {
	    .s6_addr = {[10] = 0xff, [11] = 0xff}};

	return IN6_IS_ADDR_UNSPECIFIED(a) || IN6_ARE_ADDR_EQUAL(a, b) ||
	       (IN6_ARE_ADDR_EQUAL(a, &all4) && IN6_IS_ADDR_V4MAPPED(b));
}

static bool
listen_table_overlap(const struct sockaddr *a, const struct sockaddr *b)
{
	const struct sockaddr_in *in = (const void *)a, *in2 = (const void *)b;
	struct in6_addr ip = listen_table_as_inet6(a),
			ip2 = listen_table_as_inet6(b);

	return in->sin_port == in2->sin_port &&
	       (listen_table_covers(&ip, &ip2) ||
		   listen_table_covers(&ip2, &ip));
}

bool
listen_overlap(const struct listen_table *ss, const struct sockaddr *sa)
{
	const struct sockaddr_in *in = (const void *)sa;
	const struct sock *sk;
	union address addr;
	size_t i;

	for (i = 0; in->sin_port != 0 && i < ss->ss_count; i++) {
		sk = &ss->ss_list[i];
		if (sk->sk_use == SOCKET_SERVE && !sk->sk_given &&
		    listen_table_address_of(sk->sk_fd, &addr) &&
		    addr.sa.sa_family != AF_UNIX &&
		    listen_table_overlap(&addr.sa, sa))
			return true;
	}
	return false;
}

/*
 * Returns true if `name` is the name of the address, with or without a number such as "#2"
 * (bind.c).
 */
static bool
listen_table_is_named(const union address *addr, const char *name)
{
	char text[LISTEN_NAME];
	size_t len;

	listen_name(&addr->sa, text);
	len = strlen(text);
	return strncmp(name, text, len) == 0 &&
	       (name[len] == '\0' || name[len] == '#');
}

bool
listen_genuine(const struct sock *sk)
{
	socklen_t len = sizeof(int);
	union address addr;
	int type = 0;

	if (getsockopt(sk->sk_fd, SOL_SOCKET, SO_TYPE, &type, &len) == -1 ||
	    type != SOCK_STREAM || !listen_table_address_of(sk->sk_fd, &addr))
		return false;
	if (listen_table_is_named(&addr, sk->sk_name))
		return true;
	if (addr.sa.sa_family != AF_INET && addr.sa.sa_family != AF_INET6)
		return false;
	/* The name may have port 0 instead of the actual port. */
	addr.in.sin_port = 0;
	return listen_table_is_named(&addr, sk->sk_name);
}

bool
listen_deaf(int fd)
{
	socklen_t len = sizeof(int);
	int listening = 1;

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) ==
		   0 &&
	       !listening;
}

int
listen_hear(int fd)
{
	if (listen(fd, BACKLOG) == -1)
		return -1;
	(void)os_accept_filter(fd);
	return 0;
}

static bool
listen_table_is_loopback(const struct sock *sk)
{
	return strncmp(sk->sk_name, "127.", 4) == 0 ||
	       strncmp(sk->sk_name, "[::1]:", 6) == 0;
}

static void
listen_table_set_options(const struct sock *sk)
{
	const struct linger off = {0};

	setsockopt(sk->sk_fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
	(void)os_limit_unsent(sk->sk_fd, 0);
	if (listen_table_is_loopback(sk))
		(void)os_unpace(sk->sk_fd);
}

int
listen_listen(const struct listen_table *ss, const struct sock **which)
{
	size_t i;

	for (i = 0; i < ss->ss_count; i++) {
		*which = &ss->ss_list[i];
		listen_table_set_options(*which);
		if (listen_deaf((*which)->sk_fd) &&
		    listen_hear((*which)->sk_fd) == -1)
			return -errno;
	}
	return 0;
}

bool
listen_file(const struct sock *sk)
{
	struct stat st;

	return sk->sk_ino == 0 ||
	       (lstat(sk->sk_name, &st) == 0 && S_ISSOCK(st.st_mode) &&
		   st.st_dev == sk->sk_dev && st.st_ino == sk->sk_ino);
}

void
listen_close(struct listen_table *ss)
{
	size_t i;

	for (i = 0; i < ss->ss_count; i++)
		close(ss->ss_list[i].sk_fd);
	free(ss->ss_list);
	*ss = (struct listen_table){0};
}

static bool
listen_table_has_file(const struct listen_table *ss, const struct sock *sk)
{
	size_t i;

	for (i = 0; i < ss->ss_count; i++)
		if (ss->ss_list[i].sk_ino == sk->sk_ino &&
		    ss->ss_list[i].sk_dev == sk->sk_dev)
			return true;
	return false;
}

void
listen_remove_files(
    const struct listen_table *ss, const struct listen_table *keep)
{
	const struct sock *sk;
	size_t i;

	for (i = 0; i < ss->ss_count; i++) {
		sk = &ss->ss_list[i];
		if (sk->sk_ino != 0 && !listen_table_has_file(keep, sk) &&
		    listen_file(sk))
			unlink(sk->sk_name);
	}
}

void
listen_name(const struct sockaddr *sa, char name[static LISTEN_NAME])
{
	const struct sockaddr_in *in = (const void *)sa;
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_un *un = (const void *)sa;
	char ip[INET6_ADDRSTRLEN] = "";

	if (sa->sa_family == AF_UNIX && un->sun_path[0] == '\0') {
		snprintf(name, LISTEN_NAME, "@%s", un->sun_path + 1);
	} else if (sa->sa_family == AF_UNIX) {
		snprintf(name, LISTEN_NAME, "%s", un->sun_path);
	} else if (sa->sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip));
		snprintf(
		    name, LISTEN_NAME, "[%s]:%u", ip, ntohs(in6->sin6_port));
	} else {
		inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip));
		snprintf(name, LISTEN_NAME, "%s:%u", ip, ntohs(in->sin_port));
	}
}

void
listen_pack(const struct sock *sk, char text[static LISTEN_TEXT])
{
	snprintf(text, LISTEN_TEXT, "%c %d %ju %ju %s", (char)sk->sk_use,
	    sk->sk_given, (uintmax_t)sk->sk_dev, (uintmax_t)sk->sk_ino,
	    sk->sk_name);
}

bool
listen_number(const char **text, uintmax_t *number)
{
	char *end;

	*number = strtoumax(*text, &end, 10);
	if (end == *text || *end != ' ')
		return false;
	*text = end + 1;
	return true;
}

int
listen_unpack(const char *text, struct sock *sk)
{
	uintmax_t given, dev, ino;
	char use = text[0];

	if (use == '\0' || text[1] != ' ')
		return -EINVAL;
	text += 2;
	if (!listen_number(&text, &given) || !listen_number(&text, &dev) ||
	    !listen_number(&text, &ino) || strlen(text) >= LISTEN_NAME)
		return -EINVAL;
	*sk = (struct sock){
	    .sk_fd = -1,
	    .sk_use = (enum socket_use)use,
	    .sk_given = given != 0,
	    .sk_dev = (dev_t)dev,
	    .sk_ino = (ino_t)ino,
	};
	snprintf(sk->sk_name, sizeof(sk->sk_name), "%s", text);
	return 0;
}
