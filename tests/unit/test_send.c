/*
 * The rules of the seam (lib/pagewise.h), on every send path: exactly the
 * promised bytes, one window a step, one completion for each wait.
 */
#define ON_ONE_CPU
#include "cold_fixture.h"
#include "send_fixture.h"

#include "lib/disk/pool_priv.h"

#define MEM_MAX 100000

/* Sends mem_len bytes of memory, then a range; what came out is compared. */
static void
send_range(const char *path, struct pw_file *file, size_t mem_len, off_t off,
    off_t len, bool narrow)
{
	static char mem[MEM_MAX];
	SCOPED(free_at) char *expected = malloc((size_t)len + 1);
	SCOPED_WIRE wr;
	struct xfer xf;
	uint64_t most;
	bool windows;

	memset(mem, 'm', sizeof(mem));
	assert_non_null(expected);
	fill(expected, off, (size_t)len);
	if (narrow)
		wire_narrow(&wr);
	else
		wire_wide(&wr);
	xfer_init(&xf, path, &wr, file);
	xf.xf_send.snd_readahead = (uint64_t)WINDOW;
	xf.xf_send.snd_mem = mem;
	xf.xf_send.snd_mem_len = mem_len;
	xf.xf_send.snd_off = off;
	xf.xf_send.snd_len = len;
	pw_send_start(&xf.xf_send);
	windows = has_windows(&xf.xf_send);
	most = share_most(&xf.xf_send);
	assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_DONE);
	pw_send_finish(&xf.xf_send);
	assert_null(xf.xf_send.snd_file);
	assert_int_equal(xf.xf_send.snd_sent, mem_len + (size_t)len);
	assert_int_equal(wr.wr_len, mem_len + (size_t)len);
	if (mem_len > 0)
		assert_memory_equal(wr.wr_data, mem, mem_len);
	if (len > 0)
		assert_memory_equal(
		    wr.wr_data + mem_len, expected, (size_t)len);
	if (narrow && mem_len + (size_t)len > WINDOW)
		assert_true(xf.xf_full > 0);
	/* Others have their turn after each share and at each window's end. */
	if (len > 0 && windows)
		assert_true(xf.xf_again + xf.xf_pending >=
			    (off + len - 1) / WINDOW - off / WINDOW);
	assert_true(xf.xf_again + xf.xf_full + xf.xf_pending + 1 >=
		    (mem_len + (size_t)len + most - 1) / most);
}

static const struct {
	off_t off, len;
} ranges[] = {
    {0, 0},
    {0, 1},
    {0, SIZE},
    {SIZE, 0},
    {SIZE - 1, 1},
    {0, WINDOW},
    {WINDOW, WINDOW},
    {WINDOW - 1, 1},
    {WINDOW - 1, 2},
    {WINDOW - 1, WINDOW + 2},
    {1, 3 * WINDOW - 2},
    {4095, 4098},
    {2 * WINDOW + 77, WINDOW + 12345 - 77},
};

/* Evicts the file, also what the path mlock has locked. */
static void
forget(struct pw_file *file)
{
	pins_reap(fx->fx_pool->pl_pins, file->fil_dev);
	assert_true(evict(file->fil_fd, (size_t)SIZE));
}

static void
send_every_range(struct pw_file *file, bool cold)
{
	static const size_t mems[] = {0, 1, 300, MEM_MAX};
	const char *const *path;
	size_t r, m;
	int narrow;

	for (path = pw_send_path_names(); *path != NULL; path++)
		for (r = 0; r < COUNT(ranges); r++)
			for (m = 0; m < COUNT(mems); m++)
				for (narrow = 0; narrow <= 1; narrow++) {
					if (cold)
						forget(file);
					send_range(*path, file, mems[m],
					    ranges[r].off, ranges[r].len,
					    narrow);
				}
}

TEST(every_path_sends_exactly_memory_and_range)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);

	send_every_range(file, false);
	settle_cold(fx->fx_loop);
	/* Ours, and the cache's, which ends after some time. */
	assert_in_range(file_priv(file)->fp_refs, 1, 2);
}

AGAIN(every_path_sends_exactly_memory_and_range, setup_sinks);

TEST(every_path_sends_the_same_from_the_disk)
{
	SCOPED_FILE *file;

	skip_unless(NEED_EVICTION);
	file = new_file("f", (size_t)SIZE);
	send_every_range(file, true);
}

AGAIN(every_path_sends_the_same_from_the_disk, setup_sinks);

static const struct pw_send *numbered; /* last argument of number_of_client */

static unsigned
number_of_client(void *arg, const struct pw_send *s)
{
	assert_null(arg);
	numbered = s;
	return 4711;
}

/* Sends an uncached file by nodiskio. */
static void
send_uncached(struct pw_file *file)
{
	numbered = NULL;
	assert_true(evict(file->fil_fd, (size_t)SIZE));
	send_range("nodiskio", file, 0, 0, SIZE, false);
}

TEST(only_reads_of_a_disk_need_the_client)
{
	SCOPED_FILE *file;

	skip_unless(NEED_EVICTION);
	file = new_file("f", (size_t)SIZE);
	fx->fx_loop->lp_conf.plc_client = number_of_client;
	send_uncached(file);
	assert_non_null(numbered);
	numbered = NULL;
	send_range("nodiskio", file, 0, 0, SIZE, false);
	assert_null(numbered);
}

TEST(a_file_is_not_needed)
{
	const char *const *path;
	struct wire wr;
	struct xfer xf;

	for (path = pw_send_path_names(); *path != NULL; path++) {
		wire_wide(&wr);
		xfer_init(&xf, *path, &wr, NULL);
		xf.xf_send.snd_mem = "only this";
		xf.xf_send.snd_mem_len = 9;
		xf.xf_send.snd_len = 77;
		pw_send_start(&xf.xf_send);
		assert_int_equal(xfer_step(&xf), PW_SEND_DONE);
		pw_send_finish(&xf.xf_send);
		wire_read(&wr);
		assert_int_equal(wr.wr_len, 9);
		assert_memory_equal(wr.wr_data, "only this", 9);
		wire_close(&wr);
	}
}

AGAIN(a_file_is_not_needed, setup_sinks);

#ifdef __FreeBSD__
#define DEFAULT "native"
static const char *const refused[] = {"uring", "ring", "splice"};
#else
#define DEFAULT "nodiskio"
static const char *const refused[] = {"native"};
#endif

static bool
is_refused(const char *path)
{
	for (size_t i = 0; i < COUNT(refused); i++)
		if (strcmp(refused[i], path) == 0)
			return true;
	return false;
}

TEST(nodiskio_is_the_default_and_an_unknown_name_is_no_path, NULL)
{
	const char *const *path;
	const char *why;

	assert_string_equal(pw_send_path_names()[0], "native");
#ifndef __FreeBSD__
	assert_int_equal(pw_send_probe(pw_send_path("native"), &why), -ENOSYS);
	assert_non_null(strstr(why, "FreeBSD"));
#endif
	assert_ptr_equal(pw_send_default(), pw_send_path(DEFAULT));
	for (path = pw_send_path_names(); *path != NULL; path++) {
		assert_non_null(pw_send_path(*path));
		assert_int_equal(pw_send_probe(pw_send_path(*path), &why) == 0,
		    !is_refused(*path));
	}
	assert_null(pw_send_path(""));
	assert_null(pw_send_path("copyx"));
	assert_null(pw_send_path("nodisk"));
}

TEST(a_file_that_shrinks_is_an_error_and_never_padded)
{
	const off_t cut = 2 * WINDOW + 4096;
	const char *const *path;
	struct pw_file *file;
	SCOPED(free_at) char *expected = malloc((size_t)cut);
	struct wire wr;
	struct xfer xf;

	assert_non_null(expected);
	fill(expected, 0, (size_t)cut);
	for (path = pw_send_path_names(); *path != NULL; path++) {
		file = new_file(*path, (size_t)SIZE);
		wire_narrow(&wr);
		start_whole(&xf, *path, &wr, file);
		xfer_run(&xf, &wr, (uint64_t)WINDOW + 1);
		assert_in_range(wr.wr_len, WINDOW + 1, cut - 1);
		assert_int_equal(truncate(path_in(*path), cut), 0);
		assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_ERROR);
		assert_int_equal(xf.xf_send.snd_error, -ESTALE);
		assert_int_equal(xfer_step(&xf), PW_SEND_ERROR);
		assert_in_range(wr.wr_len, WINDOW + 1, cut);
		assert_int_equal(wr.wr_len, xf.xf_send.snd_sent);
		assert_memory_equal(wr.wr_data, expected, wr.wr_len);
		pw_send_finish(&xf.xf_send);
		pw_file_unref(&file);
		wire_close(&wr);
	}
}

AGAIN(a_file_that_shrinks_is_an_error_and_never_padded, setup_sinks);

/* Changes the file while it is sent.  Returns true if all of it was sent. */
static bool
is_sent_though_changed(const char *path, bool grows, int how)
{
	const struct timespec other[2] = {{1000, 0}, {1000, 0}};
	SCOPED_FILE *file = new_file(path, (size_t)SIZE);
	SCOPED_WIRE wr = narrow_wire();
	SCOPED_XFER xf;
	bool all;
	int fd;

	start_whole(&xf, path, &wr, file);
	xf.xf_send.snd_grows = grows;
	xfer_run(&xf, &wr, (uint64_t)WINDOW + 1);
	fd = open(path_in(path), O_WRONLY | how);
	assert_int_equal(write(fd, "more of it", 10), 10);
	/* The kernel's clock for file times may not have moved. */
	assert_int_equal(futimens(fd, other), 0);
	close(fd);
	all = xfer_run(&xf, &wr, ALL) == PW_SEND_DONE;
	assert_int_equal(xf.xf_send.snd_error, all ? 0 : -ESTALE);
	assert_int_equal(wr.wr_len == SIZE, all);
	return all;
}

TEST(of_a_file_that_grows_the_end_is_not_sent)
{
	const char *const *path;

	for (path = pw_send_path_names(); *path != NULL; path++)
		assert_false(is_sent_though_changed(*path, false, O_APPEND));
}

AGAIN(of_a_file_that_grows_the_end_is_not_sent, setup_sinks);

TEST(with_snd_grows_a_file_may_grow_but_not_be_overwritten)
{
	const char *const *path;

	for (path = pw_send_path_names(); *path != NULL; path++) {
		assert_true(is_sent_though_changed(*path, true, O_APPEND));
		assert_false(is_sent_though_changed(*path, true, 0));
	}
}

AGAIN(with_snd_grows_a_file_may_grow_but_not_be_overwritten, setup_sinks);

TEST(a_peer_that_is_gone_is_an_error)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);
	const char *const *path;
	struct wire wr;
	struct xfer xf;
	size_t mem;

	for (path = pw_send_path_names(); *path != NULL; path++)
		for (mem = 0; mem <= 4; mem += 4) {
			wire_wide(&wr);
			close(wr.wr_peer);
			wr.wr_peer = -1;
			start_whole(&xf, *path, &wr, file);
			xf.xf_send.snd_mem = "head";
			xf.xf_send.snd_mem_len = mem;
			assert_int_equal(
			    xfer_run(&xf, &wr, ALL), PW_SEND_ERROR);
			/* FreeBSD's sendfile(2) returns ENOTCONN. */
			if (xf.xf_send.snd_error != -ENOTCONN)
				assert_int_equal(xf.xf_send.snd_error, -EPIPE);
			assert_int_equal(xf.xf_send.snd_sent, 0);
			pw_send_finish(&xf.xf_send);
			wire_close(&wr);
		}
}

AGAIN(a_peer_that_is_gone_is_an_error, setup_sinks);

/* A file that is not ours is fetched before it can be asked about. */
static struct pw_file *
file_to_fetch(void)
{
	struct pw_file *file;

	skip_unless(NEED_NOWAIT);
	file = new_file("f", (size_t)SIZE);
	as_another_owner(file);
	return file;
}

/* Without one of them it could end in no way at all. */
TEST(what_lacks_path_loop_or_completion_is_refused)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);
	struct pw_send *s;
	SCOPED_WIRE wr = wide_wire();
	struct xfer xf;

	for (int i = 0; i < 3; i++) {
		xfer_init(&xf, "nodiskio", &wr, file);
		s = &xf.xf_send;
		s->snd_len = SIZE;
		if (i == 0)
			s->snd_path = NULL;
		else if (i == 1)
			s->snd_loop = NULL;
		else
			s->snd_done = NULL;
		pw_send_start(s);
		assert_int_equal(pw_send_step(s), PW_SEND_ERROR);
		assert_int_equal(s->snd_error, -EINVAL);
		assert_int_equal(file_priv(file)->fp_refs, 2);
		pw_send_cancel(s);
		pw_send_finish(s);
	}
	assert_int_equal(wire_read(&wr), 0);
}

AGAIN(what_lacks_path_loop_or_completion_is_refused, setup_sinks);

TEST(completion_comes_from_drain_alone)
{
	SCOPED_FILE *file = file_to_fetch();
	struct pollfd pfd = {.fd = pw_loop_fd(fx->fx_loop), .events = POLLIN};
	SCOPED_WIRE wr = wide_wire();
	SCOPED_XFER xf;

	start_whole(&xf, "nodiskio", &wr, file);
	assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
	assert_int_equal(poll(&pfd, 1, PATIENCE), 1);
	assert_int_equal(xf.xf_done, 0);
	assert_true(xf.xf_send.snd_pending);
	pw_loop_tick(fx->fx_loop, clock_now() + FOREVER);
	assert_int_equal(xf.xf_done, 0);
	pw_loop_drain(fx->fx_loop);
	assert_int_equal(xf.xf_done, 1);
	assert_false(xf.xf_send.snd_pending);
	pw_loop_drain(fx->fx_loop);
	assert_int_equal(xf.xf_done, 1);
}

AGAIN(completion_comes_from_drain_alone, setup_sinks);

TEST(after_cancel_completion_comes_exactly_once, setup_narrow)
{
	SCOPED_FILE *file = file_to_fetch();
	struct latch la;
	SCOPED_WIRE wr;
	struct xfer xf;

	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	wire_wide(&wr);
	start_whole(&xf, "nodiskio", &wr, file);
	assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
	pw_send_cancel(&xf.xf_send);
	assert_int_equal(xf.xf_done, 0);
	assert_true(xf.xf_send.snd_pending);
	assert_int_equal(
	    file_priv(file)->fp_refs, 3); /* ours, the cache's, its own */
	latch_finish(&la);
	assert_int_equal(xf.xf_done, 1);
	assert_false(xf.xf_send.snd_pending);
	assert_int_equal(xfer_step(&xf), PW_SEND_ERROR);
	assert_int_equal(xf.xf_send.snd_error, -ECANCELED);
	assert_int_equal(wire_read(&wr), 0);
	pw_send_finish(&xf.xf_send);
	assert_int_equal(file_priv(file)->fp_refs, 2);
	assert_int_equal(xf.xf_done, 1);
}

TEST(after_cancel_nothing_is_sent)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);
	const char *const *path;
	struct wire wr;
	struct xfer xf;

	for (path = pw_send_path_names(); *path != NULL; path++) {
		wire_wide(&wr);
		start_whole(&xf, *path, &wr, file);
		pw_send_cancel(&xf.xf_send);
		assert_int_equal(xfer_step(&xf), PW_SEND_ERROR);
		assert_int_equal(wire_read(&wr), 0);
		assert_int_equal(xf.xf_done, 0);
		pw_send_finish(&xf.xf_send);
		wire_close(&wr);
	}
}

AGAIN(after_cancel_nothing_is_sent, setup_sinks);
