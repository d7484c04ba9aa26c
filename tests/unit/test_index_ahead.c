/*
 * The index behind the media data of an MP4 file is fetched when the first window has arrived
 * (lib/send/index_ahead.c): these bytes alone, once, and within the budget.
 */
#include "xfer_fixture.h"

#include "lib/disk/pool.h"
#include "lib/send/window_size.h"
#include "lib/util/clock.h"

#define WINDOW	((off_t)WINDOW_MOST)
#define SIZE	(5 * WINDOW + 12345)
#define INDEX	(3 * WINDOW + 4096 * 77)
#define NEAR	(4 * WINDOW)	 /* end of the index's first window */
#define FAR	(INDEX + WINDOW) /* end of what is fetched */
#define SETTLED 4 /* seconds: fetch.c has 2, and compares whole ones */

struct film {
	struct pw_file *fm_file;
	struct wire fm_wire;
	struct xfer fm_xfer;
};

static void
number(unsigned char *to, uint64_t n, int bytes)
{
	while (bytes-- > 0) {
		to[bytes] = (unsigned char)n;
		n >>= 8;
	}
}

/* A file whose media data end at `index`. */
static void
make_film(struct film *fm, const char *first, off_t index)
{
	const struct timespec times[2] = {
	    {.tv_sec = time(NULL) - SETTLED}, {.tv_sec = time(NULL) - SETTLED}};
	unsigned char head[48] = {0};
	int fd;

	skip_unless(NEED_EVICTION | NEED_EXACT);
	number(head, 32, 4);
	memcpy(head + 4, first, 4);
	number(head + 32, 1, 4);
	memcpy(head + 36, "mdat", 4);
	number(head + 40, (uint64_t)(index - 32), 8);
	make_file("f", (size_t)SIZE);
	fd = open(path_in("f"), O_WRONLY);
	assert_int_equal(pwrite(fd, head, sizeof(head), 0), sizeof(head));
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
	fm->fm_file = open_file("f");
	assert_true(evict(fm->fm_file->fil_fd, (size_t)SIZE));
}

static size_t
resident(const struct film *fm, off_t from, off_t end)
{
	return pages_resident(fm->fm_file->fil_fd, from, (size_t)(end - from));
}

static void
begin(struct film *fm, bool index, enum pw_cache cache, off_t from, off_t end)
{
	struct pw_send *s = &fm->fm_xfer.xf_send;

	wire_wide(&fm->fm_wire);
	xfer_init(&fm->fm_xfer, "nodiskio", &fm->fm_wire, fm->fm_file);
	s->snd_index = index;
	s->snd_cache = cache;
	s->snd_off = from;
	s->snd_len = end - from;
	pw_send_start(s);
	assert_int_equal(xfer_step(&fm->fm_xfer), PW_SEND_PENDING);
}

/* No budget is left behind, also if the transmission ends before its prefetch. */
static void
end(struct film *fm)
{
	struct pw_pool_stats ps;

	pw_send_finish(&fm->fm_xfer.xf_send);
	settle(fx->fx_loop);
	pw_loop_tick(fx->fx_loop, clock_now() + PINS_WAITED_US + 1);
	settle(fx->fx_loop);
	pw_pool_stats(fx->fx_pool, &ps);
	assert_int_equal(ps.ps_unsent, 0);
	wire_close(&fm->fm_wire);
	pw_file_unref(&fm->fm_file);
}

/* Fetches the range, and returns how many pages behind the first window are resident then. */
static size_t
fetched(struct film *fm, bool index, enum pw_cache cache, off_t from, off_t to)
{
	begin(fm, index, cache, from, to);
	settle(fx->fx_loop);
	return resident(fm, WINDOW, SIZE);
}

TEST(the_index_is_fetched_with_the_first_window)
{
	struct film fm;

	make_film(&fm, "ftyp", INDEX);
	assert_int_equal(fetched(&fm, true, PW_CACHE_KEEP, 0, SIZE),
	    pages_in((size_t)WINDOW));
	assert_int_equal(resident(&fm, INDEX, FAR), pages_in((size_t)WINDOW));
	end(&fm);
}

TEST(a_short_range_has_the_index_fetched_up_to_the_end)
{
	struct film fm;
	off_t index = SIZE - 50; /* in the last page */

	make_film(&fm, "ftyp", index);
	assert_int_equal(fetched(&fm, true, PW_CACHE_KEEP, 0, 2), 1);
	assert_int_equal(resident(&fm, SIZE / 4096 * 4096, SIZE), 1);
	end(&fm);
}

TEST(nothing_is_fetched_unless_asked_for)
{
	struct film fm;

	make_film(&fm, "ftyp", INDEX);
	assert_int_equal(fetched(&fm, false, PW_CACHE_KEEP, 0, SIZE), 0);
	end(&fm);
}

TEST(another_format_has_no_index)
{
	struct film fm;

	make_film(&fm, "RIFF", INDEX);
	assert_int_equal(fetched(&fm, true, PW_CACHE_KEEP, 0, SIZE), 0);
	end(&fm);
}

TEST(a_range_from_the_middle_does_not_look_for_it)
{
	struct film fm;

	make_film(&fm, "ftyp", INDEX);
	assert_int_equal(
	    fetched(&fm, true, PW_CACHE_KEEP, 2 * WINDOW, 2 * WINDOW + 4096),
	    1);
	end(&fm);
}

static bool
is_copied(const struct film *fm, off_t off)
{
	struct pins *ps = pool_pins(fx->fx_pool);
	struct pins_key key = pins_key(fm->fm_file);
	struct pin *pn = pins_take(ps, &key, off);
	bool copied = pins_copy(pn, off) != NULL;

	pins_release(ps, &pn);
	return copied;
}

/* As direct reads into copies, or where there are none, by the page cache and for DROP_LATER. */
TEST(the_index_of_a_file_that_is_not_kept_goes)
{
	struct film fm;

	make_film(&fm, "ftyp", INDEX);
	sleep(SETTLED);
	fetched(&fm, true, PW_CACHE_DROP, 0, SIZE);
	assert_true(is_copied(&fm, INDEX) ||
		    resident(&fm, INDEX, FAR) == pages_in((size_t)WINDOW));
	if (is_copied(&fm, 0))
		assert_true(is_copied(&fm, INDEX));
	pw_send_finish(&fm.fm_xfer.xf_send);
	pw_loop_tick(fx->fx_loop, clock_now() + PINS_WAITED_US + 1);
	settle(fx->fx_loop);
	assert_int_equal(resident(&fm, INDEX, FAR), 0);
	end(&fm);
}

TEST(a_transmission_may_end_before, setup_one_thread)
{
	struct latch la;
	struct film fm;

	make_film(&fm, "ftyp", INDEX);
	begin(&fm, true, PW_CACHE_KEEP, 0, SIZE);
	while (fm.fm_xfer.xf_done == 0)
		pw_loop_drain(fx->fx_loop);
	latch_shut(&la, file_priv(fm.fm_file)->fp_device, fx->fx_loop);
	pw_send_finish(&fm.fm_xfer.xf_send);
	latch_finish(&la);
	assert_int_equal(resident(&fm, INDEX, FAR), pages_in((size_t)WINDOW));
	end(&fm);
}

/* A download's next window in the queue. */
struct other {
	struct pw_waiter ot_waiter;
	struct film *ot_film;
	bool ot_ran;
	size_t ot_resident; /* pages of the index's first window by then */
};

static void
other_done(struct pw_waiter *w)
{
	struct other *ot = (struct other *)w;

	ot->ot_ran = true;
	ot->ot_resident = resident(ot->ot_film, INDEX, NEAR);
}

/*
 * The index is found while the device's one thread is held, and that window is queued.  First windows have
 * used less of the device than next ones.
 */
static void
find_behind(struct film *fm, struct other *ot)
{
	struct pw_device *dv;
	struct latch la;

	make_film(fm, "ftyp", INDEX);
	begin(fm, true, PW_CACHE_KEEP, 0, SIZE);
	while (fm->fm_xfer.xf_done == 0)
		pw_loop_drain(fx->fx_loop);
	/* Behind the job that looks for the index. */
	dv = file_priv(fm->fm_file)->fp_device;
	latch_shut(&la, dv, fx->fx_loop);
	pthread_mutex_lock(&dv->dv_lock);
	dv->dv_shares.sh_used[JOB_LONG] = UINT64_MAX / 2;
	pthread_mutex_unlock(&dv->dv_lock);
	*ot = (struct other){.ot_waiter.wt_done = other_done, .ot_film = fm};
	assert_int_equal(pool_fetch(fm->fm_file, WINDOW, 4096, FETCH_PAGES,
			     ADMIT_HINT, &ot->ot_waiter),
	    0);
	pw_loop_drain(fx->fx_loop);
	assert_false(ot->ot_ran);
	latch_finish(&la);
	assert_true(ot->ot_ran);
}

TEST(next_windows_of_others_come_later, setup_one_thread)
{
	struct other ot;
	struct film fm;

	find_behind(&fm, &ot);
	assert_int_equal(ot.ot_resident, pages_in((size_t)(NEAR - INDEX)));
	end(&fm);
}

TEST(a_full_queue_refuses_it_without_a_count, setup_narrow)
{
	struct other ot;
	struct film fm;

	find_behind(&fm, &ot);
	assert_int_equal(pw_pool_refused(fx->fx_pool), 0);
	assert_int_equal(resident(&fm, INDEX, FAR), 0);
	end(&fm);
}
