/*
 * PW_CACHE_DROP (lib/send/drop_behind.h): pages that a transmission brought in leave with
 * it, pages that were there before stay.
 */
#define ON_ONE_CPU
#include "xfer_fixture.h"

#include "lib/disk/admission.h"
#include "lib/disk/completion.h"

#include "lib/disk/drop_lock.h"
#include "lib/file/verified.h"
#include "lib/send/drop_behind.h"
#include "lib/util/clock.h"

#define WINDOW ((off_t)64 * KIB)
#define SIZE   (4 * WINDOW)
#define PAGES  pages_in((size_t)WINDOW)
#define MINUTE UINT64_C(60000000)
#define BEFORE 1 /* the window that is in memory before */
#define TRIES  5
#define ALL    UINT64_MAX

static size_t
in_window(const struct pw_file *file, off_t n)
{
	return pages_resident(file->fil_fd, n * WINDOW, (size_t)WINDOW);
}

/* The jobs that drop are waits of the loop as well. */
static void
tick(uint64_t now_us)
{
	pw_loop_tick(fx->fx_loop, now_us);
	settle(fx->fx_loop);
}

/* A cold file of which one window is in memory again. */
static struct pw_file *
prepare(void)
{
	struct pw_file *file = new_file("f", (size_t)SIZE);

	assert_true(evict(file->fil_fd, (size_t)SIZE));
	read_in(file->fil_fd, BEFORE * WINDOW, (size_t)WINDOW);
	return file;
}

/* Sends the whole file; everything has been read at the far end. */
static void
send_whole_by(const char *path, struct pw_file *file, enum pw_cache cache)
{
	struct wire wr = narrow_wire();
	struct xfer xf;

	xfer_init(&xf, path, &wr, file);
	xf.xf_send.snd_readahead = (uint64_t)WINDOW;
	xf.xf_send.snd_len = SIZE;
	xf.xf_send.snd_cache = cache;
	pw_send_start(&xf.xf_send);
	assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_DONE);
	assert_int_equal(wr.wr_len, SIZE);
	pw_send_finish(&xf.xf_send);
	wire_close(&wr);
	settle(fx->fx_loop);
}

static void
send_whole(struct pw_file *file, enum pw_cache cache)
{
	send_whole_by("nodiskio", file, cache);
}

static bool
fetched_goes_and_the_rest_stays(void)
{
	SCOPED_FILE *file = prepare();
	off_t n;
	bool stayed;

	send_whole(file, PW_CACHE_DROP);
	tick(clock_now() + MINUTE);
	for (n = 0; n < SIZE / WINDOW; n++)
		if (n != BEFORE)
			assert_int_equal(in_window(file, n), 0);
	stayed = in_window(file, BEFORE) == PAGES;
	return stayed;
}

TEST(only_fetched_pages_are_dropped)
{
	skip_unless(NEED_EVICTION | NEED_EXACT);
	assert_true(holds_in_one_of(TRIES, fetched_goes_and_the_rest_stays));
}

AGAIN(only_fetched_pages_are_dropped, setup_sinks);

/* The client may not have acknowledged it yet. */
static bool
tail_stays_until_the_tick(void)
{
	SCOPED_FILE *file = prepare();
	uint64_t before = clock_now();
	bool stayed;

	send_whole(file, PW_CACHE_DROP);
	tick(before);
	stayed = in_window(file, SIZE / WINDOW - 1) == PAGES;
	tick(clock_now() + MINUTE);
	assert_int_equal(in_window(file, SIZE / WINDOW - 1), 0);
	return stayed;
}

TEST(the_end_is_dropped_at_a_later_tick)
{
	skip_unless(NEED_EVICTION | NEED_EXACT);
	assert_true(holds_in_one_of(TRIES, tail_stays_until_the_tick));
}

AGAIN(the_end_is_dropped_at_a_later_tick, setup_sinks);

static bool
tail_goes_soon(void)
{
	SCOPED_FILE *file = prepare();
	size_t left;

	send_whole(file, PW_CACHE_DROP);
	tick(clock_now() + DROP_SOON);
	left = in_window(file, SIZE / WINDOW - 1);
	tick(clock_now() + MINUTE);
	return left == 0;
}

/* A loaded machine may acknowledge as late as a far client. */
TEST(the_end_is_dropped_soon_for_a_near_client)
{
	skip_unless(NEED_EVICTION | NEED_EXACT);
	assert_true(holds_in_one_of(TRIES, tail_goes_soon));
}

static bool
everything_stays(enum pw_cache cache)
{
	SCOPED_FILE *file = prepare();
	bool stayed;

	send_whole(file, cache);
	tick(clock_now() + MINUTE);
	stayed = pages_resident(file->fil_fd, 0, (size_t)SIZE) ==
		 pages_in((size_t)SIZE);
	return stayed;
}

static bool
kept(void)
{
	return everything_stays(PW_CACHE_KEEP);
}

static bool
small_is_kept(void)
{
	return everything_stays(PW_CACHE_AUTO);
}

TEST(with_keep_everything_stays)
{
	skip_unless(NEED_EVICTION | NEED_EXACT);
	assert_true(holds_in_one_of(TRIES, kept));
}

AGAIN(with_keep_everything_stays, setup_sinks);

TEST(with_auto_a_small_file_stays)
{
	skip_unless(NEED_EVICTION | NEED_EXACT);
	assert_true(holds_in_one_of(TRIES, small_is_kept));
}

AGAIN(with_auto_a_small_file_stays, setup_sinks);

/* Nothing is fetched, so nobody else's lock is taken. */
TEST(with_auto_resident_files_need_no_decision)
{
	SCOPED_FILE *file = new_file("hot", 5000);
	SCOPED_WIRE wr = wide_wire();
	struct xfer xf;

	xfer_init(&xf, "nodiskio", &wr, file);
	file_priv(file)->fp_ask = OS_ASK_NEVER_COLD;
	xf.xf_send.snd_len = file->fil_size;
	xf.xf_send.snd_cache = PW_CACHE_AUTO;
	pw_send_start(&xf.xf_send);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	pw_send_finish(&xf.xf_send);
	assert_false(send_priv(&xf.xf_send)->ss_decided);
	assert_true(file_priv(file)->fp_noted);
	assert_int_equal(file_priv(file)->fp_sent, file->fil_size);
	tick(clock_now());
	assert_false(file_priv(file)->fp_noted);
	assert_int_equal(file_priv(file)->fp_sent, 0);
}

/* Twenty files, more than memory has room for, each asked for once. */
static void
ask_for_others(void)
{
	struct file_private private = {.fp_file.fil_dev = 1};
	struct pw_file *other = &private.fp_file;
	struct noted noted = {0};
	struct os_memory om;

	os_memory(&om);
	other->fil_size = (off_t)(om.om_bytes / 16);
	for (other->fil_ino = 0; other->fil_ino < 20; other->fil_ino++) {
		admission_sent(pool_admission(fx->fx_pool), &noted, other,
		    other->fil_size);
		admission_tell(pool_admission(fx->fx_pool), &noted);
	}
}

TEST(requests_for_a_closed_file_count)
{
	struct pw_file *file = new_file("hot", 5000);
	struct file_private private = {0};
	struct pw_file *same = &private.fp_file;
	struct wire wr;
	struct xfer xf;

	file_priv(file)->fp_ask = OS_ASK_NEVER_COLD;
	same->fil_dev = file->fil_dev;
	same->fil_ino = file->fil_ino;
	same->fil_size = file->fil_size;
	ask_for_others();
	assert_int_equal(admission_judge(pool_admission(fx->fx_pool), same, 0),
	    ADMISSION_GOES);
	for (int i = 0; i < 2; i++) {
		wire_wide(&wr);
		xfer_init(&xf, "nodiskio", &wr, file);
		xf.xf_send.snd_len = file->fil_size;
		xf.xf_send.snd_cache = PW_CACHE_AUTO;
		pw_send_start(&xf.xf_send);
		assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_DONE);
		pw_send_finish(&xf.xf_send);
		wire_close(&wr);
	}
	assert_ptr_equal(fx->fx_loop->lp_noted.nt_first, file);
	pw_file_unref(&file);
	assert_true(pw_loop_spare(fx->fx_loop));
	assert_null(fx->fx_loop->lp_noted.nt_first);
	tick(clock_now());
	assert_int_equal(admission_judge(pool_admission(fx->fx_pool), same, 0),
	    ADMISSION_STAYS);
}

/* A client that leaves before the first byte, and one that leaves in the middle. */
TEST(with_auto_bytes_that_were_sent_count)
{
	SCOPED_FILE *file = new_file("hot", 5000);
	SCOPED_WIRE wr;
	struct xfer xf;

	file_priv(file)->fp_ask = OS_ASK_NEVER_COLD;
	wire_wide(&wr);
	xfer_init(&xf, "nodiskio", &wr, file);
	xf.xf_send.snd_len = file->fil_size;
	xf.xf_send.snd_cache = PW_CACHE_AUTO;
	pw_send_start(&xf.xf_send);
	pw_send_cancel(&xf.xf_send);
	pw_send_finish(&xf.xf_send);
	assert_false(file_priv(file)->fp_noted);
	xf.xf_send.snd_file = file;
	xf.xf_send.snd_limit = 1000;
	pw_send_start(&xf.xf_send);
	(void)xfer_step(&xf);
	pw_send_cancel(&xf.xf_send);
	pw_send_finish(&xf.xf_send);
	assert_true(file_priv(file)->fp_noted);
	assert_int_equal(file_priv(file)->fp_sent, 1000);
}

/* They bring in what they do not know of: nothing would be given back. */
TEST(with_auto_blocking_and_copy_count_no_request)
{
	static const char *const paths[] = {"blocking", "copy"};
	SCOPED_FILE *file = new_file("hot", 5000);
	struct wire wr;
	struct xfer xf;

	for (size_t i = 0; i < COUNT(paths); i++) {
		wire_wide(&wr);
		xfer_init(&xf, paths[i], &wr, file);
		xf.xf_send.snd_len = file->fil_size;
		xf.xf_send.snd_cache = PW_CACHE_AUTO;
		pw_send_start(&xf.xf_send);
		assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_DONE);
		pw_send_finish(&xf.xf_send);
		wire_close(&wr);
		assert_false(file_priv(file)->fp_noted);
	}
}

/* Others have been asked for more often, and memory is too small for all. */
TEST(with_auto_an_unpopular_file_is_dropped)
{
	SCOPED_FILE *file;

	skip_unless(NEED_EVICTION | NEED_EXACT);
	file = prepare();
	for (int i = 0; i < 3; i++)
		ask_for_others();
	send_whole(file, PW_CACHE_AUTO);
	tick(clock_now() + MINUTE);
	assert_int_equal(in_window(file, 0), 0);
	assert_int_equal(in_window(file, SIZE / WINDOW - 1), 0);
}

AGAIN(with_auto_an_unpopular_file_is_dropped, setup_sinks);

/* What a cancelled transmission brought in goes as well. */
TEST(a_cancelled_transmission_drops_what_it_fetched)
{
	SCOPED_FILE *file;
	SCOPED_WIRE wr;
	struct xfer xf;

	skip_unless(NEED_EVICTION | NEED_EXACT);
	file = prepare();
	wire_narrow(&wr);
	xfer_init(&xf, "nodiskio", &wr, file);
	xf.xf_send.snd_readahead = (uint64_t)WINDOW;
	xf.xf_send.snd_len = SIZE;
	xf.xf_send.snd_cache = PW_CACHE_DROP;
	pw_send_start(&xf.xf_send);
	assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
	pw_send_cancel(&xf.xf_send);
	settle(fx->fx_loop);
	pw_send_finish(&xf.xf_send);
	tick(clock_now() + MINUTE);
	assert_int_equal(pages_resident(file->fil_fd, 0, (size_t)WINDOW), 0);
}

AGAIN(a_cancelled_transmission_drops_what_it_fetched, setup_sinks);

TEST(without_a_delay_a_range_is_dropped_at_once)
{
	SCOPED_FILE *file;

	skip_unless(NEED_EVICTION | NEED_EXACT);
	file = prepare();
	drop_behind_add(file, BEFORE * WINDOW, WINDOW, 0);
	assert_int_equal(
	    file_priv(file)->fp_refs, 3); /* ours, the cache's, its own */
	settle(fx->fx_loop);
	assert_int_equal(in_window(file, BEFORE), 0);
	assert_int_equal(file_priv(file)->fp_refs, 2);
}

TEST(a_short_delay_does_not_wait_for_a_long_one)
{
	SCOPED_FILE *file;

	skip_unless(NEED_EVICTION | NEED_EXACT);
	file = prepare();
	drop_behind_add(file, 0, WINDOW, clock_now() + MINUTE);
	drop_behind_add_soon(file, BEFORE * WINDOW, WINDOW);
	tick(clock_now() + DROP_SOON);
	assert_int_equal(in_window(file, BEFORE), 0);
	assert_int_equal(file_priv(file)->fp_refs, 3);
}

TEST(the_end_of_the_loop_cancels_delayed_drops)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);

	drop_behind_add(file, 0, WINDOW, clock_now() + MINUTE);
	drop_behind_add(file, WINDOW, WINDOW, clock_now() + 2 * MINUTE);
	tick(clock_now());
	drop_behind_add_soon(file, 0, WINDOW);
	assert_int_equal(file_priv(file)->fp_refs, 5);
	drop_behind_destroy(&fx->fx_loop->lp_drops);
	assert_null(fx->fx_loop->lp_drops);
	assert_int_equal(file_priv(file)->fp_refs, 2);
}

/* It is a hint: with a full queue the pages stay, and nothing leaks. */
TEST(a_full_queue_skips_the_drop, setup_narrow)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);
	struct latch la;

	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	drop_behind_add(file, 0, WINDOW, 0);
	assert_int_equal(file_priv(file)->fp_refs, 3);
	drop_behind_add(file, WINDOW, WINDOW, 0);
	assert_int_equal(file_priv(file)->fp_refs, 3);
	latch_finish(&la);
	assert_int_equal(file_priv(file)->fp_refs, 2);
}

/* ------------------------------------------------------------- drops and sends */

static bool
drop_is_put_off(void)
{
	SCOPED_FILE *file = prepare();
	bool stayed;

	assert_true(drop_lock_enter_send(file_priv(file)->fp_drop_lock));
	drop_behind_add(file, BEFORE * WINDOW, WINDOW, 0);
	assert_true(drop_lock_drops(file_priv(file)->fp_drop_lock) != 0);
	settle(fx->fx_loop);
	stayed = in_window(file, BEFORE) == PAGES;
	drop_lock_leave(file_priv(file)->fp_drop_lock);
	assert_int_equal(file_priv(file)->fp_refs, 3);
	assert_int_equal(file_priv(file)->fp_drops, 1);
	tick(clock_now() + DROP_SOON);
	assert_int_equal(in_window(file, BEFORE), 0);
	/* From now on residency checks are remembered again. */
	assert_int_equal(file_priv(file)->fp_drops, 0);
	assert_int_equal(file_priv(file)->fp_refs, 2);
	return stayed;
}

TEST(a_file_in_transmission_is_dropped_later)
{
	skip_unless(NEED_EVICTION | NEED_EXACT);
	assert_true(holds_in_one_of(TRIES, drop_is_put_off));
}

/* By a path that checks nothing before it sends. */
static bool
what_was_dropped_is_fetched(void)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);
	size_t left = 0;
	off_t n;

	verified_note(fx->fx_loop->lp_verified, file_priv(file)->fp_number, 0,
	    SIZE, SIZE, clock_now() + MINUTE);
	assert_true(evict(file->fil_fd, (size_t)SIZE));
	drop_lock_announce(file_priv(file)->fp_drop_lock);
	send_whole_by("aio", file, PW_CACHE_DROP);
	tick(clock_now() + MINUTE);
	for (n = 0; n < SIZE / WINDOW; n++)
		left += in_window(file, n);
	return left == 0;
}

TEST(what_another_loop_dropped_is_known_to_be_fetched)
{
	skip_unless(NEED_EVICTION | NEED_EXACT);
	assert_true(holds_in_one_of(TRIES, what_was_dropped_is_fetched));
}

TEST(numbers_of_drops_do_not_wrap)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);
	struct drop_lock *dl = file_priv(file)->fp_drop_lock;

	atomic_store(&dl->dl_drops, UINT32_MAX);
	drop_lock_announce(dl);
	assert_true(residency_may_drop(file));
}

static bool
first_drop_is_put_off(void)
{
	SCOPED_FILE *file = prepare();
	struct drop_lock *dl = file_priv(file)->fp_drop_lock;
	bool stayed;

	atomic_store(&dl->dl_since, 0);
	drop_behind_add(file, BEFORE * WINDOW, WINDOW, 0);
	settle(fx->fx_loop);
	stayed = in_window(file, BEFORE) == PAGES;
	assert_int_equal(file_priv(file)->fp_drops, 1);
	atomic_store(&dl->dl_since, 1);
	tick(clock_now() + DROP_SOON);
	assert_int_equal(in_window(file, BEFORE), 0);
	return stayed;
}

/* A loop that found no announcement sends without the lock. */
TEST(a_file_is_not_dropped_within_the_grace_of_the_first_drop)
{
	skip_unless(NEED_EVICTION | NEED_EXACT);
	assert_true(holds_in_one_of(TRIES, first_drop_is_put_off));
}

TEST(a_file_in_permanent_transmission_stays)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);

	assert_true(drop_lock_enter_send(file_priv(file)->fp_drop_lock));
	drop_behind_add(file, 0, WINDOW, 0);
	for (int i = 1; i < DROP_TRIES; i++) {
		settle(fx->fx_loop);
		assert_int_equal(file_priv(file)->fp_refs, 3);
		tick(clock_now() + DROP_SOON);
	}
	assert_int_equal(file_priv(file)->fp_refs, 2);
	drop_lock_leave(file_priv(file)->fp_drop_lock);
}

/* All of it is in memory, and yet the first step is not to send it. */
static void
not_sent_while_given_back(const char *path, struct pw_file *file)
{
	SCOPED_WIRE wr = wide_wire();
	SCOPED_XFER xf;

	xfer_init(&xf, path, &wr, file);
	xf.xf_send.snd_len = SIZE;
	pw_send_start(&xf.xf_send);
	assert_true(drop_lock_enter_drop(file_priv(file)->fp_drop_lock));
	assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
	drop_lock_leave(file_priv(file)->fp_drop_lock);
	settle(fx->fx_loop);
	assert_int_equal(xf.xf_send.snd_sent, 0);
	assert_int_not_equal(xfer_step(&xf), PW_SEND_PENDING);
	assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_DONE);
	assert_int_equal(wr.wr_len, SIZE);
	assert_true(drop_lock_enter_drop(file_priv(file)->fp_drop_lock));
	drop_lock_leave(file_priv(file)->fp_drop_lock);
}

TEST(the_loop_does_not_send_pages_that_are_being_dropped)
{
	static const char *const paths[] = {"nodiskio", "splice", "uring"};
	SCOPED_FILE *file;
	const char *why;
	void *held;

	skip_unless(NEED_NOWAIT | NEED_EXACT | NEED_LOCK);
	file = new_file("f", (size_t)SIZE);
	held = hold(file->fil_fd, (size_t)SIZE);
	residency_drops(file);
	for (size_t i = 0; i < COUNT(paths); i++)
		if (pw_send_probe(pw_send_path(paths[i]), &why) == 0)
			not_sent_while_given_back(paths[i], file);
	let_go(held, (size_t)SIZE);
}

AGAIN(the_loop_does_not_send_pages_that_are_being_dropped, setup_sinks);

/* It was in memory a moment ago; then another loop has given it back. */
static bool
stale_answer_is_not_used(void)
{
	static char name[] = "a";
	struct pw_file *file = new_file(name, (size_t)SIZE);
	struct wire wr;
	struct xfer xf;
	bool was, gone;

	name[0]++;
	was = residency_ask(file, 0, SIZE);
	drop_lock_announce(file_priv(file)->fp_drop_lock);
	assert_true(drop_lock_enter_drop(file_priv(file)->fp_drop_lock));
	posix_fadvise(file->fil_fd, 0, SIZE, POSIX_FADV_DONTNEED);
	drop_lock_leave(file_priv(file)->fp_drop_lock);
	gone = pages_resident(file->fil_fd, 0, (size_t)SIZE) == 0;
	wire_wide(&wr);
	xfer_init(&xf, "nodiskio", &wr, file);
	xf.xf_send.snd_len = SIZE;
	pw_send_start(&xf.xf_send);
	if (was && gone) {
		assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
		assert_int_equal(xf.xf_send.snd_sent, 0);
		settle(fx->fx_loop);
	}
	assert_int_equal(xfer_run(&xf, &wr, ALL), PW_SEND_DONE);
	assert_int_equal(wr.wr_len, SIZE);
	assert_false(file_priv(file)->fp_drops);
	pw_send_finish(&xf.xf_send);
	wire_close(&wr);
	pw_file_unref(&file);
	return was && gone;
}

TEST(a_drop_by_another_loop_is_noticed)
{
	skip_unless(NEED_EVICTION | NEED_NOWAIT | NEED_EXACT);
	assert_true(holds_in_one_of(TRIES, stale_answer_is_not_used));
}

AGAIN(a_drop_by_another_loop_is_noticed, setup_sinks);
