/*
 * net: what a server needs besides kernel's descriptors: sockets that listen, bytes in both
 * directions, poll(2), epoll(7), and the channel of the server's master.
 */
#include <sys/epoll.h>
#include <sys/socket.h>

#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/process/channel.h"
#include "tests/sim/kernel.h"
#include "tests/sim/wrap.h"

#define LISTENERS 8
#define BACKLOG	  16
#define WATCHES	  256

struct queue {
	char *qu_mem;
	size_t qu_at, qu_len, qu_room;
};

struct wire {
	struct queue wi_in;	 /* bytes that the server has not received */
	struct queue wi_text;	 /* bytes that the client has not received */
	bool wi_in_end;		 /* the client has shut its side down */
	bool wi_end;		 /* the server has */
	bool wi_closed, wi_gone; /* closed by the server, by the client */
	bool wi_linger;		 /* SO_LINGER of 0 seconds */
};

struct listener {
	bool li_open;
	unsigned li_count;
	struct tcp_sock *li_backlog[BACKLOG];
};

struct watch {
	int wa_fd;
	struct epoll_event wa_event;
	bool wa_edge;
};

struct epoll_sim {
	struct watch ep_watches[WATCHES];
	unsigned ep_count;
};

static struct listener listeners[LISTENERS];
static struct epoll_sim epolls[4];
static unsigned nlisteners, nepolls;
static unsigned messages[8], nmessages;
static const char pollers; /* what poll(2) waits for */

static void
queue_put(struct queue *qu, const char *mem, size_t len)
{
	if (qu->qu_at + qu->qu_len + len > qu->qu_room) {
		if (qu->qu_len > 0)
			memmove(qu->qu_mem, qu->qu_mem + qu->qu_at, qu->qu_len);
		qu->qu_at = 0;
		if (qu->qu_len + len > qu->qu_room / 2) {
			qu->qu_room = 2 * (qu->qu_len + len) + PAGE;
			qu->qu_mem = realloc(qu->qu_mem, qu->qu_room);
		}
	}
	memcpy(qu->qu_mem + qu->qu_at + qu->qu_len, mem, len);
	qu->qu_len += len;
}

static size_t
queue_take(struct queue *qu, char *to, size_t len, bool peek)
{
	if (len > qu->qu_len)
		len = qu->qu_len;
	if (len > 0)
		memcpy(to, qu->qu_mem + qu->qu_at, len);
	if (!peek)
		qu->qu_at += len, qu->qu_len -= len;
	return len;
}

/* ---------------------------------------------------------------------- state */

static unsigned
net_state_of_socket(struct tcp_sock *so)
{
	const struct wire *wi = so->so_wire;
	unsigned state = 0;

	if (so->so_reset)
		return EPOLLIN | EPOLLOUT | EPOLLHUP | EPOLLERR | EPOLLRDHUP;
	if (so->so_queued <= so->so_room / 3 * 2)
		state |= EPOLLOUT;
	else
		so->so_full = true;
	if (wi == NULL)
		return state;
	if (wi->wi_in.qu_len > 0 || wi->wi_in_end)
		state |= EPOLLIN;
	if (wi->wi_in_end)
		state |= EPOLLRDHUP | (wi->wi_end ? EPOLLHUP : 0);
	return state;
}

static unsigned
net_state(const struct fd *f)
{
	switch (f->fd_kind) {
	case FD_LISTEN:
		return f->fd_listener->li_count > 0 ? EPOLLIN : 0;
	case FD_EVENT:
		return EPOLLOUT | (f->fd_count > 0 ? EPOLLIN : 0);
	case FD_CHANNEL:
		return nmessages > 0 ? EPOLLIN : 0;
	case FD_SOCKET:
		return net_state_of_socket(f->fd_sock);
	default:
		return 0;
	}
}

void
net_changed(int fd)
{
	unsigned i, j;

	for (i = 0; i < nepolls; i++)
		for (j = 0; j < epolls[i].ep_count; j++)
			if (epolls[i].ep_watches[j].wa_fd == fd) {
				epolls[i].ep_watches[j].wa_edge = true;
				world_wake(&epolls[i], TASKS_MAX);
			}
	world_wake(&pollers, TASKS_MAX);
}

void
net_writable(struct tcp_sock *so)
{
	int i;

	for (i = 0; i < FDS_MAX; i++)
		if (fds[i].fd_kind == FD_SOCKET && fds[i].fd_sock == so)
			net_changed(i);
}

void
net_tell(unsigned kind)
{
	messages[nmessages++] = kind;
	world_wake(&pollers, TASKS_MAX);
}

/* --------------------------------------------------------------------- epoll */

WRAP(int, epoll_create1, (int flags))
{
	int fd = fd_new(FD_EPOLL);

	(void)flags;
	if (fd == -1 || nepolls == COUNT(epolls))
		world_fail("the simulator has too few epolls");
	fds[fd].fd_epoll = &epolls[nepolls++];
	return fd;
}

WRAP(int, epoll_ctl, (int epfd, int op, int fd, struct epoll_event *event))
{
	struct epoll_sim *ep = fd_of(epfd)->fd_epoll;
	unsigned i;

	world_point("epoll_ctl");
	if (fd_of(fd) == NULL)
		return -1;
	for (i = 0; i < ep->ep_count && ep->ep_watches[i].wa_fd != fd; i++)
		continue;
	if ((op == EPOLL_CTL_ADD) != (i == ep->ep_count))
		return failed(op == EPOLL_CTL_ADD ? EEXIST : ENOENT);
	if (op == EPOLL_CTL_DEL) {
		ep->ep_watches[i] = ep->ep_watches[--ep->ep_count];
		return 0;
	}
	if (op == EPOLL_CTL_ADD && ++ep->ep_count == WATCHES)
		world_fail("the simulator has too few watches");
	ep->ep_watches[i] = (struct watch){fd, *event, true};
	return 0;
}

/* A watch with EPOLLET reports what there is once for each change. */
static int
epoll_collect(struct epoll_sim *ep, struct epoll_event *list, int most)
{
	unsigned i, state, from = world_below(ep->ep_count);
	struct watch *wa;
	int n = 0;

	for (i = 0; i < ep->ep_count && n < most; i++) {
		wa = &ep->ep_watches[(i + from) % ep->ep_count];
		if ((wa->wa_event.events & EPOLLET) != 0 && !wa->wa_edge)
			continue;
		wa->wa_edge = false;
		state = net_state(&fds[wa->wa_fd]) &
			(wa->wa_event.events | EPOLLERR | EPOLLHUP);
		if (state == 0)
			continue;
		list[n] = wa->wa_event;
		list[n++].events = state;
	}
	return n;
}

static uint64_t
net_until(int timeout)
{
	return timeout < 0 ? NEVER : world_now + (unsigned)timeout * MS;
}

WRAP(int, epoll_wait, (int fd, struct epoll_event *list, int most, int timeout))
{
	struct epoll_sim *ep = fd_of(fd)->fd_epoll;
	uint64_t until;
	int n;

	world_point("epoll_wait");
	until = net_until(timeout);
	while ((n = epoll_collect(ep, list, most)) == 0 && timeout != 0 &&
	       world_now < until)
		world_wait(ep, until);
	*task_step() = world_now;
	return n;
}

WRAP(int, poll, (struct pollfd * list, nfds_t n, int timeout))
{
	uint64_t until = net_until(timeout);
	const struct fd *f;
	int ready;
	nfds_t i;

	world_point("poll");
	for (;;) {
		for (i = 0, ready = 0; i < n; i++) {
			f = list[i].fd < 0 ? NULL : fd_of(list[i].fd);
			list[i].revents =
			    (short)(f != NULL ? net_state(f) &
						    ((unsigned)list[i].events |
							POLLERR | POLLHUP)
				    : list[i].fd < 0 ? 0
						     : POLLNVAL);
			ready += list[i].revents != 0;
		}
		if (ready > 0 || world_now >= until || timeout == 0)
			return ready;
		if (task_is_loop())
			world_fail("the loop waits in poll");
		world_wait(&pollers, until);
	}
}

/* ------------------------------------------------------------ sockets that listen */

WRAP(int, socket, (int family, int type, int protocol))
{
	int fd = fd_new(FD_LISTEN);

	(void)family, (void)type, (void)protocol;
	if (fd == -1 || nlisteners == LISTENERS)
		world_fail("the simulator has too few listeners");
	listeners[nlisteners].li_open = true;
	fds[fd].fd_listener = &listeners[nlisteners++];
	return fd;
}

WRAP(int, bind, (int fd, const struct sockaddr *sa, socklen_t len))
{
	(void)fd, (void)sa, (void)len;
	return 0;
}

WRAP(int, listen, (int fd, int backlog))
{
	(void)fd, (void)backlog;
	return 0;
}

WRAP(int, getsockname, (int fd, struct sockaddr *sa, socklen_t *len))
{
	(void)fd;
	*(struct sockaddr_in *)(void *)sa = (struct sockaddr_in){
	    .sin_family = AF_INET, .sin_port = htons(8080)};
	*len = sizeof(struct sockaddr_in);
	return 0;
}

WRAP(int, accept4, (int fd, struct sockaddr *sa, socklen_t *len, int flags))
{
	struct listener *li = fd_of(fd)->fd_listener;
	struct tcp_sock *so = li->li_backlog[0];
	int sock;

	(void)flags;
	world_point("accept4");
	if (li->li_count == 0)
		return failed(EAGAIN);
	so = li->li_backlog[0];
	sock = sock_open(so);
	if (sock == -1)
		return -1;
	memmove(li->li_backlog, li->li_backlog + 1,
	    --li->li_count * sizeof(li->li_backlog[0]));
	__wrap_getsockname(fd, sa, len);
	((struct sockaddr_in *)(void *)sa)->sin_addr.s_addr =
	    htonl(0x0a000001 + so->so_room % 3);
	return sock;
}

struct tcp_sock *
net_connect(const struct sock_end *end, void *client, unsigned room)
{
	unsigned i, at, from = world_below(nlisteners);
	struct listener *li = NULL;
	int fd;

	for (i = 0; i < nlisteners && li == NULL; i++) {
		at = (from + i) % nlisteners;
		if (listeners[at].li_open && listeners[at].li_count < BACKLOG)
			li = &listeners[at];
	}
	if (li == NULL)
		return NULL;
	li->li_backlog[li->li_count] = sock_create(end, client, room);
	li->li_backlog[li->li_count]->so_wire = calloc(1, sizeof(struct wire));
	for (fd = 0; fd < FDS_MAX; fd++)
		if (fds[fd].fd_kind == FD_LISTEN && fds[fd].fd_listener == li)
			net_changed(fd);
	return li->li_backlog[li->li_count++];
}

/* ------------------------------------------------------------- the server's end */

static void
net_free(struct tcp_sock *so)
{
	struct wire *wi = so->so_wire;

	if (!wi->wi_closed || !wi->wi_gone)
		return;
	sock_reset(so);
	free(wi->wi_in.qu_mem);
	free(wi->wi_text.qu_mem);
	free(wi);
	free(so);
}

/* The server closes its end: resets the connection if bytes of the client are left. */
static void
net_close_socket(struct tcp_sock *so)
{
	struct wire *wi = so->so_wire;

	wi->wi_closed = wi->wi_end = true;
	if (wi->wi_in.qu_len > 0 || wi->wi_linger)
		sock_reset(so);
	so->so_end->se_queued(so->so_client);
	net_free(so);
}

static void
net_close_listener(struct listener *li)
{
	for (; li->li_count > 0; li->li_count--) {
		li->li_backlog[li->li_count - 1]->so_wire->wi_linger = true;
		net_close_socket(li->li_backlog[li->li_count - 1]);
	}
	li->li_open = false;
}

static bool
net_listens(const struct listener *li)
{
	unsigned i;

	for (i = 0; i < FDS_MAX; i++)
		if (fds[i].fd_kind == FD_LISTEN && fds[i].fd_listener == li)
			return true;
	return false;
}

void
net_close(const struct fd *was, int number)
{
	unsigned i, j;

	for (i = 0; i < nepolls; i++)
		for (j = 0; j < epolls[i].ep_count; j++)
			if (epolls[i].ep_watches[j].wa_fd == number)
				epolls[i].ep_watches[j--] =
				    epolls[i].ep_watches[--epolls[i].ep_count];
	if (was->fd_kind == FD_LISTEN && !net_listens(was->fd_listener))
		net_close_listener(was->fd_listener);
	if (was->fd_kind != FD_SOCKET)
		return;
	if (was->fd_sock->so_wire == NULL)
		world_fail(
		    "%s closes a socket of the program", task_name(world_me));
	net_close_socket(was->fd_sock);
}

void
net_linger(struct tcp_sock *so)
{
	if (so != NULL && so->so_wire != NULL)
		so->so_wire->wi_linger = true;
}

unsigned
net_unread(const struct tcp_sock *so)
{
	return (unsigned)so->so_wire->wi_in.qu_len;
}

WRAP(ssize_t, recv, (int fd, void *to, size_t room, int flags))
{
	struct tcp_sock *so = sock_of(fd);
	struct wire *wi;

	world_point("recv");
	if (so == NULL)
		world_fail("%s receives from descriptor %d, which is no socket",
		    task_name(world_me), fd);
	wi = so->so_wire;
	if (so->so_reset)
		return failed(ECONNRESET);
	if (wi->wi_in.qu_len == 0)
		return wi->wi_in_end ? 0 : failed(EAGAIN);
	room = queue_take(&wi->wi_in, to, room, (flags & MSG_PEEK) != 0);
	story("receives %zu bytes from descriptor %d", room, fd);
	return (ssize_t)room;
}

WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags))
{
	ssize_t n, sent = 0;
	size_t i;

	for (i = 0; i < msg->msg_iovlen; i++) {
		n = __wrap_send(fd, msg->msg_iov[i].iov_base,
		    msg->msg_iov[i].iov_len, flags);
		if (n < 0)
			return sent > 0 ? sent : -1;
		sent += n;
		if ((size_t)n < msg->msg_iov[i].iov_len)
			break;
	}
	return sent;
}

WRAP(int, shutdown, (int fd, int how))
{
	struct tcp_sock *so = sock_of(fd);

	world_point("shutdown");
	if (so == NULL || so->so_reset)
		return failed(ENOTCONN);
	so->so_wire->wi_end = true;
	if (how == SHUT_RDWR)
		so->so_wire->wi_in_end = true;
	so->so_end->se_queued(so->so_client);
	return 0;
}

/* ------------------------------------------------------------- the client's end */

void
net_keep(struct tcp_sock *so, const char *mem, size_t len)
{
	queue_put(&so->so_wire->wi_text, mem, len);
}

void
net_write(struct tcp_sock *so, const char *mem, size_t len)
{
	if (so->so_wire->wi_closed) {
		sock_reset(so); /* the other end is closed */
		return;
	}
	queue_put(&so->so_wire->wi_in, mem, len);
	net_writable(so);
}

void
net_shut(struct tcp_sock *so)
{
	so->so_wire->wi_in_end = true;
	net_writable(so);
}

size_t
net_read(struct tcp_sock *so, char *to, size_t room)
{
	size_t n = queue_take(&so->so_wire->wi_text, to, room, false);

	if (n > 0)
		sock_read(so, (unsigned)n);
	return n;
}

void
net_leave(struct tcp_sock *so)
{
	struct wire *wi = so->so_wire;

	wi->wi_gone = true;
	sock_reset(so);
	net_writable(so);
	net_free(so);
}

bool
net_ended(const struct tcp_sock *so)
{
	return so->so_reset ||
	       (so->so_wire->wi_end && so->so_wire->wi_text.qu_len == 0);
}

/* ---------------------------------------------------------- the master's channel */

int __wrap_channel_receive(int, struct channel_message *, int *);
int
__wrap_channel_receive(int channel, struct channel_message *cm, int *fd)
{
	(void)channel, (void)fd;
	world_point("channel_receive");
	if (nmessages == 0)
		return 0;
	*cm = (struct channel_message){.cm_kind = messages[0]};
	memmove(messages, messages + 1, --nmessages * sizeof(messages[0]));
	return 1;
}
