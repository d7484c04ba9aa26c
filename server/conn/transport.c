/*
 * transport: see transport.h.
 */
#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "server/conn/transport.h"

#define FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL)

void
transport_open(struct transport *tr, int fd)
{
	tr->tr_fd = fd;
	tr->tr_sink = NULL;
	tr->tr_tls = NULL;
#ifdef PW_INSIDE
	tr->tr_sink = inside_sink(&tr->tr_inside, fd);
#endif
}

void
transport_close(struct transport *tr)
{
	if (tr->tr_fd == -1)
		return;
	close(tr->tr_fd);
	tr->tr_fd = -1;
}

void
transport_destroy(struct transport *tr)
{
	transport_close(tr);
	tls_destroy(&tr->tr_tls);
}

bool
transport_start_tls(struct transport *tr, struct tls_context *tx)
{
	tr->tr_tls = tls_create(tx, tr->tr_fd);
	return tr->tr_tls != NULL;
}

void
transport_tls_opened(struct transport *tr)
{
	tr->tr_sink = tls_sink(tr->tr_tls);
}

void
transport_stop_tls(struct transport *tr)
{
	tls_destroy(&tr->tr_tls);
}

static long
transport_receive(int fd, void *to, size_t room, int flags)
{
	ssize_t n;

	do
		n = recv(fd, to, room, flags | MSG_DONTWAIT);
	while (n == -1 && errno == EINTR);
	return n == -1 ? -errno : n;
}

long
transport_recv(struct transport *tr, void *to, size_t room)
{
	return tr->tr_tls == NULL ? transport_receive(tr->tr_fd, to, room, 0)
				  : tls_recv(tr->tr_tls, to, room);
}

long
transport_peek(const struct transport *tr, void *to, size_t room)
{
	return transport_receive(tr->tr_fd, to, room, MSG_PEEK);
}

long
transport_skip(const struct transport *tr, void *to, size_t len)
{
	return transport_receive(tr->tr_fd, to, len, 0);
}

bool
transport_nothing_came(const struct transport *tr)
{
	char byte;

	if (tr->tr_tls != NULL && tls_has_input(tr->tr_tls))
		return false;
	return recv(tr->tr_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 1;
}

bool
transport_has_more(const struct transport *tr, size_t known)
{
	int there;

	return ioctl(tr->tr_fd, FIONREAD, &there) == 0 && (size_t)there > known;
}

bool
transport_is_broken(const struct transport *tr)
{
	char byte;

	return recv(tr->tr_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == -1 &&
	       errno != EAGAIN && errno != EINTR;
}

static long
transport_give(struct pw_sink *sk, const char *text, size_t len, bool more)
{
	size_t taken = 0;
	int error = sk->sk_ops->take(sk, text, len, more, &taken);

	return error != 0 ? error : (long)taken;
}

static long
transport_give_all(struct pw_sink *sk, const struct iovec *iov, int n)
{
	long sent = 0, got;
	int i;

	for (i = 0; i < n; i++) {
		got = transport_give(
		    sk, iov[i].iov_base, iov[i].iov_len, i + 1 < n);
		if (got < 0)
			return sent > 0 ? sent : got;
		sent += got;
		if ((size_t)got < iov[i].iov_len)
			break;
	}
	return sent;
}

long
transport_send(struct transport *tr, const char *text, size_t len)
{
	ssize_t n;

	if (tr->tr_sink != NULL)
		return transport_give(tr->tr_sink, text, len, false);
	n = send(tr->tr_fd, text, len, FLAGS);
	return n == -1 ? -errno : n;
}

long
transport_sendv(struct transport *tr, struct iovec *iov, int n)
{
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};
	ssize_t sent;

	if (tr->tr_sink != NULL)
		return transport_give_all(tr->tr_sink, iov, n);
	sent = sendmsg(tr->tr_fd, &msg, FLAGS);
	return sent == -1 ? -errno : sent;
}

bool
transport_has_room(const struct transport *tr)
{
	struct pollfd pfd = {.fd = tr->tr_fd, .events = POLLOUT};

	return poll(&pfd, 1, 0) == 1;
}

int
transport_end(struct transport *tr)
{
	if (tr->tr_tls != NULL && tls_end(tr->tr_tls) == -EAGAIN)
		return -EAGAIN;
	return shutdown(tr->tr_fd, SHUT_WR) == -1 ? -errno : 0;
}

void
transport_say_end(struct transport *tr)
{
	if (tr->tr_tls != NULL)
		(void)tls_end(tr->tr_tls);
}

void
transport_cut(struct transport *tr)
{
	shutdown(tr->tr_fd, SHUT_RDWR);
}

void
transport_forget(struct transport *tr)
{
	static const struct linger at_once = {.l_onoff = 1};

	setsockopt(tr->tr_fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}
