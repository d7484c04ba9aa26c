/*
 * The rules of the seam (lib/pagewise.h), on every send path: exactly the
 * promised bytes, one window a step, one completion for each wait.
 */
#include <sys/eventfd.h>

#include "xfer_fixture.h"
#include "lib/util/clock.h"

#define WINDOW	((off_t)64 * KIB)
#define SIZE	(3 * WINDOW + 12345)
#define MEM_MAX 100000
#define ALL	UINT64_MAX
#define FOREVER 1000000 /* microseconds, for the loop's clock */

/* Sends mem_len bytes of memory, then a range; what came out is compared. */
static void
send_range(struct fixture *fx, const char *path, struct pw_file *file,
    size_t mem_len, off_t off, off_t len, bool narrow)
{
	static char mem[MEM_MAX];
	char *expected = malloc((size_t)len + 1);
	struct wire wr;
	struct xfer xf;
	bool windows;

	memset(mem, 'm', sizeof(mem));
	assert_non_null(expected);
	fill(expected, off, (size_t)len);
	if (narrow)
		wire_narrow(&wr);
	else
		wire_wide(&wr);
	xfer_init(&xf, path, fx, &wr, file);
	xf.xf_send.snd_readahead = (uint64_t)WINDOW;
	xf.xf_send.snd_mem = mem;
	xf.xf_send.snd_mem_len = mem_len;
	xf.xf_send.snd_off = off;
	xf.xf_send.snd_len = len;
	pw_send_start(&xf.xf_send);
	windows = has_windows(&xf.xf_send);
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
		    (mem_len + (size_t)len + SHARE_MOST - 1) / SHARE_MOST);
	free(expected);
	wire_close(&wr);
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

static void
send_every_range(struct fixture *fx, struct pw_file *file, bool cold)
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
						assert_true(evict(file->fil_fd,
						    (size_t)SIZE));
					send_range(fx, *path, file, mems[m],
					    ranges[r].off, ranges[r].len,
					    narrow);
				}
}

static void
every_path_sends_exactly_memory_and_range(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", (size_t)SIZE);

	send_every_range(fx, file, false);
	assert_int_equal(file_priv(file)->fp_refs, 2); /* ours, the cache's */
	pw_file_unref(&file);
}

static void
every_path_sends_the_same_from_the_disk(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file;

	skip_unless(fx, NEED_EVICTION);
	file = new_file(fx, "f", (size_t)SIZE);
	send_every_range(fx, file, true);
	pw_file_unref(&file);
}

static void
a_file_is_not_needed(void **state)
{
	struct fixture *fx = *state;
	const char *const *path;
	struct wire wr;
	struct xfer xf;

	for (path = pw_send_path_names(); *path != NULL; path++) {
		wire_wide(&wr);
		xfer_init(&xf, *path, fx, &wr, NULL);
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
	size_t i;

	for (i = 0; i < COUNT(refused); i++)
		if (strcmp(refused[i], path) == 0)
			return true;
	return false;
}

static void
nodiskio_is_the_default_and_an_unknown_name_is_no_path(void **state)
{
	const char *const *path;
	const char *why;

	(void)state;
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

/* Starts a transmission of the whole file. */
static void
start_whole(struct xfer *xf, const char *path, struct fixture *fx,
    struct wire *wr, struct pw_file *file)
{
	xfer_init(xf, path, fx, wr, file);
	xf->xf_send.snd_readahead = (uint64_t)WINDOW;
	xf->xf_send.snd_len = file->fil_size;
	pw_send_start(&xf->xf_send);
}

static void
a_file_that_shrinks_is_an_error_and_never_padded(void **state)
{
	const off_t cut = 2 * WINDOW + 4096;
	struct fixture *fx = *state;
	const char *const *path;
	struct pw_file *file;
	char *expected = malloc((size_t)cut);
	struct wire wr;
	struct xfer xf;

	assert_non_null(expected);
	fill(expected, 0, (size_t)cut);
	for (path = pw_send_path_names(); *path != NULL; path++) {
		file = new_file(fx, *path, (size_t)SIZE);
		wire_narrow(&wr);
		start_whole(&xf, *path, fx, &wr, file);
		xfer_run(&xf, &wr, (uint64_t)WINDOW + 1);
		assert_in_range(wr.wr_len, WINDOW + 1, cut - 1);
		assert_int_equal(truncate(path_in(fx, *path), cut), 0);
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
	free(expected);
}

static void
of_a_file_that_grows_the_end_is_not_sent(void **state)
{
	struct fixture *fx = *state;
	const char *const *path;
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;
	int fd;

	for (path = pw_send_path_names(); *path != NULL; path++) {
		file = new_file(fx, *path, (size_t)SIZE);
		wire_narrow(&wr);
		start_whole(&xf, *path, fx, &wr, file);
		xfer_run(&xf, &wr, (uint64_t)WINDOW + 1);
		fd = open(path_in(fx, *path), O_WRONLY | O_APPEND);
		assert_int_equal(write(fd, "more of it", 10), 10);
		close(fd);
		assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_ERROR);
		assert_int_equal(xf.xf_send.snd_error, -ESTALE);
		assert_true(wr.wr_len < SIZE);
		pw_send_finish(&xf.xf_send);
		pw_file_unref(&file);
		wire_close(&wr);
	}
}

static void
a_peer_that_is_gone_is_an_error(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", (size_t)SIZE);
	const char *const *path;
	struct wire wr;
	struct xfer xf;
	size_t mem;

	for (path = pw_send_path_names(); *path != NULL; path++)
		for (mem = 0; mem <= 4; mem += 4) {
			wire_wide(&wr);
			close(wr.wr_peer);
			wr.wr_peer = -1;
			start_whole(&xf, *path, fx, &wr, file);
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
	pw_file_unref(&file);
}

static void
nodiskio_waits_for_a_file_that_is_not_in_memory(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;

	skip_unless(fx, NEED_EVICTION);
	file = new_file(fx, "f", (size_t)WINDOW);
	assert_true(evict(file->fil_fd, (size_t)WINDOW));
	wire_wide(&wr);
	start_whole(&xf, "nodiskio", fx, &wr, file);
	assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
	assert_int_equal(wire_read(&wr), 0);
	settle(fx->fx_loop);
	assert_int_equal(xf.xf_done, 1);
	assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_DONE);
	assert_int_equal(wr.wr_len, WINDOW);
	pw_send_finish(&xf.xf_send);
	pw_file_unref(&file);
	wire_close(&wr);
}

static void
nodiskio_does_not_wait_for_a_file_that_is_in_memory(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;
	void *held;

	skip_unless(fx, NEED_EXACT | NEED_LOCK);
	file = new_file(fx, "f", (size_t)SIZE);
	held = hold(file->fil_fd, (size_t)SIZE);
	wire_narrow(&wr);
	start_whole(&xf, "nodiskio", fx, &wr, file);
	assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_DONE);
	assert_int_equal(xf.xf_pending, 0);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 0);
	let_go(held, (size_t)SIZE);
	pw_send_finish(&xf.xf_send);
	pw_file_unref(&file);
	wire_close(&wr);
}

/* The first of four windows. */
static bool
first_window_is_fetched(struct fixture *fx)
{
	struct pw_file *file = new_file(fx, "f", (size_t)SIZE);
	struct wire wr;
	struct xfer xf;
	size_t first, rest;

	wire_wide(&wr);
	start_whole(&xf, "nodiskio", fx, &wr, file);
	assert_true(evict(file->fil_fd, (size_t)SIZE));
	assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
	settle(fx->fx_loop);
	first = pages_resident(file->fil_fd, 0, (size_t)WINDOW);
	rest = pages_resident(file->fil_fd, WINDOW, (size_t)(SIZE - WINDOW));
	assert_int_equal(rest, 0);
	pw_send_finish(&xf.xf_send);
	pw_file_unref(&file);
	wire_close(&wr);
	return first == pages_in((size_t)WINDOW);
}

static void
the_missing_window_is_fetched_and_no_more(void **state)
{
	skip_unless(*state, NEED_EVICTION);
	assert_true(holds_in_one_of(5, first_window_is_fetched, *state));
}

/* What was in memory when the socket became full may have gone since. */
static void
nodiskio_asks_again_after_the_socket_was_full(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;
	void *held;

	skip_unless(fx, NEED_EVICTION | NEED_LOCK);
	file = new_file(fx, "f", (size_t)WINDOW);
	wire_narrow(&wr);
	start_whole(&xf, "nodiskio", fx, &wr, file);
	held = hold(file->fil_fd, (size_t)WINDOW);
	if (xfer_step(&xf) == PW_SEND_PENDING) {
		settle(fx->fx_loop);
		xfer_step(&xf);
	}
	assert_int_equal(xf.xf_full, 1);
	wire_flush(&wr);
	let_go(held, (size_t)WINDOW);
	assert_true(evict(file->fil_fd, (size_t)WINDOW));
	assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
	settle(fx->fx_loop);
	pw_send_finish(&xf.xf_send);
	pw_file_unref(&file);
	wire_close(&wr);
}

/* A file that is not ours is fetched before it can be asked about. */
static struct pw_file *
file_to_fetch(struct fixture *fx)
{
	struct pw_file *file;

	skip_unless(fx, NEED_NOWAIT);
	file = new_file(fx, "f", (size_t)SIZE);
	as_another_owner(file);
	return file;
}

static void
a_file_that_cannot_be_asked_is_sent_by_the_pool(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", (size_t)SIZE);
	struct wire wr;
	struct xfer xf;

	file_priv(file)->fp_ask = OS_ASK_FETCH;

	wire_wide(&wr);
	start_whole(&xf, "nodiskio", fx, &wr, file);
	assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_DONE);
	assert_int_equal(xf.xf_full, 0);
	assert_int_equal(xf.xf_pending, 4);
	assert_int_equal(wr.wr_len, SIZE);
	pw_send_finish(&xf.xf_send);
	pw_file_unref(&file);
	wire_close(&wr);
}

/* Without one of them it could end in no way at all. */
static void
what_lacks_path_loop_or_completion_is_refused(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", (size_t)SIZE);
	struct pw_send *s;
	struct wire wr;
	struct xfer xf;
	int i;

	wire_wide(&wr);
	for (i = 0; i < 3; i++) {
		xfer_init(&xf, "nodiskio", fx, &wr, file);
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
	pw_file_unref(&file);
	wire_close(&wr);
}

static void
completion_comes_from_drain_alone(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = file_to_fetch(fx);
	struct pollfd pfd = {.fd = pw_loop_fd(fx->fx_loop), .events = POLLIN};
	struct wire wr;
	struct xfer xf;

	wire_wide(&wr);
	start_whole(&xf, "nodiskio", fx, &wr, file);
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
	pw_send_finish(&xf.xf_send);
	pw_file_unref(&file);
	wire_close(&wr);
}

static void
after_cancel_completion_comes_exactly_once(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = file_to_fetch(fx);
	struct latch la;
	struct wire wr;
	struct xfer xf;

	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	wire_wide(&wr);
	start_whole(&xf, "nodiskio", fx, &wr, file);
	assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
	pw_send_cancel(&xf.xf_send);
	assert_int_equal(xf.xf_done, 0);
	assert_true(xf.xf_send.snd_pending);
	assert_int_equal(
	    file_priv(file)->fp_refs, 3); /* ours, the cache's, its own */
	latch_open(&la);
	settle(fx->fx_loop);
	assert_int_equal(xf.xf_done, 1);
	assert_false(xf.xf_send.snd_pending);
	assert_int_equal(xfer_step(&xf), PW_SEND_ERROR);
	assert_int_equal(xf.xf_send.snd_error, -ECANCELED);
	assert_int_equal(wire_read(&wr), 0);
	pw_send_finish(&xf.xf_send);
	assert_int_equal(file_priv(file)->fp_refs, 2);
	assert_int_equal(xf.xf_done, 1);
	pw_file_unref(&file);
	wire_close(&wr);
}

static void
after_cancel_nothing_is_sent(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", (size_t)SIZE);
	const char *const *path;
	struct wire wr;
	struct xfer xf;

	for (path = pw_send_path_names(); *path != NULL; path++) {
		wire_wide(&wr);
		start_whole(&xf, *path, fx, &wr, file);
		pw_send_cancel(&xf.xf_send);
		assert_int_equal(xfer_step(&xf), PW_SEND_ERROR);
		assert_int_equal(wire_read(&wr), 0);
		assert_int_equal(xf.xf_done, 0);
		pw_send_finish(&xf.xf_send);
		wire_close(&wr);
	}
	pw_file_unref(&file);
}

/* ----------------------------------------------------------- while pending */

static const char *const waiting[] = {
    "nodiskio", "uring", "ring", "splice", "mlock", "aio", "pool"};

/* Their threads can be held by a gate; the kernel's cannot. */
static const char *const pooled[] = {"nodiskio", "splice", "mlock", "pool"};

/* Starts one that is pending from its first step on. */
static struct pw_file *
start_pending(
    struct xfer *xf, const char *path, struct fixture *fx, struct wire *wr)
{
	struct pw_file *file = new_file(fx, path, (size_t)SIZE);

	as_another_owner(file);
	start_whole(xf, path, fx, wr, file);
	assert_int_equal(xfer_step(xf), PW_SEND_PENDING);
	return file;
}

static void
settle_once(struct xfer *xf)
{
	unsigned done = xf->xf_done;

	settle(xf->xf_send.snd_loop);
	assert_int_equal(xf->xf_done, done + 1);
	assert_false(xf->xf_send.snd_pending);
}

static void
sends_nothing_but(const struct wire *wr, size_t most)
{
	char *expected = malloc((size_t)SIZE);

	assert_non_null(expected);
	fill(expected, 0, (size_t)SIZE);
	assert_in_range(wr->wr_len, 0, most);
	if (wr->wr_len > 0)
		assert_memory_equal(wr->wr_data, expected, wr->wr_len);
	free(expected);
}

static void
every_path_completes_once_after_cancel(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;
	size_t i;

	skip_unless(fx, NEED_NOWAIT);
	for (i = 0; i < COUNT(waiting); i++) {
		wire_wide(&wr);
		file = start_pending(&xf, waiting[i], fx, &wr);
		pw_send_cancel(&xf.xf_send);
		assert_true(xf.xf_send.snd_pending);
		assert_int_equal(xf.xf_done, 0);
		assert_int_equal(file_priv(file)->fp_refs, 3);
		settle_once(&xf);
		assert_true(is_open(wr.wr_sock));
		assert_int_equal(xfer_step(&xf), PW_SEND_ERROR);
		assert_int_equal(xf.xf_send.snd_error, -ECANCELED);
		pw_send_finish(&xf.xf_send);
		assert_int_equal(file_priv(file)->fp_refs, 2);
		pw_file_unref(&file);
		wire_close(&wr);
	}
}

/* Pending, and queued: the only thread is held until the gate is opened. */
static struct pw_file *
start_behind(struct latch *la, struct xfer *xf, const char *path,
    struct fixture *fx, struct wire *wr)
{
	struct pw_file *other = new_file(fx, "other", 1);

	latch_shut(la, file_priv(other)->fp_device, fx->fx_loop);
	pw_file_unref(&other);
	wire_wide(wr);
	return start_pending(xf, path, fx, wr);
}

/* A descriptor that is closed too early is given to the next file. */
static void
a_cancelled_wait_keeps_its_descriptor(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;
	struct latch la;
	size_t i;
	int fd;

	skip_unless(fx, NEED_NOWAIT);
	for (i = 0; i < COUNT(pooled); i++) {
		file = start_behind(&la, &xf, pooled[i], fx, &wr);
		fd = file->fil_fd;
		pw_send_cancel(&xf.xf_send);
		assert_int_equal(unlink(path_in(fx, pooled[i])), 0);
		pw_file_unref(&file);
		pw_loop_tick(fx->fx_loop, clock_now() + FOREVER);
		assert_true(is_open(fd));
		latch_open(&la);
		settle_once(&xf);
		assert_true(is_open(fd));
		pw_send_finish(&xf.xf_send);
		wire_close(&wr);
	}
}

/* The number of a descriptor that was closed is given to the next socket. */
static void
a_socket_that_no_thread_has_is_taken_back(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file;
	struct wire wr, next;
	struct xfer xf;
	struct latch la;
	size_t i;

	skip_unless(fx, NEED_NOWAIT);
	for (i = 0; i < COUNT(pooled); i++) {
		file = start_behind(&la, &xf, pooled[i], fx, &wr);
		assert_true(pw_send_take_back(&xf.xf_send));
		pw_send_cancel(&xf.xf_send);
		wire_close(&wr);
		wire_wide(&next);
		assert_int_equal(next.wr_sock, xf.xf_send.snd_sock);
		latch_open(&la);
		settle_once(&xf);
		assert_int_equal(wire_read(&next), 0);
		assert_int_equal(xf.xf_send.snd_sent, 0);
		assert_int_equal(xfer_step(&xf), PW_SEND_ERROR);
		assert_int_equal(xf.xf_send.snd_error, -ECANCELED);
		pw_send_finish(&xf.xf_send);
		pw_file_unref(&file);
		wire_close(&next);
	}
}

static void
a_socket_that_a_thread_has_is_not_taken_back(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", (size_t)SIZE);
	struct pollfd pfd = {.fd = pw_loop_fd(fx->fx_loop), .events = POLLIN};
	struct wire wr;
	struct xfer xf;

	wire_wide(&wr);
	start_whole(&xf, "pool", fx, &wr, file);
	assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
	assert_int_equal(poll(&pfd, 1, PATIENCE), 1);
	assert_false(pw_send_take_back(&xf.xf_send));
	settle_once(&xf);
	assert_true(pw_send_take_back(&xf.xf_send));
	assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_DONE);
	sends_nothing_but(&wr, (size_t)SIZE);
	pw_send_finish(&xf.xf_send);
	pw_file_unref(&file);
	wire_close(&wr);
}

static void
of_a_file_that_shrinks_meanwhile_nothing_is_padded(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;
	size_t i;

	skip_unless(fx, NEED_NOWAIT);
	for (i = 0; i < COUNT(waiting); i++) {
		wire_wide(&wr);
		file = start_pending(&xf, waiting[i], fx, &wr);
		assert_int_equal(truncate(path_in(fx, waiting[i]), 0), 0);
		settle_once(&xf);
		assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_ERROR);
		assert_int_equal(xf.xf_send.snd_error, -ESTALE);
		sends_nothing_but(&wr, (size_t)WINDOW);
		pw_send_finish(&xf.xf_send);
		pw_file_unref(&file);
		wire_close(&wr);
	}
}

/* As a file that was queued for a disk that hung. */
static void
of_a_file_that_shrank_before_its_read_nothing_is_sent(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;
	struct latch la;
	size_t i;

	skip_unless(fx, NEED_NOWAIT);
	for (i = 0; i < COUNT(pooled); i++) {
		file = start_behind(&la, &xf, pooled[i], fx, &wr);
		xf.xf_send.snd_mem = "head";
		xf.xf_send.snd_mem_len = 4;
		assert_int_equal(truncate(path_in(fx, pooled[i]), 0), 0);
		latch_open(&la);
		settle_once(&xf);
		assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_ERROR);
		assert_int_equal(xf.xf_send.snd_error, -ESTALE);
		assert_int_equal(xf.xf_send.snd_sent, 0);
		assert_int_equal(wire_read(&wr), 0);
		pw_send_finish(&xf.xf_send);
		pw_file_unref(&file);
		wire_close(&wr);
	}
}

enum change { GROWS, GOES, IS_REPLACED, CHANGES };

static void
change(struct fixture *fx, const char *name, enum change how)
{
	char path[sizeof(fx->fx_dir) + 300];
	int fd;

	snprintf(path, sizeof(path), "%s", path_in(fx, name));
	if (how == GROWS) {
		fd = open(path, O_WRONLY | O_APPEND);
		assert_int_equal(write(fd, "more", 4), 4);
		close(fd);
	} else if (how == GOES) {
		assert_int_equal(unlink(path), 0);
	} else {
		make_file(fx, "new", 5);
		assert_int_equal(rename(path_in(fx, "new"), path), 0);
	}
}

static void
of_a_file_that_goes_or_is_replaced_meanwhile_all_is_sent(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;
	size_t i;
	int how;

	skip_unless(fx, NEED_NOWAIT);
	for (i = 0; i < COUNT(waiting); i++)
		for (how = 0; how < CHANGES; how++) {
			wire_narrow(&wr);
			file = start_pending(&xf, waiting[i], fx, &wr);
			change(fx, waiting[i], (enum change)how);
			settle_once(&xf);
			assert_int_equal(xfer_run(&xf, &wr, ALL),
			    how == GROWS ? PW_SEND_ERROR : PW_SEND_DONE);
			assert_int_equal(wr.wr_len == SIZE, how != GROWS);
			sends_nothing_but(&wr, wr.wr_len);
			pw_send_finish(&xf.xf_send);
			pw_file_unref(&file);
			wire_close(&wr);
			/* What is in the cache of open files is looked up again. */
			pw_loop_tick(fx->fx_loop, clock_now() + 60 * FOREVER);
		}
}

static void
a_peer_that_leaves_meanwhile_is_an_error(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;
	size_t i;

	skip_unless(fx, NEED_NOWAIT);
	for (i = 0; i < COUNT(waiting); i++) {
		wire_narrow(&wr);
		file = start_pending(&xf, waiting[i], fx, &wr);
		close(wr.wr_peer);
		wr.wr_peer = -1;
		settle_once(&xf);
		assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_ERROR);
		assert_true(xf.xf_send.snd_error == -EPIPE ||
			    xf.xf_send.snd_error == -ECONNRESET);
		pw_send_finish(&xf.xf_send);
		pw_file_unref(&file);
		wire_close(&wr);
	}
}

static void
a_peer_that_closed_its_half_gets_everything(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;
	size_t i;

	skip_unless(fx, NEED_NOWAIT);
	for (i = 0; i < COUNT(waiting); i++) {
		wire_narrow(&wr);
		file = start_pending(&xf, waiting[i], fx, &wr);
		assert_int_equal(shutdown(wr.wr_peer, SHUT_WR), 0);
		settle_once(&xf);
		assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_DONE);
		assert_int_equal(wr.wr_len, SIZE);
		sends_nothing_but(&wr, (size_t)SIZE);
		pw_send_finish(&xf.xf_send);
		pw_file_unref(&file);
		wire_close(&wr);
	}
}

static void
every_queue_that_is_full_refuses_new_and_admits_begun(void **state)
{
	struct fixture *fx = *state;
	struct pw_waiter w = {.wt_done = nothing_done};
	struct pw_file *file;
	struct xfer fresh, begun;
	struct latch la;
	struct wire wr;
	size_t i;

	skip_unless(fx, NEED_NOWAIT);
	file = new_file(fx, "f", (size_t)SIZE);
	as_another_owner(file);
	for (i = 0; i < COUNT(pooled); i++) {
		latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
		assert_int_equal(
		    pool_fetch(file, 3 * WINDOW, 1, FETCH_PAGES, ADMIT_NEW, &w),
		    0);
		wire_wide(&wr);
		start_whole(&fresh, pooled[i], fx, &wr, file);
		assert_int_equal(xfer_step(&fresh), PW_SEND_ERROR);
		assert_int_equal(fresh.xf_send.snd_error, -EAGAIN);
		assert_int_equal(pw_pool_refused(fx->fx_pool), i + 1);
		pw_send_finish(&fresh.xf_send);
		start_whole(&begun, pooled[i], fx, &wr, file);
		begun.xf_send.snd_begun = true;
		assert_int_equal(xfer_step(&begun), PW_SEND_PENDING);
		latch_open(&la);
		settle_once(&begun);
		assert_int_equal(fresh.xf_done, 0);
		assert_int_equal(xfer_run(&begun, &wr, ALL), PW_SEND_DONE);
		assert_int_equal(wr.wr_len, SIZE);
		assert_int_equal(pw_pool_refused(fx->fx_pool), i + 1);
		pw_send_finish(&begun.xf_send);
		wire_close(&wr);
		/* Pieces that were read are asked about: not in the next round. */
		free(file_priv(file)->fp_mapped);
		file_priv(file)->fp_mapped = NULL;
		file_priv(file)->fp_drops = true;
	}
	pw_file_unref(&file);
}

/*
 * The event loop was told while the thread's answer was on its way, and an
 * edge-triggered one is not told again.
 */
static void
pool_does_not_wait_for_a_socket_that_is_writable_again(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", (size_t)SIZE);
	struct pollfd pfd = {.fd = pw_loop_fd(fx->fx_loop), .events = POLLIN};
	enum pw_send_status status;
	unsigned full = 0;
	eventfd_t wakes;
	struct wire wr;
	struct xfer xf;

	wire_narrow(&wr);
	start_whole(&xf, "pool", fx, &wr, file);
	do {
		status = xfer_step(&xf);
		if (status != PW_SEND_PENDING)
			continue;
		assert_int_equal(poll(&pfd, 1, PATIENCE), 1);
		assert_int_equal(eventfd_read(pfd.fd, &wakes), 0);
		if (send_priv(&xf.xf_send)->ss_result == -EAGAIN) {
			wire_flush(&wr);
			full++;
		}
		pw_loop_drain(fx->fx_loop);
	} while (status == PW_SEND_PENDING || status == PW_SEND_AGAIN);
	assert_int_equal(status, PW_SEND_DONE);
	assert_true(full > 0);
	wire_await(&wr, (size_t)SIZE);
	sends_nothing_but(&wr, (size_t)SIZE);
	pw_send_finish(&xf.xf_send);
	pw_file_unref(&file);
	wire_close(&wr);
}

#define TEST(name, up) cmocka_unit_test_setup_teardown(name, up, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(every_path_sends_exactly_memory_and_range, setup),
	    TEST(every_path_sends_the_same_from_the_disk, setup),
	    TEST(a_file_is_not_needed, setup),
	    cmocka_unit_test(
		nodiskio_is_the_default_and_an_unknown_name_is_no_path),
	    TEST(a_file_that_shrinks_is_an_error_and_never_padded, setup),
	    TEST(of_a_file_that_grows_the_end_is_not_sent, setup),
	    TEST(a_peer_that_is_gone_is_an_error, setup),
	    TEST(nodiskio_waits_for_a_file_that_is_not_in_memory, setup),
	    TEST(nodiskio_does_not_wait_for_a_file_that_is_in_memory, setup),
	    TEST(the_missing_window_is_fetched_and_no_more, setup),
	    TEST(nodiskio_asks_again_after_the_socket_was_full, setup),
	    TEST(a_file_that_cannot_be_asked_is_sent_by_the_pool, setup),
	    TEST(what_lacks_path_loop_or_completion_is_refused, setup),
	    TEST(completion_comes_from_drain_alone, setup),
	    TEST(after_cancel_completion_comes_exactly_once, setup_narrow),
	    TEST(after_cancel_nothing_is_sent, setup),
	    TEST(every_path_completes_once_after_cancel, setup),
	    TEST(a_cancelled_wait_keeps_its_descriptor, setup_one_thread),
	    TEST(a_socket_that_no_thread_has_is_taken_back, setup_one_thread),
	    TEST(a_socket_that_a_thread_has_is_not_taken_back, setup),
	    TEST(of_a_file_that_shrinks_meanwhile_nothing_is_padded, setup),
	    TEST(of_a_file_that_shrank_before_its_read_nothing_is_sent,
		setup_one_thread),
	    TEST(of_a_file_that_goes_or_is_replaced_meanwhile_all_is_sent,
		setup),
	    TEST(a_peer_that_leaves_meanwhile_is_an_error, setup),
	    TEST(a_peer_that_closed_its_half_gets_everything, setup),
	    TEST(every_queue_that_is_full_refuses_new_and_admits_begun,
		setup_narrow),
	    TEST(pool_does_not_wait_for_a_socket_that_is_writable_again, setup),
	    /* The same into a sink, but for the two about a thread that has the socket. */
	    TEST(every_path_sends_exactly_memory_and_range, setup_sinks),
	    TEST(every_path_sends_the_same_from_the_disk, setup_sinks),
	    TEST(a_file_is_not_needed, setup_sinks),
	    TEST(a_file_that_shrinks_is_an_error_and_never_padded, setup_sinks),
	    TEST(of_a_file_that_grows_the_end_is_not_sent, setup_sinks),
	    TEST(a_peer_that_is_gone_is_an_error, setup_sinks),
	    TEST(nodiskio_waits_for_a_file_that_is_not_in_memory, setup_sinks),
	    TEST(nodiskio_does_not_wait_for_a_file_that_is_in_memory,
		setup_sinks),
	    TEST(the_missing_window_is_fetched_and_no_more, setup_sinks),
	    TEST(nodiskio_asks_again_after_the_socket_was_full, setup_sinks),
	    TEST(a_file_that_cannot_be_asked_is_sent_by_the_pool, setup_sinks),
	    TEST(what_lacks_path_loop_or_completion_is_refused, setup_sinks),
	    TEST(completion_comes_from_drain_alone, setup_sinks),
	    TEST(after_cancel_nothing_is_sent, setup_sinks),
	    TEST(every_path_completes_once_after_cancel, setup_sinks),
	    TEST(of_a_file_that_shrinks_meanwhile_nothing_is_padded,
		setup_sinks),
	    TEST(of_a_file_that_goes_or_is_replaced_meanwhile_all_is_sent,
		setup_sinks),
	    TEST(a_peer_that_leaves_meanwhile_is_an_error, setup_sinks),
	    TEST(a_peer_that_closed_its_half_gets_everything, setup_sinks),
	};

	stay_on_one_cpu();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
