/*
 * xfer_fixture: transmissions of files (lib/pagewise.h) into sockets and sinks for tests, which
 * read what arrives at the other end.
 */
#ifndef TESTS_XFER_FIXTURE_H
#define TESTS_XFER_FIXTURE_H

#include "lib_fixture.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "lib/send/path.h"

#define SHARE	    (128 << 10)	 /* bytes that are asked for at the least */
#define SHARE_MOST  (528 << 10)	 /* bytes of a step at most, ... */
#define SHARE_PAGES (2064 << 10) /* ... of pages that are in memory */

/* A connection with itself; what came out at the far end is kept. */
struct wire {
	int wr_sock, wr_peer;
	char *wr_data;
	size_t wr_len, wr_room;
};

/* FreeBSD refuses a size that is more than is permitted; Linux cuts it. */
static inline void
set_buffer(int sock, int which, int size)
{
	while (setsockopt(sock, SOL_SOCKET, which, &size, sizeof(size)) != 0)
		assert_true((size /= 2) > 0);
}

/*
 * Nobody reads, and it takes a few windows all the same.  FreeBSD 15 has the bytes in the
 * other end's buffer.
 */
static inline void
wire_wide(struct wire *wr)
{
	int sv[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv), 0);
	set_buffer(sv[0], SO_SNDBUF, 4 << 20);
	set_buffer(sv[1], SO_RCVBUF, 4 << 20);
	*wr = (struct wire){.wr_sock = sv[0], .wr_peer = sv[1]};
}

/*
 * Bytes: Linux doubles it.  FreeBSD puts off the acknowledgement (40 ms) of less than two
 * segments, of 16 KiB there: into less of a buffer one would go at a time.
 */
#ifdef __FreeBSD__
#define WIRE_NARROW (24 * KIB)
#else
#define WIRE_NARROW (8 * KIB)
#endif

/* Full within a window: TCP, because a local socket takes any pages whole. */
static inline void
wire_narrow(struct wire *wr)
{
	struct sockaddr_in sin = {.sin_family = AF_INET};
	struct sockaddr *sa = (struct sockaddr *)(void *)&sin;
	socklen_t len = sizeof(sin);
	int lfd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	set_buffer(lfd, SO_RCVBUF, WIRE_NARROW);
	assert_int_equal(bind(lfd, sa, len), 0);
	assert_int_equal(listen(lfd, 1), 0);
	assert_int_equal(getsockname(lfd, sa, &len), 0);
	*wr = (struct wire){.wr_sock = socket(AF_INET, SOCK_STREAM, 0)};
	set_buffer(wr->wr_sock, SO_SNDBUF, WIRE_NARROW);
	setsockopt(wr->wr_sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	assert_int_equal(connect(wr->wr_sock, sa, len), 0);
	wr->wr_peer = accept(lfd, NULL, NULL);
	assert_true(wr->wr_peer >= 0);
	assert_int_equal(fcntl(wr->wr_sock, F_SETFL, O_NONBLOCK), 0);
	close(lfd);
}

static inline struct wire
wide_wire(void)
{
	struct wire wr;

	wire_wide(&wr);
	return wr;
}

static inline struct wire
narrow_wire(void)
{
	struct wire wr;

	wire_narrow(&wr);
	return wr;
}

/* Takes what is there; how much. */
static inline size_t
wire_read(struct wire *wr)
{
	size_t before = wr->wr_len;
	ssize_t n;

	do {
		if (wr->wr_room - wr->wr_len < 64 * KIB) {
			wr->wr_room = 2 * wr->wr_room + 128 * KIB;
			wr->wr_data = realloc(wr->wr_data, wr->wr_room);
			assert_non_null(wr->wr_data);
		}
		n = recv(wr->wr_peer, wr->wr_data + wr->wr_len,
		    wr->wr_room - wr->wr_len, MSG_DONTWAIT);
		if (n > 0)
			wr->wr_len += (size_t)n;
	} while (n > 0);
	return wr->wr_len - before;
}

static inline void
wire_close(struct wire *wr)
{
	close(wr->wr_sock);
	if (wr->wr_peer != -1)
		close(wr->wr_peer);
	free(wr->wr_data);
}

/* One that is closed where its scope ends. */
#define SCOPED_WIRE SCOPED(wire_close) struct wire

/* What TLS in user space will be: it takes a part, of memory only, and may be full or fail. */
struct copying {
	struct pw_sink cy_sink; /* the first */
	int cy_sock;
	size_t cy_most;	 /* bytes at once */
	size_t cy_taken; /* in all */
	unsigned cy_calls;
	int cy_error; /* what it says next; 0: it takes something */
};

static inline int
copying_take(
    struct pw_sink *sk, const char *mem, size_t len, bool more, size_t *taken)
{
	struct copying *cy = (struct copying *)sk;
	int error;

	assert_true(len > 0);
	cy->cy_calls++;
	if (cy->cy_error != 0)
		return cy->cy_error;
	error = os_send(cy->cy_sock, mem, len < cy->cy_most ? len : cy->cy_most,
	    more || len > cy->cy_most, taken);
	cy->cy_taken += *taken;
	return error;
}

static inline long
copying_unacked(struct pw_sink *sk)
{
	return os_unacked(((struct copying *)sk)->cy_sock);
}

static inline void
copying_init(struct copying *cy, int sock, size_t most)
{
	static const struct pw_sink_ops ops = {
	    .take = copying_take, .unacked = copying_unacked};

	*cy = (struct copying){.cy_sock = sock, .cy_most = most};
	cy->cy_sink.sk_ops = &ops;
}

struct xfer {
	struct pw_send xf_send;
	struct copying xf_sink;
	unsigned xf_done;			/* calls of snd_done */
	unsigned xf_full, xf_again, xf_pending; /* answers of step */
};

static inline void
xfer_done(struct pw_send *s)
{
	((struct xfer *)s)->xf_done++;
}

/* Memory of mem_len bytes, then the range; set more in xf_send. */
static inline void
xfer_init(
    struct xfer *xf, const char *path, struct wire *wr, struct pw_file *file)
{
	*xf = (struct xfer){0};
	xf->xf_send.snd_path = pw_send_path(path);
	assert_non_null(xf->xf_send.snd_path);
	xf->xf_send.snd_loop = fx->fx_loop;
	xf->xf_send.snd_sock = wr->wr_sock;
	xf->xf_send.snd_file = file;
	xf->xf_send.snd_done = xfer_done;
	if (!fx->fx_sinks)
		return;
	copying_init(&xf->xf_sink, wr->wr_sock, 10000);
	xf->xf_send.snd_sink = &xf->xf_sink.cy_sink;
	xf->xf_send.snd_sock = -1;
}

static inline void
xfer_finish(struct xfer *xf)
{
	pw_send_finish(&xf->xf_send);
}

/* After the file and the wire: what is declared last ends first. */
#define SCOPED_XFER SCOPED(xfer_finish) struct xfer

/* Until the socket takes more. */
static inline void
wire_flush(struct wire *wr)
{
	struct pollfd pfd[] = {{.fd = wr->wr_sock, .events = POLLOUT},
	    {.fd = wr->wr_peer, .events = POLLIN}};

	do {
		if (poll(pfd, 2, PATIENCE) < 1)
			fail_msg("the socket was never writable again");
		wire_read(wr);
	} while ((pfd[0].revents & POLLOUT) == 0);
}

/* Until so much in all has come out. */
static inline void
wire_await(struct wire *wr, size_t len)
{
	struct pollfd pfd = {.fd = wr->wr_peer, .events = POLLIN};

	while (wire_read(wr), wr->wr_len < len)
		if (poll(&pfd, 1, PATIENCE) != 1)
			fail_msg("%zu of %zu bytes", wr->wr_len, len);
}

/* Not where the kernel fetches: then there are shares alone. */
static inline bool
has_windows(const struct pw_send *s)
{
	return s->snd_path != pw_send_path("native") || s->snd_file == NULL ||
	       !residency_native(s->snd_file);
}

static inline uint64_t
share_most(const struct pw_send *s)
{
	return s->snd_path->path_prefetches && s->snd_sink == NULL ? SHARE_PAGES
								   : SHARE_MOST;
}

/* One step never crosses the border of a window. */
static inline enum pw_send_status
xfer_step(struct xfer *xf)
{
	struct pw_send *s = &xf->xf_send;
	unsigned done = xf->xf_done;
	off_t window = (off_t)send_priv(s)->ss_window;
	off_t border = (s->snd_off / window + 1) * window;
	uint64_t sent = s->snd_sent;
	bool windows = has_windows(s);
	enum pw_send_status status = pw_send_step(s);

	assert_true(!windows || s->snd_off <= border);
	assert_in_range(s->snd_sent - sent, 0, share_most(s));
	assert_int_equal(xf->xf_done, done);
	assert_int_equal(s->snd_pending, status == PW_SEND_PENDING);
	xf->xf_full += status == PW_SEND_WANT_WRITE;
	xf->xf_again += status == PW_SEND_AGAIN;
	xf->xf_pending += status == PW_SEND_PENDING;
	return status;
}

/* Until the transmission ends, or has sent at least so much. */
static inline enum pw_send_status
xfer_run(struct xfer *xf, struct wire *wr, uint64_t enough)
{
	enum pw_send_status status;
	unsigned pending;

	do {
		pending = xf->xf_done;
		status = xfer_step(xf);
		if (status == PW_SEND_PENDING) {
			settle(xf->xf_send.snd_loop);
			assert_int_equal(xf->xf_done, pending + 1);
			assert_false(xf->xf_send.snd_pending);
		}
		if (status == PW_SEND_WANT_WRITE)
			wire_flush(wr);
	} while (status != PW_SEND_DONE && status != PW_SEND_ERROR &&
		 xf->xf_send.snd_sent < enough);
	if (wr->wr_peer != -1)
		wire_await(wr, xf->xf_send.snd_sent);
	return status;
}

/*
 * The wire has len bytes of a file, from this one on.  Not instrumented for TSan, which would take half of the
 * time of some tests.
 */
__attribute__((no_sanitize("thread"))) static inline void
wire_has_file(struct wire *wr, off_t from, off_t len)
{
	off_t i;

	wire_await(wr, (size_t)len);
	for (i = 0; i < len; i++)
		if ((unsigned char)wr->wr_data[i] != byte_at(from + i))
			fail_msg("byte %lld", (long long)i);
}

#endif
