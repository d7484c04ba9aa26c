/*
 * sockets: see sockets.h.
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

#include "sockets.h"

int
sockets_add(struct sockets *ss, const struct sock *sk)
{
	struct sock *grown =
	    reallocarray(ss->ss_list, ss->ss_count + 1, sizeof(*grown));

	if (grown == NULL)
		return -ENOMEM;
	ss->ss_list = grown;
	grown[ss->ss_count++] = *sk;
	return 0;
}

static bool
is(const struct sock *sk, const char *name, bool admin)
{
	return (sk->sk_use == SOCKET_ADMIN) == admin &&
	       strcmp(sk->sk_name, name) == 0;
}

static void
take(struct sockets *ss, size_t i, struct sock *out)
{
	*out = ss->ss_list[i];
	ss->ss_count--;
	memmove(&ss->ss_list[i], &ss->ss_list[i + 1],
	    (ss->ss_count - i) * sizeof(ss->ss_list[0]));
}

bool
sockets_take(struct sockets *ss, const char *name, bool admin, struct sock *out)
{
	size_t i;

	for (i = 0; i < ss->ss_count; i++)
		if (is(&ss->ss_list[i], name, admin)) {
			take(ss, i, out);
			return true;
		}
	return false;
}

bool
sockets_take_given(struct sockets *ss, struct sock *out)
{
	size_t i;

	for (i = 0; i < ss->ss_count; i++)
		if (ss->ss_list[i].sk_given) {
			take(ss, i, out);
			return true;
		}
	return false;
}

bool
sockets_has(const struct sockets *ss, const char *name, bool admin)
{
	size_t i;

	for (i = 0; i < ss->ss_count; i++)
		if (is(&ss->ss_list[i], name, admin))
			return true;
	return false;
}

static in_port_t
port_of(int fd)
{
	union {
		struct sockaddr_storage any;
		struct sockaddr sa;
		struct sockaddr_in in;
	} addr = {.any = {0}};
	socklen_t len = sizeof(addr);

	if (getsockname(fd, &addr.sa, &len) == -1)
		return 0;
	/* sin6_port is in the same place. */
	return addr.in.sin_port;
}

bool
sockets_port(const struct sockets *ss, in_port_t port)
{
	const struct sock *sk;
	size_t i;

	for (i = 0; i < ss->ss_count; i++) {
		sk = &ss->ss_list[i];
		if (sk->sk_use == SOCKET_SERVE && !sk->sk_given &&
		    port_of(sk->sk_fd) == port)
			return true;
	}
	return false;
}

void
sockets_close(struct sockets *ss)
{
	size_t i;

	for (i = 0; i < ss->ss_count; i++)
		close(ss->ss_list[i].sk_fd);
	free(ss->ss_list);
	*ss = (struct sockets){0};
}

void
sockets_remove_files(const struct sockets *ss, const struct sockets *keep)
{
	const struct sock *sk;
	struct stat st;
	size_t i;

	for (i = 0; i < ss->ss_count; i++) {
		sk = &ss->ss_list[i];
		if (sk->sk_ino != 0 && !sockets_has(keep, sk->sk_name, true) &&
		    lstat(sk->sk_name, &st) == 0 && st.st_dev == sk->sk_dev &&
		    st.st_ino == sk->sk_ino)
			unlink(sk->sk_name);
	}
}

void
sockets_name(const struct sockaddr *sa, char name[static SOCKETS_NAME])
{
	const struct sockaddr_in *in = (const void *)sa;
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_un *un = (const void *)sa;
	char ip[INET6_ADDRSTRLEN] = "";

	if (sa->sa_family == AF_UNIX) {
		snprintf(name, SOCKETS_NAME, "%s", un->sun_path);
	} else if (sa->sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip));
		snprintf(
		    name, SOCKETS_NAME, "[%s]:%u", ip, ntohs(in6->sin6_port));
	} else {
		inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip));
		snprintf(name, SOCKETS_NAME, "%s:%u", ip, ntohs(in->sin_port));
	}
}

void
sockets_pack(const struct sock *sk, char text[static SOCKETS_TEXT])
{
	snprintf(text, SOCKETS_TEXT, "%c %d %ju %ju %s", (char)sk->sk_use,
	    sk->sk_given, (uintmax_t)sk->sk_dev, (uintmax_t)sk->sk_ino,
	    sk->sk_name);
}

bool
sockets_number(const char **text, uintmax_t *number)
{
	char *end;

	*number = strtoumax(*text, &end, 10);
	if (end == *text || *end != ' ')
		return false;
	*text = end + 1;
	return true;
}

int
sockets_unpack(const char *text, struct sock *sk)
{
	uintmax_t given, dev, ino;
	char use = text[0];

	if (use == '\0' || text[1] != ' ')
		return -EINVAL;
	text += 2;
	if (!sockets_number(&text, &given) || !sockets_number(&text, &dev) ||
	    !sockets_number(&text, &ino) || strlen(text) >= SOCKETS_NAME)
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
