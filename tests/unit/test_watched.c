/*
 * Popular windows that are watched (lib/file/watched.h), for a server that does not own the file: each
 * check of a window asks for each of its pages.
 */
#include "xfer_fixture.h"

#include "lib/disk/completion.h"
#include "lib/disk/pool_priv.h"
#include "lib/disk/reclaim.h"
#include "lib/file/watched.h"
#include "lib/file/residency.h"
#include "lib/os/os.h"
#include "lib/os/watch.h"

#define SIZE   (OS_FOLIO + 300 * KIB - 1) /* two windows that can be watched */
#define ROUNDS 200

static unsigned asked; /* pages that os_nowait is called for */

int __real_os_nowait(int, off_t, size_t);
int __wrap_os_nowait(int, off_t, size_t);

int
__wrap_os_nowait(int fd, off_t off, size_t len)
{
	asked += (unsigned)len;
	return __real_os_nowait(fd, off, len);
}

static unsigned scanned; /* calls of os_watch_is_whole */

bool __real_os_watch_is_whole(int, const char *, size_t);
bool __wrap_os_watch_is_whole(int, const char *, size_t);

bool
__wrap_os_watch_is_whole(int pagemap, const char *map, size_t len)
{
	scanned++;
	return __real_os_watch_is_whole(pagemap, map, len);
}

static bool always_quiet; /* if false, reclaim_is_quiet decides */

bool __real_reclaim_is_quiet(struct reclaim *, uint64_t);
bool __wrap_reclaim_is_quiet(struct reclaim *, uint64_t);

bool
__wrap_reclaim_is_quiet(struct reclaim *rc, uint64_t now)
{
	return always_quiet || __real_reclaim_is_quiet(rc, now);
}

/*
 * Time of the loop's thread, or 0 for the true time.  It stands still while a file is sent: a sanitizer beside
 * other programs may need longer for that than two requests of a popular window are apart.
 */
static _Thread_local uint64_t loop_now;

uint64_t __real_clock_now(void);
uint64_t __wrap_clock_now(void);

uint64_t
__wrap_clock_now(void)
{
	return loop_now != 0 ? loop_now : __real_clock_now();
}

/* Opens a file that is in memory. */
static struct pw_file *
popular_file(struct fixture *fx)
{
	struct pw_file *file;

	skip_unless(fx, NEED_EVICTION | NEED_NOWAIT);
	if (fx->fx_pool->pl_pagemap < 0)
		skip(); /* before Linux 6.7 */
	loop_now = __real_clock_now();
	file = new_file(fx, "f", SIZE);
	as_another_owner(file);
	residency_fetched(file, 0, (off_t)SIZE);
	return file;
}

/*
 * Sends the file when RESIDENCY_HOLDS of an earlier check has passed.  Counts in `asked` the pages that are asked
 * for, and in `scanned` the checks of mappings.
 */
static enum pw_send_status
send_later(struct fixture *fx, struct pw_file *file)
{
	enum pw_send_status status;
	struct wire wr;
	struct xfer xf;

	loop_now += RESIDENCY_HOLDS + 1;
	asked = 0;
	scanned = 0;
	wire_wide(&wr);
	xfer_init(&xf, "nodiskio", fx, &wr, file);
	xf.xf_send.snd_len = (off_t)SIZE;
	pw_send_start(&xf.xf_send);
	status = xfer_run(&xf, &wr, UINT64_MAX);
	if (status == PW_SEND_DONE)
		wire_has_file(&wr, 0, (off_t)SIZE);
	else
		assert_int_equal(xf.xf_send.snd_error, -ESTALE);
	pw_send_finish(&xf.xf_send);
	wire_close(&wr);
	settle(fx->fx_loop);
	return status;
}

/* Returns the number of pages that are asked for. */
static unsigned
send_again(struct fixture *fx, struct pw_file *file)
{
	assert_int_equal(send_later(fx, file), PW_SEND_DONE);
	return asked;
}

/* Sends the file again and again while the kernel seems to reclaim pages.  Returns true once no page is asked for. */
static bool
becomes_watched(struct fixture *fx, struct pw_file *file)
{
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		reclaim_expect(fx->fx_pool->pl_reclaim);
		if (send_again(fx, file) == 0)
			return true;
	}
	return false;
}

static void
popular_window_is_not_checked_page_by_page(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = popular_file(fx);

	assert_true(send_again(fx, file) >= SIZE / os_page_size());
	assert_true(becomes_watched(fx, file));
	assert_int_equal(send_again(fx, file), 0);
	assert_int_equal(pins_bytes(fx->fx_pool->pl_pins), SIZE);
	/* The kernel evicts none of its pages. */
	evict(file->fil_fd, SIZE);
	assert_int_equal(pages_resident(file->fil_fd, 0, SIZE), pages_in(SIZE));
	assert_int_equal(send_again(fx, file), 0);
	pw_file_unref(&file);
}

static void
check_of_a_watched_window_holds_while_nothing_is_reclaimed(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = popular_file(fx);
	unsigned i;

	assert_true(becomes_watched(fx, file));
	assert_true(scanned > 0);
	assert_int_equal(send_again(fx, file), 0);
	assert_true(scanned > 0);
	always_quiet = true;
	for (i = 0; i < ROUNDS && scanned > 0; i++)
		assert_int_equal(send_again(fx, file), 0);
	assert_int_equal(scanned, 0);
	loop_now += RESIDENCY_HOLDS_QUIET;
	assert_int_equal(send_again(fx, file), 0);
	assert_true(scanned > 0);
	residency_drops(file);
	assert_int_equal(send_again(fx, file), 0);
	assert_true(scanned > 0);
	residency_drops_end(file);
	always_quiet = false;
	pw_file_unref(&file);
}

static void
window_that_is_not_requested_is_released(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = popular_file(fx);
	uint64_t dev;

	assert_true(becomes_watched(fx, file));
	assert_true(pins_tick(
	    fx->fx_pool->pl_pins, clock_now() + PINS_FRESH_US + 1000000, &dev));
	pins_reap(fx->fx_pool->pl_pins, dev);
	assert_int_equal(pins_bytes(fx->fx_pool->pl_pins), 0);
	assert_true(evict(file->fil_fd, SIZE));
	pw_file_unref(&file);
}

static void
watched_window_of_a_file_that_changed_is_not_used(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = popular_file(fx);
	int fd;

	assert_true(becomes_watched(fx, file));
	fd = openat(fx->fx_root->rt_fd, "f", O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)SIZE - 1), 0);
	assert_int_equal(ftruncate(fd, (off_t)SIZE), 0);
	close(fd);
	assert_int_equal(send_later(fx, file), PW_SEND_ERROR);
	pw_file_unref(&file);
}

/* Two pages leave the mapping, as when the kernel evicts them. */
static void
window_whose_pages_were_evicted_is_checked_again(void **state)
{
	struct fixture *fx = *state;
	struct pins *ps = fx->fx_pool->pl_pins;
	struct pw_file *file = popular_file(fx);
	struct pins_key key = pins_key(file);
	size_t page = os_page_size();
	struct pin *pn;
	char *map;

	assert_true(becomes_watched(fx, file));
	pn = pins_take(ps, &key, 0);
	assert_true(pins_watched(pn));
	map = (char *)(uintptr_t)pins_mapping(pn, 0);
	assert_int_equal(madvise(map + 7 * page, page, MADV_DONTNEED), 0);
	pins_release(ps, &pn);
	assert_true(send_again(fx, file) > 0);
	assert_true(becomes_watched(fx, file));
	/* the last page, of which the file has a part */
	pn = pins_take(ps, &key, (off_t)OS_FOLIO);
	map = (char *)(uintptr_t)pins_mapping(pn, (off_t)OS_FOLIO);
	assert_int_equal(
	    madvise(map + 300 * KIB - page, page, MADV_DONTNEED), 0);
	pins_release(ps, &pn);
	assert_true(send_again(fx, file) > 0);
	pw_file_unref(&file);
}

/* A page leaves the mapping while the transmission of a slow client references it. */
static void
window_whose_mapping_is_in_use_is_mapped_again(void **state)
{
	struct fixture *fx = *state;
	struct pins *ps = fx->fx_pool->pl_pins;
	struct pw_file *file = popular_file(fx);
	struct pins_key key = pins_key(file);
	struct pin *slow;
	char *map;

	assert_true(becomes_watched(fx, file));
	slow = pins_take(ps, &key, 0);
	assert_true(pins_watched(slow));
	map = (char *)(uintptr_t)pins_mapping(slow, 0);
	assert_int_equal(
	    madvise(map + 7 * os_page_size(), os_page_size(), MADV_DONTNEED),
	    0);
	assert_true(send_again(fx, file) > 0);
	assert_true(becomes_watched(fx, file));
	pins_release(ps, &slow);
	assert_int_equal(send_again(fx, file), 0);
	pw_file_unref(&file);
}

/* A fetch lends pages that are locked, or none. */
static void
watched_window_is_not_lent(void **state)
{
	struct fixture *fx = *state;
	struct pins *ps = fx->fx_pool->pl_pins;
	struct pw_file *file = popular_file(fx);
	struct pins_key key = pins_key(file);
	struct pw_fetch ft = {.ft_waiter.wt_done = nothing_done,
	    .ft_file = file,
	    .ft_len = OS_FOLIO,
	    .ft_want = PW_FETCH_PAGES};
	const char *map;
	struct pin *pn;
	int error;

	assert_true(becomes_watched(fx, file));
	pn = pins_take(ps, &key, 0);
	assert_true(pins_watched(pn));
	map = pins_mapping(pn, 0);
	error = pw_fetch(&ft);
	settle(fx->fx_loop);
	if (error == -EINPROGRESS)
		error = ft.ft_waiter.wt_error;
	assert_int_equal(error, 0);
	assert_int_equal(ft.ft_have, OS_FOLIO);
	assert_ptr_not_equal(ft.ft_mem, map);
	pw_unpin(&ft);
	pins_release(ps, &pn);
	pw_file_unref(&file);
}

static void
files_of_less_than_a_window_are_not_watched(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = popular_file(fx);

	file->fil_size = (off_t)(WATCHED_LEAST - 1);
	watched_map(file, 0, clock_now());
	settle(fx->fx_loop);
	assert_int_equal(pins_bytes(fx->fx_pool->pl_pins), 0);
	file->fil_size = (off_t)SIZE;
	watched_map(file, (off_t)SIZE - 1, clock_now());
	settle(fx->fx_loop);
	assert_int_equal(pins_bytes(fx->fx_pool->pl_pins), SIZE - OS_FOLIO);
	pw_file_unref(&file);
}

/* Without memory for pins the file is sent as before, and the next second brings no other attempt. */
static void
nothing_is_watched_above_the_limit_of_pins(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = popular_file(fx);
	uint64_t now = clock_now();

	leave_no_room_for_pins(fx);
	watched_map(file, 0, now);
	settle(fx->fx_loop);
	assert_false(pins_any(fx->fx_pool->pl_pins));
	assert_true(fx->fx_loop->lp_watched_at >= now + 1000000);
	assert_true(send_again(fx, file) > 0);
	pw_file_unref(&file);
}

static int
end(void **state)
{
	loop_now = 0;
	return teardown(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(popular_window_is_not_checked_page_by_page),
	    TEST(check_of_a_watched_window_holds_while_nothing_is_reclaimed),
	    TEST(window_that_is_not_requested_is_released),
	    TEST(watched_window_of_a_file_that_changed_is_not_used),
	    TEST(window_whose_pages_were_evicted_is_checked_again),
	    TEST(window_whose_mapping_is_in_use_is_mapped_again),
	    TEST(watched_window_is_not_lent),
	    TEST(files_of_less_than_a_window_are_not_watched),
	    TEST(nothing_is_watched_above_the_limit_of_pins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
