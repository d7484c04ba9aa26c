/*
 * Reads, fetches and sends by io_uring, and what becomes of the paths uring, ring and aio where
 * there is none: the tests run a second time under a seccomp filter, as in a
 * container.
 */
#include "xfer_fixture.h"

#include <sys/prctl.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "lib/disk/async.h"
#include "lib/util/clock.h"

#define SIZE (256 * KIB)
#define MORE 1000 /* operations than fit into a ring */
#define STEP ((size_t)16 << 10)

struct op {
	struct pw_waiter op_waiter;
	struct async_op op_async;
	unsigned op_done;
};

static void
op_done(struct pw_waiter *w)
{
	((struct op *)(void *)w)->op_done++;
}

static void
op_init(struct op *op)
{
	*op = (struct op){.op_waiter.wt_done = op_done};
}

/* Its error. */
static int
ended(const struct op *op)
{
	settle(fx->fx_loop);
	assert_int_equal(op->op_done, 1);
	return op->op_waiter.wt_error;
}

static int
reads(struct op *op, int fd, char *buf, size_t len, off_t off)
{
	op_init(op);
	assert_int_equal(async_read(fx->fx_loop, &op->op_async, &op->op_waiter,
			     fd, buf, len, off),
	    0);
	return ended(op);
}

static int
fetches(int fd, off_t off, size_t len)
{
	struct op op;

	op_init(&op);
	assert_int_equal(async_fetch(fx->fx_loop, &op.op_async, &op.op_waiter,
			     fd, off, len, STEP),
	    0);
	return ended(&op);
}

static void
skip_without_ring(void)
{
	const char *why;

	if (async_probe(&why) != 0) {
		print_message("no ring here: %s\n", why);
		skip();
	}
}

TEST(a_read_returns_the_available_bytes)
{
	static const struct {
		off_t off;
		size_t len, got;
	} cases[] = {
	    {0, SIZE, SIZE},
	    {1, 1, 1},
	    {65535, 70000, 70000},
	    {SIZE - 3, 100, 3},
	    {SIZE, 100, 0},
	    {SIZE + 100, 100, 0},
	};
	static char buf[SIZE], expected[SIZE];
	skip_without_ring();
	SCOPED_FILE *file = new_file("f", SIZE);
	struct op op;

	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(
		    reads(&op, file->fil_fd, buf, cases[i].len, cases[i].off),
		    0);
		assert_int_equal(op.op_async.ao_result, cases[i].got);
		fill(expected, cases[i].off, cases[i].got);
		if (cases[i].got > 0)
			assert_memory_equal(buf, expected, cases[i].got);
	}
}

TEST(only_drain_delivers_completions)
{
	skip_without_ring();
	SCOPED_FILE *file = new_file("f", SIZE);
	struct pollfd pfd = {.fd = pw_loop_fd(fx->fx_loop), .events = POLLIN};
	char byte;
	struct op op;

	op_init(&op);
	assert_int_equal(async_read(fx->fx_loop, &op.op_async, &op.op_waiter,
			     file->fil_fd, &byte, 1, 0),
	    0);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 1);
	assert_int_equal(poll(&pfd, 1, PATIENCE), 1);
	pw_loop_tick(fx->fx_loop, clock_now());
	assert_int_equal(op.op_done, 0);
	pw_loop_drain(fx->fx_loop);
	assert_int_equal(op.op_done, 1);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 0);
}

TEST(more_operations_than_entries_each_end_once)
{
	static struct op ops[MORE];
	static char bytes[MORE];
	skip_without_ring();
	SCOPED_FILE *file = new_file("f", SIZE);

	for (size_t i = 0; i < MORE; i++) {
		op_init(&ops[i]);
		assert_int_equal(
		    async_read(fx->fx_loop, &ops[i].op_async, &ops[i].op_waiter,
			file->fil_fd, &bytes[i], 1, (off_t)i * 100),
		    0);
	}
	assert_int_equal(pw_loop_pending(fx->fx_loop), MORE);
	settle(fx->fx_loop);
	for (size_t i = 0; i < MORE; i++) {
		assert_int_equal(ops[i].op_done, 1);
		assert_int_equal(ops[i].op_waiter.wt_error, 0);
		assert_int_equal(
		    (unsigned char)bytes[i], byte_at((off_t)i * 100));
	}
}

/* 64 entries each, and 64 completions: more than the kernel's queue holds. */
TEST(more_fetches_than_entries_each_end_once)
{
	static struct op ops[64];
	skip_without_ring();
	SCOPED_FILE *file = new_file("f", SIZE);

	for (size_t i = 0; i < COUNT(ops); i++) {
		op_init(&ops[i]);
		assert_int_equal(
		    async_fetch(fx->fx_loop, &ops[i].op_async,
			&ops[i].op_waiter, file->fil_fd, 0, SIZE, SIZE / 32),
		    0);
	}
	settle(fx->fx_loop);
	for (size_t i = 0; i < COUNT(ops); i++) {
		assert_int_equal(ops[i].op_done, 1);
		assert_int_equal(ops[i].op_waiter.wt_error, 0);
	}
}

static bool
range_is_fetched(void)
{
	struct pw_file *file = new_file("f", SIZE);
	size_t in, out;

	posix_fadvise(file->fil_fd, 0, 0, POSIX_FADV_RANDOM);
	assert_true(evict(file->fil_fd, SIZE));
	assert_int_equal(fetches(file->fil_fd, 0, SIZE / 2), 0);
	in = pages_resident(file->fil_fd, 0, SIZE / 2);
	out = pages_resident(file->fil_fd, SIZE / 2, SIZE / 2);
	assert_int_equal(out, 0);
	pw_file_unref(&file);
	return in == pages_in(SIZE / 2);
}

TEST(a_fetch_reads_only_its_range)
{
	skip_without_ring();
	skip_unless(NEED_EVICTION);
	assert_true(holds_in_one_of(5, range_is_fetched));
}

TEST(the_longest_fetch_succeeds)
{
	skip_without_ring();
	SCOPED_FILE *file = new_file("f", ASYNC_STEPS * STEP);

	assert_int_equal(fetches(file->fil_fd, 0, ASYNC_STEPS * STEP), 0);
}

TEST(a_range_beyond_the_end_is_stale)
{
	skip_without_ring();
	SCOPED_FILE *file = new_file("f", SIZE);

	assert_int_equal(fetches(file->fil_fd, SIZE - 10, 10), 0);
	assert_int_equal(fetches(file->fil_fd, SIZE - 10, 11), -ESTALE);
	assert_int_equal(fetches(file->fil_fd, 0, SIZE + 1), -ESTALE);
	assert_int_equal(fetches(file->fil_fd, SIZE, 5 * STEP), -ESTALE);
}

/* Nothing is mapped at address 0: that is EIO. */
TEST(errors_are_reported)
{
	skip_without_ring();
	SCOPED(close_at) int fd = open("/proc/self/mem", O_RDONLY);
	char buf[10];
	struct op op;

	assert_int_equal(reads(&op, fd, buf, 10, 0), -EIO);
	assert_int_equal(op.op_async.ao_result, 0);
	assert_int_equal(fetches(fd, 0, 3 * STEP), -EIO);
	assert_int_equal(reads(&op, -1, buf, 10, 0), -EBADF);
	assert_int_equal(fetches(-1, 0, 3 * STEP), -EBADF);
}

/* ------------------------------------------------------------ with and without */

static void
sends(const char *path, struct pw_file *file)
{
	static char expected[SIZE];
	SCOPED_WIRE wr;
	SCOPED_XFER xf;

	fill(expected, 0, SIZE);
	wire_narrow(&wr);
	as_another_owner(file);
	xfer_init(&xf, path, &wr, file);
	xf.xf_send.snd_readahead = SIZE / 4;
	xf.xf_send.snd_len = SIZE;
	pw_send_start(&xf.xf_send);
	assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
	settle(fx->fx_loop);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	assert_int_equal(wr.wr_len, SIZE);
	assert_memory_equal(wr.wr_data, expected, SIZE);
}

TEST(their_paths_send_the_whole_file)
{
	SCOPED_FILE *file;

	skip_unless(NEED_NOWAIT);
	file = new_file("f", SIZE);
	sends("uring", file);
	sends("aio", file);
	sends("ring", file);
}

TEST(a_file_that_shrank_is_stale_on_all)
{
	static const char *const paths[] = {"uring", "aio", "ring"};
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;

	for (size_t i = 0; i < COUNT(paths); i++) {
		file = new_file(paths[i], SIZE);
		assert_int_equal(truncate(path_in(paths[i]), 0), 0);
		wire_wide(&wr);
		xfer_init(&xf, paths[i], &wr, file);
		xf.xf_send.snd_len = SIZE;
		pw_send_start(&xf.xf_send);
		assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_ERROR);
		assert_int_equal(xf.xf_send.snd_error, -ESTALE);
		assert_int_equal(wr.wr_len, 0);
		pw_send_finish(&xf.xf_send);
		pw_file_unref(&file);
		wire_close(&wr);
	}
}

/* Starts a read of `len` bytes at `off`, and a send to the wire; waits until both have ended. */
static void
reads_and_sends(
    struct op *op, struct wire *wr, int fd, char *buf, size_t len, off_t off)
{
	op_init(op);
	assert_int_equal(
	    async_read_send(fx->fx_loop, &op->op_async, &op->op_waiter,
		&(struct async_relay){fd, off, buf, len, wr->wr_sock}),
	    0);
	assert_int_equal(ended(op), 0);
	wire_read(wr);
}

TEST(a_send_follows_its_read)
{
	static char buf[SIZE], expected[SIZE];
	skip_without_ring();
	SCOPED_FILE *file = new_file("f", SIZE);
	SCOPED_WIRE wr = wide_wire();
	struct op op;

	reads_and_sends(&op, &wr, file->fil_fd, buf, STEP, 100);
	assert_int_equal(op.op_async.ao_result, STEP);
	assert_int_equal(op.op_async.ao_sent, STEP);
	fill(expected, 100, STEP);
	assert_int_equal(wr.wr_len, STEP);
	assert_memory_equal(wr.wr_data, expected, STEP);
}

/* A short read, and a read that fails. */
TEST(without_all_bytes_nothing_is_sent)
{
	static char buf[SIZE];
	skip_without_ring();
	SCOPED_FILE *file = new_file("f", SIZE);
	SCOPED_WIRE wr = wide_wire();
	struct op op;

	reads_and_sends(&op, &wr, file->fil_fd, buf, STEP, SIZE - 3);
	assert_int_equal(op.op_async.ao_result, 3);
	assert_int_equal(op.op_async.ao_sent, -ECANCELED);
	op_init(&op);
	assert_int_equal(
	    async_read_send(fx->fx_loop, &op.op_async, &op.op_waiter,
		&(struct async_relay){-1, 0, buf, STEP, wr.wr_sock}),
	    0);
	assert_int_equal(ended(&op), -EBADF);
	assert_int_equal(op.op_async.ao_sent, -ECANCELED);
	wire_read(&wr);
	assert_int_equal(wr.wr_len, 0);
}

TEST(a_full_socket_takes_what_fits)
{
	static char buf[SIZE];
	skip_without_ring();
	SCOPED_FILE *file = new_file("f", SIZE);
	SCOPED_WIRE wr = narrow_wire();
	struct op op;
	size_t sent = 0;

	do {
		op_init(&op);
		assert_int_equal(
		    async_read_send(fx->fx_loop, &op.op_async, &op.op_waiter,
			&(struct async_relay){
			    file->fil_fd, 0, buf, SIZE, wr.wr_sock}),
		    0);
		assert_int_equal(ended(&op), 0);
		assert_int_equal(op.op_async.ao_result, SIZE);
		if (op.op_async.ao_sent > 0)
			sent += (size_t)op.op_async.ao_sent;
	} while (op.op_async.ao_sent == (int)SIZE);
	assert_true(op.op_async.ao_sent > 0 || op.op_async.ao_sent == -EAGAIN);
	wire_read(&wr);
	assert_true(wr.wr_len <= sent);
}

/* For this thread and those that it starts. */
static bool
forbid_rings(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {COUNT(code), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* From now on: these tests are the last ones. */
static int
setup_without_rings(void **state)
{
	return forbid_rings() ? setup(state) : -1;
}

TEST(without_a_ring_the_cause_is_reported, setup_without_rings)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	const char *why = NULL;
	struct op op;
	char byte;

	op_init(&op);
	assert_int_equal(async_probe(&why), -EPERM);
	assert_non_null(strstr(why, "seccomp"));
	assert_int_equal(pw_send_probe(pw_send_path("uring"), &why), -EPERM);
	assert_int_equal(pw_send_probe(pw_send_path("ring"), &why), -EPERM);
	assert_int_equal(pw_send_probe(pw_send_path("aio"), &why), 0);
	assert_int_equal(async_read(fx->fx_loop, &op.op_async, &op.op_waiter,
			     file->fil_fd, &byte, 1, 0),
	    -ENOSYS);
	assert_int_equal(async_fetch(fx->fx_loop, &op.op_async, &op.op_waiter,
			     file->fil_fd, 0, STEP, STEP),
	    -ENOSYS);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 0);
	assert_int_equal(op.op_done, 0);
}

AGAIN(their_paths_send_the_whole_file, setup_without_rings);
AGAIN(a_file_that_shrank_is_stale_on_all, setup_without_rings);
