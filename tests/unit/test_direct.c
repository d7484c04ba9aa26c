/*
 * Windows that are read past the page cache (lib/os/linux_direct.c, fetch_direct), for what would be
 * given back: what is sent, what is left in the page cache, and when it is not done.
 */
#include "xfer_fixture.h"

#include "lib/disk/pins.h"
#include "lib/disk/pool.h"
#include "lib/os/os.h"
#include "lib/send/window_size.h"
#include "lib/util/clock.h"

#define WINDOW	((off_t)WINDOW_MOST)
#define REST	12345 /* bytes of the last window: no multiple of anything */
#define SIZE	(3 * WINDOW + REST)
#define SETTLED 4 /* seconds: fetch.c has 2, and compares whole ones */

struct download {
	struct pw_file *dl_file;
	struct wire dl_wire;
	struct xfer dl_xfer;
};

static void
start(struct download *dl, enum pw_cache cache, off_t from, off_t end)
{
	struct pw_send *s = &dl->dl_xfer.xf_send;

	wire_wide(&dl->dl_wire);
	xfer_init(&dl->dl_xfer, "nodiskio", &dl->dl_wire, dl->dl_file);
	s->snd_off = from;
	s->snd_len = end - from;
	s->snd_cache = cache;
	pw_send_start(s);
	assert_int_equal(xfer_step(&dl->dl_xfer), PW_SEND_PENDING);
	settle(fx->fx_loop);
}

static void
finish(struct download *dl)
{
	pw_send_finish(&dl->dl_xfer.xf_send);
	settle(fx->fx_loop);
	/* What is mapped is not given back. */
	pw_loop_tick(fx->fx_loop, clock_now() + PINS_WAITED_US + 1);
	settle(fx->fx_loop);
	wire_close(&dl->dl_wire);
	assert_true(evict(dl->dl_file->fil_fd, (size_t)SIZE));
}

static size_t
resident(const struct download *dl)
{
	return pages_resident(dl->dl_file->fil_fd, 0, (size_t)SIZE);
}

static bool
is_copied(const struct download *dl, off_t off)
{
	struct pins *ps = pool_pins(fx->fx_pool);
	struct pins_key key = pins_key(dl->dl_file);
	struct pin *pn = pins_take(ps, &key, off);
	bool copied = pins_copy(pn, off) != NULL;

	pins_release(ps, &pn);
	return copied;
}

static void
rest_is_right(struct download *dl, off_t from, off_t end)
{
	assert_int_equal(
	    xfer_run(&dl->dl_xfer, &dl->dl_wire, UINT64_MAX), PW_SEND_DONE);
	wire_has_file(&dl->dl_wire, from, end - from);
}

static void
comes_by_the_page_cache(struct download *dl, enum pw_cache cache)
{
	start(dl, cache, 0, SIZE);
	assert_false(is_copied(dl, 0));
	assert_true(resident(dl) > 0);
	rest_is_right(dl, 0, SIZE);
	finish(dl);
}

/* Its last piece, which is too short to be worth it, is all that the page cache has. */
static void
what_goes_does_not_touch_the_page_cache(struct download *dl)
{
	start(dl, PW_CACHE_DROP, 0, SIZE);
	assert_true(is_copied(dl, 0));
	assert_int_equal(resident(dl), 0);
	rest_is_right(dl, 0, SIZE);
	assert_in_range(resident(dl), 0, (REST + 64 * KIB) / 4096 + 1);
	finish(dl);
}

static void
range_begins_and_ends_at_any_byte(struct download *dl)
{
	off_t from = WINDOW / 2 + 1, end = 2 * WINDOW + WINDOW / 2 + 77;

	start(dl, PW_CACHE_DROP, from, end);
	rest_is_right(dl, from, end);
	assert_int_equal(resident(dl), 0);
	finish(dl);
}

/* What was read before is of the first version, so the client must not have all of it. */
static void
changed_file_is_not_sent_whole(struct download *dl)
{
	int fd;

	start(dl, PW_CACHE_DROP, 0, SIZE);
	assert_true(is_copied(dl, 0));
	fd = open(path_in("f"), O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "!", 1, WINDOW), 1);
	close(fd);
	assert_int_equal(
	    xfer_run(&dl->dl_xfer, &dl->dl_wire, UINT64_MAX), PW_SEND_ERROR);
	assert_int_equal(dl->dl_xfer.xf_send.snd_error, -ESTALE);
	finish(dl);
}

static void
memory_is_lent_past_the_page_cache(struct download *dl)
{
	struct pw_fetch ft = {.ft_waiter.wt_done = nothing_done,
	    .ft_file = dl->dl_file,
	    .ft_off = WINDOW + 1,
	    .ft_len = (size_t)WINDOW,
	    .ft_want = PW_FETCH_MEMORY,
	    .ft_cache = PW_CACHE_DROP};
	struct pw_pool_stats before, after;

	pw_pool_stats(fx->fx_pool, &before);
	assert_true(evict(dl->dl_file->fil_fd, (size_t)SIZE));
	assert_int_equal(pw_fetch(&ft), -EINPROGRESS);
	settle(fx->fx_loop);
	assert_int_equal(ft.ft_waiter.wt_error, 0);
	assert_int_equal(ft.ft_have, WINDOW - 1);
	for (size_t i = 0; i < ft.ft_have; i++)
		assert_int_equal((unsigned char)ft.ft_mem[i],
		    byte_at(WINDOW + 1 + (off_t)i));
	assert_int_equal(resident(dl), 0);
	assert_true(is_copied(dl, WINDOW));
	pw_unpin(&ft);
	settle(fx->fx_loop);
	pw_pool_stats(fx->fx_pool, &after);
	assert_int_equal(after.ps_dropped, before.ps_dropped);
}

static bool
has_direct_reads(int fd)
{
	struct os_version ov;
	size_t align;
	int own = os_direct_open(fd, &ov, &align);

	if (own >= 0)
		close(own);
	return own >= 0;
}

/* One file for all: each has to wait until it is settled. */
TEST(windows_past_the_page_cache)
{
	struct download dl = {0};

	skip_unless(NEED_EVICTION | NEED_EXACT);
	dl.dl_file = new_file("f", (size_t)SIZE);
	assert_true(evict(dl.dl_file->fil_fd, (size_t)SIZE));
	/* The times of a file that was just written might be those of a second version. */
	comes_by_the_page_cache(&dl, PW_CACHE_DROP);
	if (!has_direct_reads(dl.dl_file->fil_fd)) {
		pw_file_unref(&dl.dl_file);
		print_message("%s: no direct reads here\n", fx->fx_dir);
		skip();
	}
	sleep(SETTLED);
	comes_by_the_page_cache(&dl, PW_CACHE_KEEP);
	what_goes_does_not_touch_the_page_cache(&dl);
	range_begins_and_ends_at_any_byte(&dl);
	memory_is_lent_past_the_page_cache(&dl);
	changed_file_is_not_sent_whole(&dl);
	pw_file_unref(&dl.dl_file);
}
