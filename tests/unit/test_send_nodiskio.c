/*
 * The path nodiskio: it waits for a disk thread only if bytes are not in memory.
 */
#define ON_ONE_CPU
#include "send_fixture.h"

#include "lib/disk/pool.h"

TEST(nodiskio_waits_for_a_file_that_is_not_in_memory)
{
	SCOPED_FILE *file;
	SCOPED_WIRE wr;
	SCOPED_XFER xf;

	skip_unless(NEED_EVICTION);
	file = new_file("f", (size_t)WINDOW);
	assert_true(evict(file->fil_fd, (size_t)WINDOW));
	wire_wide(&wr);
	start_whole(&xf, "nodiskio", &wr, file);
	assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
	assert_int_equal(wire_read(&wr), 0);
	settle(fx->fx_loop);
	assert_int_equal(xf.xf_done, 1);
	assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_DONE);
	assert_int_equal(wr.wr_len, WINDOW);
}

AGAIN(nodiskio_waits_for_a_file_that_is_not_in_memory, setup_sinks);

TEST(nodiskio_does_not_wait_for_a_file_that_is_in_memory)
{
	SCOPED_FILE *file;
	SCOPED_WIRE wr;
	SCOPED_XFER xf;
	void *held;

	skip_unless(NEED_EXACT | NEED_LOCK);
	file = new_file("f", (size_t)SIZE);
	held = hold(file->fil_fd, (size_t)SIZE);
	wire_narrow(&wr);
	start_whole(&xf, "nodiskio", &wr, file);
	assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_DONE);
	assert_int_equal(xf.xf_pending, 0);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 0);
	let_go(held, (size_t)SIZE);
}

AGAIN(nodiskio_does_not_wait_for_a_file_that_is_in_memory, setup_sinks);

/* The first of four windows. */
static bool
first_window_is_fetched(void)
{
	struct pw_file *file = new_file("f", (size_t)SIZE);
	struct wire wr = wide_wire();
	struct xfer xf;
	size_t first, rest;

	start_whole(&xf, "nodiskio", &wr, file);
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

TEST(the_missing_window_is_fetched_and_no_more)
{
	skip_unless(NEED_EVICTION);
	assert_true(holds_in_one_of(5, first_window_is_fetched));
}

AGAIN(the_missing_window_is_fetched_and_no_more, setup_sinks);

/* What was in memory when the socket became full may have gone since. */
TEST(nodiskio_asks_again_after_the_socket_was_full)
{
	SCOPED_FILE *file;
	SCOPED_WIRE wr;
	SCOPED_XFER xf;
	void *held;

	skip_unless(NEED_EVICTION | NEED_LOCK);
	file = new_file("f", (size_t)WINDOW);
	wire_narrow(&wr);
	start_whole(&xf, "nodiskio", &wr, file);
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
}

AGAIN(nodiskio_asks_again_after_the_socket_was_full, setup_sinks);

TEST(a_file_that_cannot_be_asked_is_sent_from_copies)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);
	SCOPED_WIRE wr;
	SCOPED_XFER xf;

	file_priv(file)->fp_ask = OS_ASK_FETCH;

	wire_wide(&wr);
	start_whole(&xf, "nodiskio", &wr, file);
	assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_DONE);
	assert_true(xf.xf_pending > 0);
	assert_true(pw_pool_pinned(fx->fx_pool) > 0);
	assert_int_equal(wr.wr_len, SIZE);
}

AGAIN(a_file_that_cannot_be_asked_is_sent_from_copies, setup_sinks);

/* A job that notes how many bytes of copies there are. */
struct noting_job {
	struct job nj_job;
	struct pw_pool *nj_pool;
	size_t *nj_copied;
};

static int
note_copied(struct job *job)
{
	const struct noting_job *nj = (const struct noting_job *)job;

	*nj->nj_copied = pw_pool_pinned(nj->nj_pool);
	return 0;
}

/* The next window of another client is queued before the first window of this one. */
TEST(the_first_window_of_a_file_that_cannot_be_asked_goes_before_next_ones,
    setup_one_thread)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);
	struct noting_job *nj = calloc(1, sizeof(*nj));
	struct pw_waiter w = {.wt_done = nothing_done};
	struct latch la;
	SCOPED_WIRE wr;
	SCOPED_XFER xf;
	size_t copied = 0;

	assert_non_null(nj);
	file_priv(file)->fp_ask = OS_ASK_FETCH;
	wire_wide(&wr);
	start_whole(&xf, "nodiskio", &wr, file);
	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	*nj = (struct noting_job){.nj_job.job_run = note_copied,
	    .nj_job.job_kind = JOB_LONG,
	    .nj_pool = fx->fx_pool,
	    .nj_copied = &copied};
	assert_int_equal(pool_submit(file_priv(file)->fp_device, &nj->nj_job,
			     ADMIT_BEGUN, fx->fx_loop, &w),
	    0);
	assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
	latch_finish(&la);
	assert_true(copied > 0);
	assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_DONE);
	assert_int_equal(wr.wr_len, SIZE);
}
