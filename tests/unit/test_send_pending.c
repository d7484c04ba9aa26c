/*
 * A transmission that is pending: cancelling it, closing its socket, and changing its file.
 */

#define ON_ONE_CPU
#include "send_fixture.h"
#include "lib/os/os.h"

static const char *const waiting[] = {
    "nodiskio", "uring", "ring", "splice", "mlock", "aio", "pool"};

/* Their threads can be held by a gate; the kernel's cannot. */
static const char *const pooled[] = {"nodiskio", "splice", "mlock", "pool"};

/* Starts one that is pending from its first step on. */
static struct pw_file *
start_pending(struct xfer *xf, const char *path, struct wire *wr)
{
	struct pw_file *file = new_file(path, (size_t)SIZE);

	as_another_owner(file);
	start_whole(xf, path, wr, file);
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
	SCOPED(free_at) char *expected = malloc((size_t)SIZE);

	assert_non_null(expected);
	fill(expected, 0, (size_t)SIZE);
	assert_in_range(wr->wr_len, 0, most);
	if (wr->wr_len > 0)
		assert_memory_equal(wr->wr_data, expected, wr->wr_len);
}

TEST(every_path_completes_once_after_cancel)
{
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;

	skip_unless(NEED_NOWAIT);
	for (size_t i = 0; i < COUNT(waiting); i++) {
		wire_wide(&wr);
		file = start_pending(&xf, waiting[i], &wr);
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

AGAIN(every_path_completes_once_after_cancel, setup_sinks);

/* Pending, and queued: the only thread is held until the gate is opened. */
static struct pw_file *
start_behind(
    struct latch *la, struct xfer *xf, const char *path, struct wire *wr)
{
	struct pw_file *other = new_file("other", 1);

	latch_shut(la, file_priv(other)->fp_device, fx->fx_loop);
	pw_file_unref(&other);
	wire_wide(wr);
	return start_pending(xf, path, wr);
}

/* A descriptor that is closed too early is given to the next file. */
TEST(a_cancelled_wait_keeps_its_descriptor, setup_one_thread)
{
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;
	struct latch la;
	int fd;

	skip_unless(NEED_NOWAIT);
	for (size_t i = 0; i < COUNT(pooled); i++) {
		file = start_behind(&la, &xf, pooled[i], &wr);
		fd = file->fil_fd;
		pw_send_cancel(&xf.xf_send);
		assert_int_equal(unlink(path_in(pooled[i])), 0);
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
TEST(a_socket_that_no_thread_has_is_taken_back, setup_one_thread)
{
	struct pw_file *file;
	struct wire wr, next;
	struct xfer xf;
	struct latch la;

	skip_unless(NEED_NOWAIT);
	for (size_t i = 0; i < COUNT(pooled); i++) {
		file = start_behind(&la, &xf, pooled[i], &wr);
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

TEST(a_socket_that_a_thread_has_is_not_taken_back)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);
	struct pollfd pfd = {.fd = pw_loop_fd(fx->fx_loop), .events = POLLIN};
	SCOPED_WIRE wr = wide_wire();
	SCOPED_XFER xf;

	start_whole(&xf, "pool", &wr, file);
	assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
	assert_int_equal(poll(&pfd, 1, PATIENCE), 1);
	assert_false(pw_send_take_back(&xf.xf_send));
	settle_once(&xf);
	assert_true(pw_send_take_back(&xf.xf_send));
	assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_DONE);
	sends_nothing_but(&wr, (size_t)SIZE);
}

TEST(of_a_file_that_shrinks_meanwhile_nothing_is_padded)
{
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;

	skip_unless(NEED_NOWAIT);
	for (size_t i = 0; i < COUNT(waiting); i++) {
		wire_wide(&wr);
		file = start_pending(&xf, waiting[i], &wr);
		assert_int_equal(truncate(path_in(waiting[i]), 0), 0);
		settle_once(&xf);
		assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_ERROR);
		assert_int_equal(xf.xf_send.snd_error, -ESTALE);
		sends_nothing_but(&wr, (size_t)WINDOW);
		pw_send_finish(&xf.xf_send);
		pw_file_unref(&file);
		wire_close(&wr);
	}
}

AGAIN(of_a_file_that_shrinks_meanwhile_nothing_is_padded, setup_sinks);

/* As a file that was queued for a disk that hung. */
TEST(of_a_file_that_shrank_before_its_read_nothing_is_sent, setup_one_thread)
{
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;
	struct latch la;

	skip_unless(NEED_NOWAIT);
	for (size_t i = 0; i < COUNT(pooled); i++) {
		file = start_behind(&la, &xf, pooled[i], &wr);
		xf.xf_send.snd_mem = "head";
		xf.xf_send.snd_mem_len = 4;
		assert_int_equal(truncate(path_in(pooled[i]), 0), 0);
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
change(const char *name, enum change how)
{
	char path[sizeof(fx->fx_dir) + 300];
	int fd;

	snprintf(path, sizeof(path), "%s", path_in(name));
	if (how == GROWS) {
		fd = open(path, O_WRONLY | O_APPEND);
		assert_int_equal(write(fd, "more", 4), 4);
		close(fd);
	} else if (how == GOES) {
		assert_int_equal(unlink(path), 0);
	} else {
		make_file("new", 5);
		assert_int_equal(rename(path_in("new"), path), 0);
	}
}

TEST(of_a_file_that_goes_or_is_replaced_meanwhile_all_is_sent)
{
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;
	int how;

	skip_unless(NEED_NOWAIT);
	for (size_t i = 0; i < COUNT(waiting); i++)
		for (how = 0; how < CHANGES; how++) {
			wire_narrow(&wr);
			file = start_pending(&xf, waiting[i], &wr);
			change(waiting[i], (enum change)how);
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

AGAIN(of_a_file_that_goes_or_is_replaced_meanwhile_all_is_sent, setup_sinks);

TEST(a_peer_that_leaves_meanwhile_is_an_error)
{
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;

	skip_unless(NEED_NOWAIT);
	for (size_t i = 0; i < COUNT(waiting); i++) {
		wire_narrow(&wr);
		file = start_pending(&xf, waiting[i], &wr);
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

AGAIN(a_peer_that_leaves_meanwhile_is_an_error, setup_sinks);

TEST(a_peer_that_closed_its_half_gets_everything)
{
	struct pw_file *file;
	struct wire wr;
	struct xfer xf;

	skip_unless(NEED_NOWAIT);
	for (size_t i = 0; i < COUNT(waiting); i++) {
		wire_narrow(&wr);
		file = start_pending(&xf, waiting[i], &wr);
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

AGAIN(a_peer_that_closed_its_half_gets_everything, setup_sinks);

TEST(every_queue_that_is_full_refuses_new_and_admits_begun, setup_narrow)
{
	struct pw_waiter w = {.wt_done = nothing_done};
	SCOPED_FILE *file;
	struct xfer fresh, begun;
	struct latch la;
	struct wire wr;

	skip_unless(NEED_NOWAIT);
	file = new_file("f", (size_t)SIZE);
	as_another_owner(file);
	for (size_t i = 0; i < COUNT(pooled); i++) {
		latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
		assert_int_equal(
		    pool_fetch(file, 3 * WINDOW, 1, FETCH_PAGES, ADMIT_NEW, &w),
		    0);
		wire_wide(&wr);
		start_whole(&fresh, pooled[i], &wr, file);
		assert_int_equal(xfer_step(&fresh), PW_SEND_ERROR);
		assert_int_equal(fresh.xf_send.snd_error, -EAGAIN);
		assert_int_equal(pw_pool_refused(fx->fx_pool), i + 1);
		pw_send_finish(&fresh.xf_send);
		start_whole(&begun, pooled[i], &wr, file);
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
}

/*
 * The event loop was told while the thread's answer was on its way, and an
 * edge-triggered one is not told again.
 */
TEST(pool_does_not_wait_for_a_socket_that_is_writable_again)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);
	struct pollfd pfd = {.fd = pw_loop_fd(fx->fx_loop), .events = POLLIN};
	enum pw_send_status status;
	unsigned full = 0;
	SCOPED_WIRE wr = narrow_wire();
	SCOPED_XFER xf;

	start_whole(&xf, "pool", &wr, file);
	do {
		status = xfer_step(&xf);
		if (status != PW_SEND_PENDING)
			continue;
		assert_int_equal(poll(&pfd, 1, PATIENCE), 1);
		os_wake_clear(pfd.fd);
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
}
