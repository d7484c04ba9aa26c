/*
 * socket: sockets, whose other ends are clients, and pipes.  Both hold references to pages.  What goes into
 * a socket is checked at once, as the page is then, since a later write changes pages in a socket's
 * queue: a limit that docs/design/transfers-and-budget.md states.
 */
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/kernel.h"
#include "tests/sim/wrap.h"

struct pipe_sim {
	struct segment pp_segments[SEGMENTS / 8];
	unsigned pp_first, pp_count, pp_ends;
};

static void
segment_release(const struct segment *sg)
{
	if (sg->sg_inode != NULL &&
	    sg->sg_off < (off_t)sg->sg_inode->in_npages * PAGE)
		page_let_go(page_at(sg->sg_inode, sg->sg_off), sg->sg_epoch);
}

struct tcp_sock *
sock_create(const struct sock_end *end, void *client, unsigned room)
{
	struct tcp_sock *so = calloc(1, sizeof(*so));

	so->so_end = end;
	so->so_client = client;
	so->so_room = room;
	return so;
}

int
sock_open(struct tcp_sock *so)
{
	int fd = fd_new(FD_SOCKET);

	if (fd != -1)
		fds[fd].fd_sock = so;
	return fd;
}

struct tcp_sock *
sock_of(int fd)
{
	struct fd *f = fd_of(fd);

	return f == NULL || f->fd_kind != FD_SOCKET ? NULL : f->fd_sock;
}

unsigned
sock_queued(const struct tcp_sock *so)
{
	return so->so_queued;
}

bool
sock_is_full(const struct tcp_sock *so)
{
	return so->so_full;
}

void
sock_reset(struct tcp_sock *so)
{
	so->so_reset = true;
	while (so->so_count > 0)
		sock_read(so, so->so_queued);
}

void
sock_close(struct tcp_sock *so)
{
	int i;

	sock_reset(so);
	for (i = 0; i < FDS_MAX; i++)
		if (fds[i].fd_kind == FD_SOCKET && fds[i].fd_sock == so)
			fds[i].fd_kind = FD_FREE;
	free(so);
}

/* Acknowledges bytes, and tells the loop once a third of a full socket is free. */
unsigned
sock_read(struct tcp_sock *so, unsigned n)
{
	struct segment *sg;
	unsigned got = 0, part;

	while (got < n && so->so_count > 0) {
		sg = &so->so_segments[so->so_first];
		part = n - got < sg->sg_len ? n - got : sg->sg_len;
		got += part;
		so->so_queued -= part;
		sg->sg_len -= part;
		if (sg->sg_len > 0)
			break;
		segment_release(sg);
		so->so_first = (so->so_first + 1) % SEGMENTS;
		so->so_count--;
	}
	if (so->so_full && so->so_queued <= so->so_room / 3 * 2) {
		so->so_full = false;
		so->so_end->se_writable(so->so_client);
	}
	return got;
}

/* Returns how many bytes fit, or -errno. */
static long
sock_space(struct tcp_sock *so)
{
	if (so == NULL)
		return -EBADF;
	if (so->so_reset)
		return -EPIPE;
	if (so->so_queued >= so->so_room || so->so_count >= SEGMENTS - 2) {
		so->so_full = true;
		return -EAGAIN;
	}
	return (long)(so->so_room - so->so_queued);
}

static void
sock_told(struct tcp_sock *so)
{
	so->so_end->se_queued(so->so_client);
}

static void
sock_put(struct tcp_sock *so, const struct segment *sg)
{
	so->so_segments[(so->so_first + so->so_count++) % SEGMENTS] = *sg;
	so->so_queued += sg->sg_len;
	so->so_sent = world_now;
	if (so->so_queued >= so->so_room)
		so->so_full = true;
	if (sg->sg_inode != NULL)
		so->so_end->se_page(so->so_client, sg->sg_inode, sg->sg_off,
		    sg->sg_len, sg->sg_version);
}

/* A segment of the file's page at off, with a reference to the page. */
static struct segment
segment_of(struct inode *in, off_t off, size_t len)
{
	struct page *pg = page_at(in, off);
	struct segment sg = {
	    .sg_inode = in, .sg_off = off, .sg_version = pg->pg_version};
	size_t n = PAGE - (size_t)(off % PAGE);

	if (n > len)
		n = len;
	if ((off_t)n > in->in_size - off)
		n = (size_t)(in->in_size - off);
	sg.sg_len = (unsigned)n;
	sg.sg_epoch = page_keep(pg);
	return sg;
}

/* Moves pages of a file to `put` until `room` bytes are moved.  Returns how many, or -errno. */
static long
pages_move(struct fd *f, off_t off, size_t room,
    void (*put)(void *, const struct segment *), void *to, const char *call)
{
	struct inode *in = f->fd_inode;
	size_t done = 0;
	struct segment sg;
	int error;

	while (done < room && off < in->in_size) {
		error =
		    page_need(in, off, f->fd_random ? room - done : 0, call);
		if (error != 0)
			return done > 0		   ? (long)done
			       : error == -ENODATA ? 0
						   : error;
		sg = segment_of(in, off, room - done);
		put(to, &sg);
		done += sg.sg_len;
		off += (off_t)sg.sg_len;
		if (off / PAGE % 16 == 0)
			world_point(call);
	}
	return (long)done;
}

static void
put_nowhere(void *to, const struct segment *sg)
{
	(void)to;
	segment_release(sg);
}

static void
put_in_socket(void *to, const struct segment *sg)
{
	if (((struct tcp_sock *)to)->so_reset) {
		segment_release(sg);
		return;
	}
	sock_put(to, sg);
}

static void
put_in_pipe(void *to, const struct segment *sg)
{
	struct pipe_sim *pp = to;

	pp->pp_segments[(pp->pp_first + pp->pp_count++) %
			COUNT(pp->pp_segments)] = *sg;
}

WRAP(ssize_t, sendfile, (int out, int fd, off_t *off, size_t len))
{
	struct fd *to = fd_of(out), *f = fd_of(fd);
	long n;

	world_point("sendfile");
	if (to == NULL || f == NULL)
		return failed(EBADF);
	kernel_call("sendfile", f->fd_inode, *off);
	if (f->fd_disk->di_copies)
		return failed(EINVAL);
	if (to->fd_kind == FD_NULL) {
		n = pages_move(
		    f, *off, len, put_nowhere, NULL, "sendfile to /dev/null");
	} else {
		n = sock_space(to->fd_sock);
		if (n > 0)
			n = pages_move(f, *off,
			    len < (size_t)n ? len : (size_t)n, put_in_socket,
			    to->fd_sock, "sendfile");
		if (n > 0)
			sock_told(to->fd_sock);
	}
	if (n < 0)
		return failed((int)-n);
	story("sendfile of file %llu at %lld: %ld of %zu bytes",
	    (unsigned long long)f->fd_inode->in_number, (long long)*off, n,
	    len);
	*off += n;
	world_point("sendfile ends");
	return n;
}

/* send(2) from a mapping of a file sends the page as it is. */
static void
send_from(struct tcp_sock *so, const char *mem, size_t len)
{
	struct map *ma = map_of(mem);
	struct segment sg = {.sg_len = (unsigned)len};
	struct inode *in;
	off_t off;

	if (ma == NULL) {
		so->so_end->se_memory(so->so_client, mem, len);
		sock_put(so, &sg);
		return;
	}
	for (in = map_place(ma, mem, &off); len > 0 && off < in->in_size;
	     off += sg.sg_len, len -= sg.sg_len) {
		sg = segment_of(in, off, len);
		sock_put(so, &sg);
	}
}

WRAP(ssize_t, send, (int fd, const void *mem, size_t len, int flags))
{
	struct tcp_sock *so = sock_of(fd);
	long n;

	(void)flags;
	world_point("send");
	kernel_call("send", NULL, 0);
	n = sock_space(so);
	if (n < 0)
		return failed((int)-n);
	if ((size_t)n > len)
		n = (long)len;
	send_from(so, mem, (size_t)n);
	sock_told(so);
	story("send from memory: %ld of %zu bytes", n, len);
	world_point("send ends");
	return n;
}

/* --------------------------------------------------------------------- pipes */

WRAP(int, pipe2, (int ends[2], int flags))
{
	(void)flags;
	world_point("pipe2");
	if (has_fault(FAULT_REFUSED) && world_once_in(20))
		return failed(EMFILE);
	ends[0] = fd_new(FD_PIPE_OUT);
	ends[1] = fd_new(FD_PIPE_IN);
	if (ends[0] == -1 || ends[1] == -1)
		world_fail("no descriptor is left for a pipe");
	fds[ends[0]].fd_pipe = fds[ends[1]].fd_pipe =
	    calloc(1, sizeof(struct pipe_sim));
	fds[ends[0]].fd_pipe->pp_ends = 2;
	return 0;
}

static struct segment *
pipe_first(struct pipe_sim *pp)
{
	return &pp->pp_segments[pp->pp_first];
}

static void
pipe_next(struct pipe_sim *pp)
{
	pp->pp_first = (pp->pp_first + 1) % COUNT(pp->pp_segments);
	pp->pp_count--;
}

void
pipe_close(struct pipe_sim *pp)
{
	if (--pp->pp_ends > 0)
		return;
	for (; pp->pp_count > 0; pipe_next(pp))
		segment_release(pipe_first(pp));
	free(pp);
}

static size_t
pipe_room(const struct pipe_sim *pp)
{
	return (COUNT(pp->pp_segments) - pp->pp_count - 2) / 2 * PAGE;
}

int
pipe_take(struct fd *f, void *to, size_t len)
{
	struct pipe_sim *pp = f->fd_pipe;
	struct segment *sg;
	size_t done = 0, n;

	while (done < len && pp->pp_count > 0) {
		sg = pipe_first(pp);
		n = len - done < sg->sg_len ? len - done : sg->sg_len;
		memcpy((char *)to + done,
		    inode_bytes(
			sg->sg_inode, sg->sg_off / PAGE, sg->sg_version) +
			sg->sg_off % PAGE,
		    n);
		done += n;
		sg->sg_off += (off_t)n;
		sg->sg_len -= (unsigned)n;
		if (sg->sg_len > 0)
			break;
		sg->sg_off--; /* a place in the page again */
		segment_release(sg);
		pipe_next(pp);
	}
	return done > 0 ? (int)done : failed(EAGAIN);
}

WRAP(ssize_t, vmsplice,
    (int fd, const struct iovec *iov, size_t n, unsigned flags))
{
	struct fd *f = fd_of(fd);
	struct map *ma = map_of(iov->iov_base);
	size_t done = 0, len = iov->iov_len, room;
	struct segment sg;
	struct inode *in;
	off_t off;

	(void)n, (void)flags;
	world_point("vmsplice");
	if (f == NULL || ma == NULL)
		return failed(f == NULL ? EBADF : EFAULT);
	in = map_place(ma, iov->iov_base, &off);
	kernel_call("vmsplice", in, off);
	room = pipe_room(f->fd_pipe);
	if (room == 0)
		return failed(EAGAIN);
	if (len > room)
		len = room;
	for (; done < len; done += sg.sg_len, off += (off_t)sg.sg_len) {
		if (off >= in->in_size)
			return done > 0 ? (ssize_t)done : failed(EFAULT);
		if (page_need(in, off, PAGE, "vmsplice") != 0)
			return done > 0 ? (ssize_t)done : failed(EFAULT);
		sg = segment_of(in, off, len - done);
		put_in_pipe(f->fd_pipe, &sg);
	}
	return (ssize_t)done;
}

/* Moves what a pipe has to a socket, or to /dev/null. */
static long
splice_out(struct pipe_sim *pp, struct fd *to, size_t len)
{
	size_t done = 0;
	struct segment part, *sg;
	bool whole;
	long room =
	    to->fd_kind == FD_NULL ? (long)len : sock_space(to->fd_sock);

	if (room < 0)
		return room;
	if ((size_t)room < len)
		len = (size_t)room;
	for (; done < len && pp->pp_count > 0; done += part.sg_len) {
		sg = pipe_first(pp);
		part = *sg;
		if (part.sg_len > len - done)
			part.sg_len = (unsigned)(len - done);
		whole = part.sg_len == sg->sg_len;
		if (!whole) {
			if (to->fd_kind == FD_SOCKET &&
			    page_at(sg->sg_inode, sg->sg_off)->pg_epoch ==
				sg->sg_epoch)
				page_keep(page_at(sg->sg_inode, sg->sg_off));
			sg->sg_off += part.sg_len;
			sg->sg_len -= part.sg_len;
		} else
			pipe_next(pp);
		if (to->fd_kind == FD_SOCKET)
			sock_put(to->fd_sock, &part);
		else if (whole)
			segment_release(&part);
	}
	if (done > 0 && to->fd_kind == FD_SOCKET)
		sock_told(to->fd_sock);
	return (long)done;
}

WRAP(ssize_t, splice,
    (int in, off_t *off, int out, off_t *unused, size_t len, unsigned flags))
{
	struct fd *from = fd_of(in), *to = fd_of(out);
	size_t room;
	long n;

	(void)unused, (void)flags;
	world_point("splice");
	if (from == NULL || to == NULL)
		return failed(EBADF);
	if (off == NULL) {
		kernel_call("splice to socket", NULL, 0);
		n = splice_out(from->fd_pipe, to, len);
	} else {
		kernel_call("splice", from->fd_inode, *off);
		room = pipe_room(to->fd_pipe);
		if (from->fd_disk->di_copies)
			return failed(EINVAL);
		n = pages_move(from, *off, len < room ? len : room, put_in_pipe,
		    to->fd_pipe, "splice");
	}
	story("splice: %ld of %zu bytes", n, len);
	world_point("splice ends");
	return n < 0 ? failed((int)-n) : n;
}

/* ------------------------------------------------------------------- options */

WRAP(int, getsockopt, (int fd, int level, int name, void *to, socklen_t *len))
{
	struct tcp_sock *so = sock_of(fd);

	world_point("getsockopt");
	memset(to, 0, *len);
	if (so == NULL) {
		*(int *)to = name == SO_ACCEPTCONN;
		return 0;
	}
	if (level == SOL_SOCKET && name == SO_MEMINFO) {
		((uint32_t *)to)[SK_MEMINFO_SNDBUF] = so->so_room;
		((uint32_t *)to)[SK_MEMINFO_WMEM_QUEUED] = so->so_queued;
	} else if (level == IPPROTO_TCP && name == TCP_INFO) {
		((struct tcp_info *)to)->tcpi_last_data_sent =
		    (uint32_t)((world_now - so->so_sent) / MS);
		((struct tcp_info *)to)->tcpi_rtt =
		    100 + world_below(2) * 30000;
	} else if (level != SOL_SOCKET)
		return failed(ENOPROTOOPT);
	return 0;
}

WRAP(int, setsockopt,
    (int fd, int level, int name, const void *from, socklen_t len))
{
	(void)from, (void)len;
	if (level == SOL_SOCKET && name == SO_LINGER)
		net_linger(sock_of(fd));
	return 0;
}
