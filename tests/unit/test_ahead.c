/*
 * The next window is fetched while the last one is sent (lib/send/readahead.c), within
 * the budget (lib/send/window.c).
 */
#include "xfer_fixture.h"

#include <sched.h>

#include "lib/disk/drop_lock.h"
#include "lib/disk/pool.h"
#include "lib/send/window_size.h"
#include "lib/util/clock.h"

#define WINDOW	((off_t)WINDOW_MOST)
#define WINDOWS 4
#define SIZE	(WINDOWS * WINDOW)

struct download {
	struct pw_file *dl_file;
	struct wire dl_wire;
	struct xfer dl_xfer;
};

/* Cold, and up to the moment at which its first window is there. */
static void
begin(struct download *dl, const char *path)
{
	struct pw_send *s = &dl->dl_xfer.xf_send;

	skip_unless(NEED_EVICTION | NEED_EXACT);
	dl->dl_file = new_file("f", (size_t)SIZE);
	assert_true(evict(dl->dl_file->fil_fd, (size_t)SIZE));
	wire_wide(&dl->dl_wire);
	xfer_init(&dl->dl_xfer, path, &dl->dl_wire, dl->dl_file);
	s->snd_len = SIZE;
}

static void
first_window(struct download *dl)
{
	pw_send_start(&dl->dl_xfer.xf_send);
	assert_int_equal(xfer_step(&dl->dl_xfer), PW_SEND_PENDING);
	settle(fx->fx_loop);
	assert_int_equal(dl->dl_xfer.xf_done, 1);
}

static void
end(struct download *dl)
{
	struct pw_pool_stats ps;

	pw_send_finish(&dl->dl_xfer.xf_send);
	settle(fx->fx_loop);
	pw_pool_stats(fx->fx_pool, &ps);
	assert_int_equal(ps.ps_unsent, 0);
	assert_int_equal(
	    file_priv(dl->dl_file)->fp_refs, 2); /* ours, the cache's */
	pw_file_unref(&dl->dl_file);
	wire_close(&dl->dl_wire);
}

static enum pw_send_status
step(struct download *dl)
{
	enum pw_send_status status = xfer_step(&dl->dl_xfer);

	if (status == PW_SEND_WANT_WRITE)
		wire_flush(&dl->dl_wire);
	return status;
}

/* Steps until it has sent so much of the file. */
static void
send_up_to(struct download *dl, off_t off)
{
	while (dl->dl_xfer.xf_send.snd_off < off)
		assert_int_not_equal(step(dl), PW_SEND_PENDING);
}

/* The first window is sent, and the device's one thread is held before the next. */
static void
begin_and_hold_the_next(struct download *dl, struct latch *la)
{
	begin(dl, "nodiskio");
	first_window(dl);
	latch_shut(la, file_priv(dl->dl_file)->fp_device, fx->fx_loop);
	send_up_to(dl, WINDOW);
}

static struct pw_loop_stats
stats(void)
{
	struct pw_loop_stats ls;

	pw_loop_stats(fx->fx_loop, &ls);
	return ls;
}

static void
whole_file_is_right(struct download *dl)
{
	wire_has_file(&dl->dl_wire, 0, SIZE);
}

#define TRIES 20

/*
 * Where each comes in time, the first is the only one that is waited for.  How early the next
 * is fetched goes by the client's rate, and that of a client that gets no processor is low: then
 * one comes too late, and it is tried again.
 */
TEST(only_the_first_window_is_waited_for)
{
	struct pw_loop_stats before, after;
	struct download dl;
	int tries = 0;

	do {
		if (tries > 0)
			end(&dl);
		begin(&dl, "nodiskio");
		before = stats();
		first_window(&dl);
		while (step(&dl) != PW_SEND_DONE)
			settle(fx->fx_loop);
	} while (dl.dl_xfer.xf_pending > 1 && ++tries < TRIES);
	after = stats();
	assert_int_equal(dl.dl_xfer.xf_pending, 1);
	assert_int_equal(after.ls_missed - before.ls_missed, 1);
	assert_int_equal(after.ls_ahead - before.ls_ahead, WINDOWS - 1);
	assert_int_equal(after.ls_evicted - before.ls_evicted, 0);
	whole_file_is_right(&dl);
	end(&dl);
}

AGAIN(only_the_first_window_is_waited_for, setup_sinks);

TEST(a_transmission_ahead_of_its_prefetch_waits_once, setup_one_thread)
{
	struct download dl;
	struct latch la;

	begin_and_hold_the_next(&dl, &la);
	assert_int_equal(step(&dl), PW_SEND_PENDING);
	assert_int_equal(dl.dl_xfer.xf_done, 1);
	latch_finish(&la);
	assert_int_equal(dl.dl_xfer.xf_done, 2);
	assert_int_equal(stats().ls_ahead, 1);
	assert_int_equal(
	    xfer_run(&dl.dl_xfer, &dl.dl_wire, UINT64_MAX), PW_SEND_DONE);
	whole_file_is_right(&dl);
	end(&dl);
}

TEST(a_wait_for_a_prefetch_can_be_cancelled, setup_one_thread)
{
	struct download dl;
	struct latch la;

	begin_and_hold_the_next(&dl, &la);
	assert_int_equal(step(&dl), PW_SEND_PENDING);
	pw_send_cancel(&dl.dl_xfer.xf_send);
	assert_int_equal(dl.dl_xfer.xf_done, 1);
	latch_finish(&la);
	assert_int_equal(dl.dl_xfer.xf_done, 2);
	assert_int_equal(step(&dl), PW_SEND_ERROR);
	end(&dl);
}

/* It has its own reference, and nobody is told. */
TEST(a_transmission_may_end_before_its_prefetch, setup_one_thread)
{
	struct download dl;
	struct latch la;

	begin_and_hold_the_next(&dl, &la);
	pw_send_finish(&dl.dl_xfer.xf_send);
	memset(&dl.dl_xfer, 0x5a, sizeof(dl.dl_xfer));
	/* Each window that is on its way has one. */
	assert_in_range(file_priv(dl.dl_file)->fp_refs, 3, 2 + WINDOWS);
	latch_finish(&la);
	dl.dl_xfer.xf_send.snd_file = NULL;
	end(&dl);
}

/* Where the window is locked in memory, and the file is the one that was opened. */
TEST(a_pinned_window_is_sent_without_a_residency_check)
{
	struct download dl;
	struct pins_key key;
	struct pins *ps;
	struct pin *pn;
	bool pinned;

	begin(&dl, "nodiskio");
	first_window(&dl);
	ps = pool_pins(fx->fx_pool);
	key = pins_key(dl.dl_file);
	pn = pins_take(ps, &key, 0);
	pinned = pn != NULL;
	if (pinned) {
		send_up_to(&dl, SHARE);
		assert_int_equal(stats().ls_resident, 0);
		assert_int_equal(futimens(dl.dl_file->fil_fd, NULL), 0);
		send_up_to(&dl, 3 * SHARE);
		assert_in_range(stats().ls_resident, 1, 4);
	}
	pins_release(ps, &pn);
	end(&dl);
	if (!pinned)
		skip(); /* RLIMIT_MEMLOCK, or no large folios */
}

static unsigned yields;

int
sched_yield(void)
{
	yields++;
	return 0;
}

/* Returns how often the loop yields when it fetches the next window. */
static unsigned
yields_for_next_window(uint64_t pace, size_t lead)
{
	struct download dl;
	unsigned before;
	uint64_t ahead;

	begin(&dl, "nodiskio");
	dl.dl_xfer.xf_send.snd_rate = WINDOW_MOST;
	dl.dl_xfer.xf_send.snd_pace = pace;
	first_window(&dl);
	send_priv(&dl.dl_xfer.xf_send)->ss_lead = lead;
	ahead = stats().ls_ahead;
	before = yields;
	while (stats().ls_ahead == ahead)
		assert_int_not_equal(step(&dl), PW_SEND_PENDING);
	before = yields - before;
	end(&dl);
	return before;
}

/* Disk threads on the loop's core could otherwise begin only when the loop waits. */
TEST(a_loop_yields_if_the_client_is_faster_than_the_disk)
{
	assert_int_equal(yields_for_next_window(WINDOW_MOST, 0), 0);
	assert_int_equal(
	    yields_for_next_window(0, WINDOW_LEAD * WINDOW_MOST), 1);
}

TEST(without_read_ahead_one_chunk_is_fetched)
{
	struct download dl;
	int fd;

	begin(&dl, "nodiskio");
	dl.dl_xfer.xf_send.snd_readahead = PW_READAHEAD_NONE;
	first_window(&dl);
	fd = dl.dl_file->fil_fd;
	assert_in_range(
	    pages_resident(fd, 0, (size_t)SIZE), 0, pages_in(SHARE));
	send_up_to(&dl, SHARE);
	assert_int_equal(stats().ls_ahead, 0);
	assert_int_equal(
	    xfer_run(&dl.dl_xfer, &dl.dl_wire, UINT64_MAX), PW_SEND_DONE);
	assert_int_equal(stats().ls_ahead, 0);
	assert_in_range(stats().ls_missed, SIZE / SHARE, SIZE / SHARE + 8);
	whole_file_is_right(&dl);
	end(&dl);
}

AGAIN(without_read_ahead_one_chunk_is_fetched, setup_sinks);

/* All that the device may have is another's. */
static size_t
take_all_room(struct download *dl)
{
	struct pw_device *dv = file_priv(dl->dl_file)->fp_device;
	struct pw_pool_stats ps;
	size_t len;

	pw_pool_stats(fx->fx_pool, &ps);
	len = (size_t)ps.ps_unsent_max / 3 * 2 + 3;
	assert_int_equal(pool_room_take(dv, len, false, fx->fx_loop, NULL), 0);
	return len;
}

TEST(without_budget_a_transmission_waits)
{
	struct download dl;
	size_t taken;

	begin(&dl, "nodiskio");
	taken = take_all_room(&dl);
	pw_send_start(&dl.dl_xfer.xf_send);
	assert_int_equal(xfer_step(&dl.dl_xfer), PW_SEND_PENDING);
	usleep(10000);
	pw_loop_drain(fx->fx_loop);
	assert_int_equal(dl.dl_xfer.xf_done, 0);
	assert_int_equal(stats().ls_held, 1);
	pool_room_give(file_priv(dl.dl_file)->fp_device, taken);
	settle(fx->fx_loop);
	assert_int_equal(dl.dl_xfer.xf_done, 1);
	assert_int_equal(
	    xfer_run(&dl.dl_xfer, &dl.dl_wire, UINT64_MAX), PW_SEND_DONE);
	assert_int_equal(stats().ls_held, 1);
	whole_file_is_right(&dl);
	end(&dl);
}

AGAIN(without_budget_a_transmission_waits, setup_sinks);

TEST(a_cancelled_wait_for_budget_returns_it)
{
	struct download dl;
	size_t taken;

	begin(&dl, "nodiskio");
	taken = take_all_room(&dl);
	pw_send_start(&dl.dl_xfer.xf_send);
	assert_int_equal(xfer_step(&dl.dl_xfer), PW_SEND_PENDING);
	pw_send_cancel(&dl.dl_xfer.xf_send);
	pool_room_give(file_priv(dl.dl_file)->fp_device, taken);
	settle(fx->fx_loop);
	assert_int_equal(dl.dl_xfer.xf_done, 1);
	end(&dl);
}

AGAIN(a_cancelled_wait_for_budget_returns_it, setup_sinks);

/* The window is small then, and the next one is not fetched early. */
TEST(windows_are_small_if_memory_is_short)
{
	struct download dl;
	size_t taken;

	begin(&dl, "nodiskio");
	taken = take_all_room(&dl);
	pool_room_give(file_priv(dl.dl_file)->fp_device, WINDOW_MOST);
	first_window(&dl);
	assert_in_range(pages_resident(dl.dl_file->fil_fd, 0, (size_t)SIZE), 1,
	    pages_in(WINDOW_GUESS));
	pool_room_give(file_priv(dl.dl_file)->fp_device, taken - WINDOW_MOST);
	end(&dl);
}

AGAIN(windows_are_small_if_memory_is_short, setup_sinks);

/* Else the windows of many fast clients, which are all new at first, would be read by pages. */
TEST(first_windows_are_whole_while_half_of_the_budget_is_left)
{
	struct download dl;
	size_t taken;

	begin(&dl, "nodiskio");
	taken = take_all_room(&dl);
	pool_room_give(file_priv(dl.dl_file)->fp_device, taken / 2);
	assert_false(pool_room_plenty(file_priv(dl.dl_file)->fp_device));
	first_window(&dl);
	assert_in_range(pages_resident(dl.dl_file->fil_fd, 0, (size_t)SIZE),
	    pages_in(WINDOW_MOST), pages_in((size_t)SIZE));
	pool_room_give(file_priv(dl.dl_file)->fp_device, taken - taken / 2);
	end(&dl);
}

/* Its memory cannot be evicted, so the second eviction does not matter. */
TEST(what_was_evicted_is_read_into_own_memory)
{
	struct download dl;
	int fd;

	begin(&dl, "nodiskio");
	leave_no_room_for_pins();
	first_window(&dl);
	fd = dl.dl_file->fil_fd;
	assert_true(evict(fd, (size_t)SIZE));
	assert_int_equal(step(&dl), PW_SEND_PENDING);
	settle(fx->fx_loop);
	assert_int_equal(stats().ls_evicted, 1);
	assert_in_range(
	    pages_resident(fd, 0, (size_t)SIZE), 0, pages_in(SHARE));
	assert_true(evict(fd, (size_t)SIZE));
	assert_int_not_equal(step(&dl), PW_SEND_PENDING);
	assert_true(dl.dl_xfer.xf_send.snd_off > 0);
	assert_int_equal(pages_resident(fd, 0, (size_t)SIZE), 0);
	assert_int_equal(stats().ls_evicted, 1);
	end(&dl);
}

AGAIN(what_was_evicted_is_read_into_own_memory, setup_sinks);

static uint64_t
most_budget(void)
{
	struct pw_pool_stats ps;

	pw_pool_stats(fx->fx_pool, &ps);
	return ps.ps_unsent_max;
}

/* The pages are resident, but a disk thread drops pages of another file with the same lock. */
TEST(a_chunk_that_is_locked_is_not_taken_for_evicted)
{
	struct drop_lock *lock;
	struct download dl;
	uint64_t most;

	begin(&dl, "nodiskio");
	leave_no_room_for_pins();
	lock = file_priv(dl.dl_file)->fp_drop_lock;
	drop_lock_announce(lock);
	first_window(&dl);
	send_up_to(&dl, 1);
	most = most_budget();
	assert_true(drop_lock_enter_drop(lock));
	assert_int_equal(step(&dl), PW_SEND_PENDING);
	assert_int_equal(stats().ls_evicted, 0);
	assert_int_equal(most_budget(), most);
	drop_lock_leave(lock);
	settle(fx->fx_loop);
	assert_int_not_equal(step(&dl), PW_SEND_PENDING);
	assert_int_equal(stats().ls_evicted, 0);
	end(&dl);
}

AGAIN(a_chunk_that_is_locked_is_not_taken_for_evicted, setup_sinks);
