/*
 * lib_fixture: a directory on a real file system, a pool, a loop, files whose
 * bytes depend on their offsets, and what is in memory of them, for the tests
 * of the library.
 */
#ifndef TESTS_LIB_FIXTURE_H
#define TESTS_LIB_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/disk/file_private.h"
#include "lib/disk/pins.h"
#include "lib/disk/pool.h"
#include "lib/disk/pool_priv.h"
#include "lib/file/file.h"
#include "lib/file/residency.h"
#include "lib/pagewise.h"
#include "lib/send/send_private.h"
#include "lib/util/clock.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define PATIENCE 60000 /* milliseconds: for what never happens */
#define KIB	 1024

#if defined(__linux__) && !defined(OWN_RECLAIM)
/* A yes holds as short as it ever does, whatever the machine does besides. */
int
os_reclaim_open(void)
{
	return -ENOSYS;
}

int64_t
os_reclaimed(int fd)
{
	(void)fd;
	return -ENOSYS;
}
#endif

struct fixture {
	char fx_dir[256];
	struct pw_pool *fx_pool;
	struct pw_loop *fx_loop;
	struct pw_root *fx_root;
	bool fx_sinks; /* transmissions go into a pw_sink that copies */
};

/* Of one loop, until nothing is pending. */
static inline void
settle(struct pw_loop *lp)
{
	struct pollfd pfd = {.fd = pw_loop_fd(lp), .events = POLLIN};

	while (pw_loop_pending(lp) > 0) {
		if (poll(&pfd, 1, PATIENCE) != 1)
			fail_msg("%u waits never ended", pw_loop_pending(lp));
		pw_loop_drain(lp);
	}
}

/* /tmp is often a tmpfs, which never evicts a page: rather build/. */
static inline int
make_directory(struct fixture *fx)
{
	const char *parent = getenv("TMPDIR");

	if (parent == NULL)
		parent = access("build", W_OK) == 0 ? "build" : "/tmp";
	snprintf(fx->fx_dir, sizeof(fx->fx_dir), "%s/pagewise.XXXXXX", parent);
	return mkdtemp(fx->fx_dir) == NULL ? -1 : 0;
}

static inline int
setup_with(void **state, unsigned threads, unsigned queue, unsigned open_files)
{
	struct pw_pool_conf pool = {threads, queue};
	struct pw_loop_conf loop = {.plc_open_files = open_files};
	struct fixture *fx = calloc(1, sizeof(*fx));

	signal(SIGPIPE, SIG_IGN);
	*state = fx;
	if (fx == NULL || make_directory(fx) != 0 ||
	    pw_pool_create(&pool, &fx->fx_pool) != 0 ||
	    pw_loop_create(fx->fx_pool, &loop, &fx->fx_loop) != 0)
		return -1;
	/* Also where this test's own control group is limited. */
	fx->fx_pool->pl_sockets = false;
	return pw_root_open(fx->fx_dir, &fx->fx_root);
}

/* Then what is fetched can be evicted before it is sent. */
static inline void
leave_no_room_for_pins(struct fixture *fx)
{
	for (size_t len = SIZE_MAX / 4; len > 0; len /= 2)
		while (pins_reserve(fx->fx_pool->pl_pins, len))
			continue;
}

static inline int
setup(void **state)
{
	return setup_with(state, 0, 0, 0);
}

/* One thread and a queue of one: what is taken in can be counted. */
static inline int
setup_narrow(void **state)
{
	return setup_with(state, 1, 1, 0);
}

static inline int
setup_sinks(void **state)
{
	int error = setup(state);

	((struct fixture *)*state)->fx_sinks = true;
	return error;
}

/* What a gate holds up is all that is queued. */
static inline int
setup_one_thread(void **state)
{
	return setup_with(state, 1, 0, 0);
}

static inline int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline int
teardown(void **state)
{
	struct fixture *fx = *state;
	int error;

	settle(fx->fx_loop);
	pw_loop_destroy(&fx->fx_loop);
	pw_root_close(&fx->fx_root);
	error = pw_pool_destroy(&fx->fx_pool, PATIENCE * 1000);
	nftw(fx->fx_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(fx);
	return error;
}

/* -------------------------------------------------------------------- files */

/* The period is a prime, and each 64 KiB differs: nothing can be shifted. */
static inline unsigned char
byte_at(off_t off)
{
	return (unsigned char)(off % 251 + off / 65536 * 7);
}

static inline void
fill(char *data, off_t off, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		data[i] = (char)byte_at(off + (off_t)i);
}

static inline char *
path_in(const struct fixture *fx, const char *name)
{
	static char path[sizeof(fx->fx_dir) + 300];

	snprintf(path, sizeof(path), "%s/%s", fx->fx_dir, name);
	return path;
}

/* Written through, so that its pages can be evicted. */
static inline void
make_file(const struct fixture *fx, const char *name, size_t size)
{
	int fd = open(path_in(fx, name), O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *data = malloc(size + 1);

	assert_true(fd >= 0);
	assert_non_null(data);
	fill(data, 0, size);
	assert_int_equal(write(fd, data, size), size);
	assert_int_equal(fsync(fd), 0);
	free(data);
	close(fd);
}

static inline void
make_empty(const struct fixture *fx, const char *name)
{
	int fd = open(path_in(fx, name), O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	close(fd);
}

/* One more name of an empty file.  Thousands of inodes take seconds to make and to remove. */
static inline void
make_link(const struct fixture *fx, const char *file, const char *name)
{
	char *from = strdup(path_in(fx, file));

	assert_non_null(from);
	assert_int_equal(link(from, path_in(fx, name)), 0);
	free(from);
}

/* Pages of the range that are in memory; looking does not bring them in. */
static inline size_t
pages_resident(int fd, off_t off, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), i, n = 0;
	size_t pages = (len + page - 1) / page;
	void *map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, off);
	unsigned char *vec = malloc(pages + 1);

	assert_true(map != MAP_FAILED);
	assert_non_null(vec);
	assert_int_equal(mincore(map, len, (void *)vec), 0);
	for (i = 0; i < pages; i++)
		n += vec[i] & 1;
	free(vec);
	munmap(map, len);
	return n;
}

static inline size_t
pages_in(size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (len + page - 1) / page;
}

/* False where the file system cannot do that.  No earlier yes holds after it. */
static inline bool
evict(int fd, size_t size)
{
	int tries;

	for (tries = 0; tries < 100; tries++) {
		fdatasync(fd);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		usleep(RESIDENCY_HOLDS);
		if (pages_resident(fd, 0, size) == 0)
			return true;
	}
	return false;
}

/*
 * Locks pages in memory until let_go: the kernel may reclaim others at any
 * moment.  NULL: not permitted.  A system call, because AddressSanitizer makes
 * mlock do nothing.
 */
static inline void *
hold(int fd, size_t size)
{
	void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (map != MAP_FAILED && syscall(SYS_mlock, map, size) == 0)
		return map;
	if (map != MAP_FAILED)
		munmap(map, size);
	return NULL;
}

static inline void
let_go(void *map, size_t size)
{
	if (map != NULL)
		munmap(map, size);
}

/* For claims about pages that stay, which nobody else must have reclaimed. */
static inline bool
holds_in_one_of(int tries, bool (*claim)(struct fixture *), struct fixture *fx)
{
	while (tries-- > 0)
		if (claim(fx))
			return true;
	return false;
}

/*
 * What TCP has delivered is freed by the CPU that sent it, some time later:
 * with one CPU it is freed at once, and its pages can be evicted.
 */
static inline void
stay_on_one_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Without kernel read-ahead, as nodiskio does it. */
static inline void
read_in(int fd, off_t off, size_t len)
{
	char *data = malloc(len);

	assert_non_null(data);
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	assert_int_equal(pread(fd, data, len, off), len);
	free(data);
}

static inline void
nothing_done(struct pw_waiter *w)
{
	(void)w;
}

/* pw_file_open, and the wait for it if there is one. */
static inline int
open_at(struct fixture *fx, const char *path, uint64_t now_us,
    struct pw_file **file)
{
	struct pw_open op = {.op_waiter.wt_done = nothing_done};
	int error;

	error = pw_file_open(fx->fx_loop, fx->fx_root, path, now_us, &op);
	if (error == -EINPROGRESS) {
		settle(fx->fx_loop);
		error = op.op_waiter.wt_error;
	}
	*file = op.op_file;
	assert_int_equal(error == 0, op.op_file != NULL);
	return error;
}

static inline struct pw_file *
open_file(struct fixture *fx, const char *path)
{
	struct pw_file *file;

	assert_int_equal(open_at(fx, path, clock_now(), &file), 0);
	return file;
}

/* A new file of this size, opened. */
static inline struct pw_file *
new_file(struct fixture *fx, const char *name, size_t size)
{
	make_file(fx, name, size);
	return open_file(fx, name);
}

/* Neither cachestat nor mincore tells about it: RWF_NOWAIT does, in pieces. */
static inline void
as_another_owner(struct pw_file *file)
{
	file_priv(file)->fp_cachestat = false;
	file_priv(file)->fp_mincore = false;
}

/* What not every file system, kernel and user can do. */
enum need {
	NEED_EVICTION = 1, /* pages go when they are told to */
	NEED_NOWAIT = 2,   /* residency is asked by RWF_NOWAIT */
	NEED_EXACT = 4,	   /* and the owner is told about each page */
	NEED_LOCK = 8,	   /* of memory */
};

static inline bool
can(struct pw_file *file, enum need need)
{
	size_t size = (size_t)file->fil_size;
	void *held;

	switch (need) {
	case NEED_EVICTION:
		return evict(file->fil_fd, size);
	case NEED_NOWAIT:
		return file_priv(file)->fp_ask == OS_ASK_NOWAIT;
	case NEED_EXACT:
		return file_priv(file)->fp_cachestat ||
		       file_priv(file)->fp_mincore;
	case NEED_LOCK:
		held = hold(file->fil_fd, size);
		let_go(held, size);
		return held != NULL;
	}
	return false;
}

/* First of all in a test: what is skipped later has leaked something. */
static inline void
skip_unless(struct fixture *fx, unsigned needs)
{
	static const char *const texts[] = {"eviction of pages", "RWF_NOWAIT",
	    "exact answers", "permission to lock memory"};
	struct pw_file *file = new_file(fx, "probe", 256 * KIB);
	const char *missing = NULL;
	unsigned i;

	for (i = 0; i < COUNT(texts); i++)
		if ((needs & 1u << i) != 0 && !can(file, (enum need)(1u << i)))
			missing = texts[i];
	pw_file_unref(&file);
	if (missing != NULL) {
		print_message("%s: no %s here\n", fx->fx_dir, missing);
		skip();
	}
}

/* -------------------------------------------------------------------- latches */

/* Holds one thread of a device until it is opened. */
struct latch {
	sem_t la_begun;
	sem_t la_open;
	struct pw_waiter la_waiter;
};

struct latch_job {
	struct job lj_job;
	struct latch *lj_latch;
};

static inline void
sem_await(sem_t *sem)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += PATIENCE / 1000;
	if (sem_timedwait(sem, &ts) != 0)
		fail_msg("a job was never begun");
}

static inline int
latch_run(struct job *job)
{
	struct latch *la = ((struct latch_job *)job)->lj_latch;

	sem_post(&la->la_begun);
	while (sem_wait(&la->la_open) != 0)
		continue;
	return 0;
}

/* Returns when the thread is held. */
static inline void
latch_shut_kind(struct latch *la, enum job_kind kind, struct pw_device *dv,
    struct pw_loop *lp)
{
	struct latch_job *gj = calloc(1, sizeof(*gj));

	assert_non_null(gj);
	sem_init(&la->la_begun, 0, 0);
	sem_init(&la->la_open, 0, 0);
	la->la_waiter.wt_done = nothing_done;
	gj->lj_job.job_run = latch_run;
	gj->lj_job.job_kind = kind;
	gj->lj_latch = la;
	assert_int_equal(
	    pool_submit(dv, &gj->lj_job, ADMIT_BEGUN, lp, &la->la_waiter), 0);
	sem_await(&la->la_begun);
}

static inline void
latch_shut(struct latch *la, struct pw_device *dv, struct pw_loop *lp)
{
	latch_shut_kind(la, JOB_LONG, dv, lp);
}

static inline void
latch_open(struct latch *la)
{
	sem_post(&la->la_open);
}

/* ------------------------------------------------------------ transmissions */

#define SHARE	   (128 << 10) /* bytes that are asked for at the least */
#define SHARE_MOST (528 << 10) /* bytes of a step at most */

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
xfer_init(struct xfer *xf, const char *path, struct fixture *fx,
    struct wire *wr, struct pw_file *file)
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
	assert_in_range(s->snd_sent - sent, 0, SHARE_MOST);
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

/* The wire has len bytes of a file, from this one on. */
static inline void
wire_has_file(struct wire *wr, off_t from, off_t len)
{
	off_t i;

	wire_await(wr, (size_t)len);
	for (i = 0; i < len; i++)
		if ((unsigned char)wr->wr_data[i] != byte_at(from + i))
			fail_msg("byte %lld", (long long)i);
}

static inline bool
is_open(int fd)
{
	return fcntl(fd, F_GETFD) != -1;
}

static inline int
count_fds(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 1024; fd++)
		n += is_open(fd);
	return n;
}

/* Descriptors of removed files are closed by the pool. */
static inline void
await_closed(int fd)
{
	int ms;

	for (ms = 0; is_open(fd) && ms < PATIENCE; ms++)
		usleep(1000);
	assert_false(is_open(fd));
}

#endif
