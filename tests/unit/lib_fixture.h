/*
 * lib_fixture: a directory on a real file system, a pool, a loop, files whose
 * bytes depend on their offsets, and what is in memory of them, for the tests
 * of the library.
 */
#ifndef TESTS_LIB_FIXTURE_H
#define TESTS_LIB_FIXTURE_H

#include "test.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>

#include "lib/disk/drop_lock.h"
#include "lib/disk/file_private.h"
#include "lib/disk/pins.h"
#include "lib/disk/pool.h"
#include "lib/disk/pool_priv.h"
#include "lib/file/file.h"
#include "lib/file/residency.h"
#include "lib/pagewise.h"
#include "lib/send/send_private.h"
#include "lib/util/clock.h"

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

static struct fixture *fx; /* of the test that runs */

/* A file that is released where its scope ends. */
#define SCOPED_FILE SCOPED(pw_file_unref) struct pw_file

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

/* Delivers all that has ended. */
static inline void
drain_all(struct pw_loop *lp)
{
	struct pollfd pfd = {.fd = pw_loop_fd(lp), .events = POLLIN};

	do
		pw_loop_drain(lp);
	while (poll(&pfd, 1, 0) == 1);
}

/* /tmp is often a tmpfs, which never evicts a page: rather build/. */
static inline int
make_directory(void)
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

	signal(SIGPIPE, SIG_IGN);
	*state = fx = calloc(1, sizeof(*fx));
	if (fx == NULL || make_directory() != 0 ||
	    pw_pool_create(&pool, &fx->fx_pool) != 0 ||
	    pw_loop_create(fx->fx_pool, &loop, &fx->fx_loop) != 0)
		return -1;
	/* Also where this test's own control group is limited. */
	fx->fx_pool->pl_sockets = false;
	return pw_root_open(fx->fx_dir, &fx->fx_root);
}

/* Then what is fetched can be evicted before it is sent. */
static inline void
leave_no_room_for_pins(void)
{
	for (size_t len = SIZE_MAX / 4; len > 0; len /= 2)
		while (pins_reserve(fx->fx_pool->pl_pins, len))
			continue;
}

int
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

	fx->fx_sinks = true;
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

int
teardown(void **state)
{
	int error;

	(void)state;
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
path_in(const char *name)
{
	static char path[sizeof(fx->fx_dir) + 300];

	snprintf(path, sizeof(path), "%s/%s", fx->fx_dir, name);
	return path;
}

/* Written through, so that its pages can be evicted. */
static inline void
make_file(const char *name, size_t size)
{
	SCOPED(close_at)
	int fd = open(path_in(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
	SCOPED(free_at) char *data = malloc(size + 1);

	assert_true(fd >= 0);
	assert_non_null(data);
	fill(data, 0, size);
	assert_int_equal(write(fd, data, size), size);
	assert_int_equal(fsync(fd), 0);
}

static inline void
make_empty(const char *name)
{
	SCOPED(close_at)
	int fd = open(path_in(name), O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
}

/* One more name of an empty file.  Thousands of inodes take seconds to make and to remove. */
static inline void
make_link(const char *file, const char *name)
{
	SCOPED(free_at) char *from = strdup(path_in(file));

	assert_non_null(from);
	assert_int_equal(link(from, path_in(name)), 0);
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
holds_in_one_of(int tries, bool (*claim)(void))
{
	while (tries-- > 0)
		if (claim())
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

#ifdef ON_ONE_CPU
int
setup_all(void **state)
{
	(void)state;
	stay_on_one_cpu();
	return 0;
}
#endif

/* Without kernel read-ahead, as nodiskio does it. */
static inline void
read_in(int fd, off_t off, size_t len)
{
	SCOPED(free_at) char *data = malloc(len);

	assert_non_null(data);
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	assert_int_equal(pread(fd, data, len, off), len);
}

static inline void
nothing_done(struct pw_waiter *w)
{
	(void)w;
}

/* pw_file_open, and the wait for it if there is one. */
static inline int
open_at(const char *path, uint64_t now_us, struct pw_file **file)
{
	struct pw_open op = {.op_waiter.wt_done = nothing_done};
	int error = pw_file_open(fx->fx_loop, fx->fx_root, path, now_us, &op);

	if (error == -EINPROGRESS) {
		settle(fx->fx_loop);
		error = op.op_waiter.wt_error;
	}
	*file = op.op_file;
	assert_int_equal(error == 0, op.op_file != NULL);
	return error;
}

/* Opens a file for which DROP_GRACE has passed. */
static inline struct pw_file *
open_file(const char *path)
{
	struct pw_file *file;

	assert_int_equal(open_at(path, clock_now(), &file), 0);
	atomic_store(&file_priv(file)->fp_drop_lock->dl_since, 1);
	return file;
}

/* A new file of this size, opened. */
static inline struct pw_file *
new_file(const char *name, size_t size)
{
	make_file(name, size);
	return open_file(name);
}

/* Opens and gives back at once: the pointer says which file it was. */
static inline const struct pw_file *
peek(const char *path, uint64_t now_us)
{
	SCOPED_FILE *file;

	assert_int_equal(open_at(path, now_us, &file), 0);
	return file;
}

static inline int
open_error(const char *path, uint64_t now_us)
{
	SCOPED_FILE *file;

	return open_at(path, now_us, &file);
}

/* An open, and how often its end was told. */
struct asked {
	struct pw_open as_open;
	unsigned as_times;
};

static inline void
asked_done(struct pw_waiter *w)
{
	((struct asked *)w)->as_times++;
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
skip_unless(unsigned needs)
{
	static const char *const texts[] = {"eviction of pages", "RWF_NOWAIT",
	    "exact answers", "permission to lock memory"};
	struct pw_file *file = new_file("probe", 256 * KIB);
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

/* Opens it, and returns when nothing is pending. */
static inline void
latch_finish(struct latch *la)
{
	latch_open(la);
	settle(fx->fx_loop);
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
