/*
 * pw_fetch, pw_unpin and pw_resident (lib/send/lend.c): what is lent, who shares it, and what is refused.
 */
#include "xfer_fixture.h"

#include "lib/disk/budget.h"
#include "lib/os/os.h"
#include "lib/send/drop_behind.h"

#define WINDOW ((off_t)PW_FETCH_WINDOW)
#define REST \
	(200 * KIB + 57) /* bytes of the last window: no multiple of anything */
#define SIZE ((size_t)WINDOW + REST)

struct fetch {
	struct pw_fetch fe_fetch;
	unsigned fe_times;
};

static void
fetch_done(struct pw_waiter *w)
{
	((struct fetch *)w)->fe_times++;
}

static int
start(struct fetch *fe, struct pw_file *file, off_t off, size_t len,
    enum pw_fetch_want want)
{
	*fe = (struct fetch){.fe_fetch = {.ft_waiter.wt_done = fetch_done,
				 .ft_file = file,
				 .ft_off = off,
				 .ft_len = len,
				 .ft_want = want}};
	return pw_fetch(&fe->fe_fetch);
}

/* Fetches, and waits for the result if there is a wait. */
static int
fetch(struct fixture *fx, struct fetch *fe, struct pw_file *file, off_t off,
    size_t len, enum pw_fetch_want want)
{
	int error = start(fe, file, off, len, want);

	assert_int_equal(fe->fe_times, 0);
	if (error != -EINPROGRESS)
		return error;
	settle(fx->fx_loop);
	assert_int_equal(fe->fe_times, 1);
	return fe->fe_fetch.ft_waiter.wt_error;
}

static void
assert_lends(const struct fetch *fe, size_t len)
{
	const struct pw_fetch *ft = &fe->fe_fetch;

	assert_int_equal(ft->ft_have, len);
	assert_non_null(ft->ft_mem);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)ft->ft_mem[i] !=
		    byte_at(ft->ft_off + (off_t)i))
			fail_msg("byte %zu", i);
}

static uint64_t
budget_taken(struct fixture *fx)
{
	struct pw_pool_stats ps;

	pw_pool_stats(fx->fx_pool, &ps);
	return ps.ps_unsent;
}

static struct pw_file *
cold_file(struct fixture *fx)
{
	struct pw_file *file;

	skip_unless(fx, NEED_EVICTION | NEED_EXACT);
	file = new_file(fx, "f", SIZE);
	assert_true(evict(file->fil_fd, SIZE));
	return file;
}

static void
add_mapping(struct pins *ps, const struct pins_key *key, void *map, size_t len)
{
	const struct os_folio fo = {
	    .fo_map = map, .fo_len = len, .fo_pipe = -1};

	pins_add(ps, key, 0, &fo, PINS_UNMARKED);
}

static void
overwrite(struct fixture *fx)
{
	int fd = open(path_in(fx, "f"), O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	usleep(10000); /* longer than a tick of the file system's clock */
	assert_int_equal(pwrite(fd, "!", 1, 0), 1);
	close(fd);
}

static void
memory_is_lent_by_windows(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct fetch a, b;

	assert_int_equal(
	    fetch(fx, &a, file, 100, SIZE - 100, PW_FETCH_MEMORY), 0);
	assert_int_equal(budget_taken(fx), WINDOW - 100);
	assert_lends(&a, (size_t)WINDOW - 100);
	assert_int_equal(fetch(fx, &b, file, WINDOW, REST, PW_FETCH_MEMORY), 0);
	assert_lends(&b, REST);
	assert_true(pw_pool_pinned(fx->fx_pool) >= 2 * PW_FETCH_WINDOW);
	pw_unpin(&b.fe_fetch);
	assert_null(b.fe_fetch.ft_mem);
	assert_lends(&a, (size_t)WINDOW - 100);
	pw_unpin(&a.fe_fetch);
	pw_unpin(&a.fe_fetch);
	assert_int_equal(budget_taken(fx), 0);
	assert_int_equal(file_priv(file)->fp_refs, 2);
	pw_file_unref(&file);
}

static void
all_that_need_a_window_share_one_copy(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct pw_device *dv = file_priv(file)->fp_device;
	struct fetch fe[4];
	struct latch la;
	unsigned long ended;
	size_t i;

	latch_shut(&la, dv, fx->fx_loop);
	ended = device_ended(dv);
	for (i = 0; i < 3; i++)
		assert_int_equal(start(&fe[i], file, 0, REST, PW_FETCH_MEMORY),
		    -EINPROGRESS);
	latch_open(&la);
	settle(fx->fx_loop);
	assert_int_equal(device_ended(dv) - ended, 2); /* with the latch */
	assert_int_equal(start(&fe[3], file, 5, 7, PW_FETCH_MEMORY), 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(fe[i].fe_times, 1);
		assert_lends(&fe[i], REST);
		assert_ptr_equal(fe[i].fe_fetch.ft_mem, fe[0].fe_fetch.ft_mem);
	}
	assert_ptr_equal(fe[3].fe_fetch.ft_mem, fe[0].fe_fetch.ft_mem + 5);
	for (i = 0; i < 4; i++)
		pw_unpin(&fe[i].fe_fetch);
	assert_int_equal(budget_taken(fx), 0);
	pw_file_unref(&file);
}

/* A mapping of the same bytes is no copy, and must not keep one from being made. */
static void
a_copy_is_made_beside_a_mapping(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct pins *ps = pool_pins(fx->fx_pool);
	struct pins_key key = pins_key(file);
	struct pin *pn;
	struct fetch fe;
	void *map;

	assert_true(pins_reserve(ps, OS_FOLIO));
	map = os_map(file->fil_fd, 0, OS_FOLIO);
	assert_non_null(map);
	add_mapping(ps, &key, map, OS_FOLIO);
	pn = pins_take(ps, &key, 0);
	assert_non_null(pins_mapping(pn, 0));
	assert_int_equal(
	    fetch(fx, &fe, file, 0, (size_t)WINDOW, PW_FETCH_MEMORY), 0);
	assert_lends(&fe, (size_t)WINDOW);
	assert_ptr_not_equal(fe.fe_fetch.ft_mem, map);
	pw_unpin(&fe.fe_fetch);
	assert_int_equal(
	    fetch(fx, &fe, file, 0, (size_t)WINDOW, PW_FETCH_MEMORY), 0);
	assert_int_equal(fe.fe_times, 0);
	pw_unpin(&fe.fe_fetch);
	pins_release(ps, &pn);
	pw_file_unref(&file);
}

/* A direct fetch of a file that was just written falls back to the page cache. */
static void
a_fetch_that_makes_no_copy_is_repeated(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct pw_waiter w = {.wt_done = nothing_done};
	struct fetch fe;
	struct latch la;

	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	assert_int_equal(
	    pool_fetch(file, 0, (size_t)WINDOW, FETCH_DIRECT, ADMIT_NEW, &w),
	    0);
	assert_int_equal(
	    start(&fe, file, 0, (size_t)WINDOW, PW_FETCH_MEMORY), -EINPROGRESS);
	latch_open(&la);
	settle(fx->fx_loop);
	assert_int_equal(w.wt_error, 0);
	assert_int_equal(fe.fe_times, 1);
	assert_int_equal(fe.fe_fetch.ft_waiter.wt_error, 0);
	assert_lends(&fe, (size_t)WINDOW);
	pw_unpin(&fe.fe_fetch);
	pw_file_unref(&file);
}

static void
a_copy_never_changes_and_is_of_one_version(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct fetch a, b;
	struct latch la;

	assert_int_equal(fetch(fx, &a, file, 0, REST, PW_FETCH_MEMORY), 0);
	overwrite(fx);
	assert_lends(&a, REST);
	assert_int_equal(
	    fetch(fx, &b, file, 0, REST, PW_FETCH_MEMORY), -ESTALE);
	assert_int_equal(
	    fetch(fx, &b, file, WINDOW, 1, PW_FETCH_MEMORY), -ESTALE);
	assert_int_equal(
	    fetch(fx, &b, file, WINDOW, 1, PW_FETCH_PAGES), -ESTALE);
	pw_unpin(&a.fe_fetch);
	pw_file_unref(&file);
	file = new_file(fx, "f", SIZE);
	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	assert_int_equal(
	    start(&a, file, 0, REST, PW_FETCH_MEMORY), -EINPROGRESS);
	overwrite(fx);
	latch_open(&la);
	settle(fx->fx_loop);
	assert_int_equal(a.fe_fetch.ft_waiter.wt_error, -ESTALE);
	assert_null(a.fe_fetch.ft_mem);
	assert_int_equal(budget_taken(fx), 0);
	pw_file_unref(&file);
}

static void
a_transmission_uses_the_copy(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = cold_file(fx);
	struct fetch fe;
	struct wire wr;
	struct xfer xf;

	assert_int_equal(
	    fetch(fx, &fe, file, 0, (size_t)WINDOW, PW_FETCH_MEMORY), 0);
	evict(file->fil_fd, SIZE);
	wire_wide(&wr);
	xfer_init(&xf, "nodiskio", fx, &wr, file);
	xf.xf_send.snd_len = 64 * KIB;
	assert_int_equal(pw_send_start(&xf.xf_send), 0);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	assert_int_equal(xf.xf_pending, 0);
	wire_has_file(&wr, 0, 64 * KIB);
	pw_send_finish(&xf.xf_send);
	wire_close(&wr);
	pw_unpin(&fe.fe_fetch);
	pw_file_unref(&file);
}

static void
pages_are_resident_afterwards(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = cold_file(fx);
	struct fetch fe;

	assert_int_equal(pw_resident(file, 5, SIZE - 5), 0);
	assert_int_equal(
	    start(&fe, file, 5, (size_t)WINDOW - 5, PW_FETCH_PAGES),
	    -EINPROGRESS);
	settle(fx->fx_loop);
	assert_int_equal(fe.fe_fetch.ft_waiter.wt_error, 0);
	assert_int_equal(fe.fe_fetch.ft_have, WINDOW - 5);
	assert_int_equal(budget_taken(fx), WINDOW - 5);
	assert_int_equal(
	    pages_resident(file->fil_fd, 0, (size_t)WINDOW), WINDOW / 4096);
	assert_int_equal(pw_resident(file, 5, (size_t)WINDOW - 5), 1);
	pw_unpin(&fe.fe_fetch);
	/* A part of a window, which cannot be locked, needs no disk thread now. */
	assert_int_equal(start(&fe, file, 5, 100, PW_FETCH_PAGES), 0);
	assert_int_equal(budget_taken(fx), 0);
	pw_unpin(&fe.fe_fetch);
	pw_file_unref(&file);
}

static bool small_readahead; /* true if the device's read-ahead is 128 KiB */

bool __real_os_folios(dev_t, size_t *);
bool __wrap_os_folios(dev_t, size_t *);

bool
__wrap_os_folios(dev_t dev, size_t *readahead)
{
	bool folios = __real_os_folios(dev, readahead);

	if (small_readahead)
		*readahead = (size_t)128 * KIB;
	return folios;
}

static void
whole_windows_are_locked(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file;
	struct fetch a, b;

	small_readahead = true;
	file = cold_file(fx);
	assert_int_equal(fetch(fx, &a, file, 0, SIZE, PW_FETCH_PAGES), 0);
	if (a.fe_fetch.ft_mem == NULL) {
		pw_unpin(&a.fe_fetch);
		pw_file_unref(&file);
		small_readahead = false;
		print_message("%s: no locked folios here\n", fx->fx_dir);
		skip();
	}
	assert_lends(&a, (size_t)WINDOW);
	assert_int_equal(fetch(fx, &b, file, WINDOW, REST, PW_FETCH_PAGES), 0);
	assert_lends(&b, REST);
	posix_fadvise(file->fil_fd, 0, 0, POSIX_FADV_DONTNEED);
	assert_int_equal(pages_resident(file->fil_fd, 0, SIZE), pages_in(SIZE));
	pw_unpin(&b.fe_fetch);
	/* The mapping is there: no other is made. */
	assert_int_equal(start(&b, file, 4096, 10, PW_FETCH_PAGES), 0);
	assert_ptr_equal(b.fe_fetch.ft_mem, a.fe_fetch.ft_mem + 4096);
	pw_unpin(&b.fe_fetch);
	pw_unpin(&a.fe_fetch);
	small_readahead = false;
	pw_file_unref(&file);
}

/* A pin of a part of the range is of no use, and is released. */
static void
a_pin_that_ends_too_early_is_not_lent(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct fetch a, b;

	assert_int_equal(fetch(fx, &a, file, 0, 100, PW_FETCH_MEMORY), 0);
	assert_int_equal(
	    fetch(fx, &b, file, 0, (size_t)WINDOW, PW_FETCH_MEMORY), 0);
	assert_lends(&b, (size_t)WINDOW);
	pw_unpin(&a.fe_fetch);
	pw_unpin(&b.fe_fetch);
	pw_loop_tick(fx->fx_loop, clock_now() + PINS_FRESH_US + 1);
	pw_loop_tick(
	    fx->fx_loop, clock_now() + PINS_FRESH_US + PINS_SPARE_US + 2);
	settle(fx->fx_loop);
	for (int ms = 0; pw_pool_pinned(fx->fx_pool) > 0 && ms < PATIENCE; ms++)
		usleep(1000);
	assert_int_equal(pw_pool_pinned(fx->fx_pool), 0);
	pw_file_unref(&file);
}

/* So its blocks are known to be in memory, as to a file of another owner they must be. */
static void
a_mapping_that_ends_too_early_is_not_lent(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct pins *ps = pool_pins(fx->fx_pool);
	struct pins_key key = pins_key(file);
	struct fetch fe;
	void *map;

	assert_true(pins_reserve(ps, 4096));
	map = os_map(file->fil_fd, 0, 4096);
	assert_non_null(map);
	add_mapping(ps, &key, map, 4096);
	assert_int_equal(fetch(fx, &fe, file, 100, 3996, PW_FETCH_PAGES), 0);
	assert_lends(&fe, 3996);
	pw_unpin(&fe.fe_fetch);
	map = os_map(file->fil_fd, 0, 4096);
	assert_non_null(map);
	assert_true(pins_reserve(ps, 4096));
	add_mapping(ps, &key, map, 4096);
	assert_int_equal(fetch(fx, &fe, file, 100, 3997, PW_FETCH_PAGES), 0);
	assert_null(fe.fe_fetch.ft_mem);
	pw_unpin(&fe.fe_fetch);
	pw_file_unref(&file);
}

static void
fetched_pages_of_another_owner_are_found_resident(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = cold_file(fx);
	struct fetch fe;

	as_another_owner(file);
	assert_int_equal(fetch(fx, &fe, file, 5, 256 * KIB, PW_FETCH_PAGES), 0);
	assert_int_equal(pw_resident(file, 5, 256 * KIB), 1);
	pw_unpin(&fe.fe_fetch);
	pw_file_unref(&file);
}

static void
without_pins_pages_are_lent_unlocked_and_no_memory(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = cold_file(fx);
	struct fetch fe;

	leave_no_room_for_pins(fx);
	assert_int_equal(
	    fetch(fx, &fe, file, 0, SIZE, PW_FETCH_MEMORY), -ENOBUFS);
	assert_null(fe.fe_fetch.ft_mem);
	assert_int_equal(budget_taken(fx), 0);
	assert_int_equal(fetch(fx, &fe, file, 0, SIZE, PW_FETCH_PAGES), 0);
	assert_null(fe.fe_fetch.ft_mem);
	assert_int_equal(pw_resident(file, 0, (size_t)WINDOW), 1);
	pw_unpin(&fe.fe_fetch);
	pw_file_unref(&file);
}

static void
a_fetch_waits_for_the_budget(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct pw_device *dv = file_priv(file)->fp_device;
	size_t all = budget_max(pool_room(fx->fx_pool));
	struct fetch fe;

	assert_int_equal(pool_room_take(dv, all, false, fx->fx_loop, NULL), 0);
	assert_int_equal(
	    start(&fe, file, 0, REST, PW_FETCH_MEMORY), -EINPROGRESS);
	usleep(10000);
	pw_loop_drain(fx->fx_loop);
	assert_int_equal(fe.fe_times, 0);
	pool_room_give(dv, all);
	settle(fx->fx_loop);
	assert_int_equal(fe.fe_times, 1);
	assert_lends(&fe, REST);
	pw_unpin(&fe.fe_fetch);
	assert_int_equal(budget_taken(fx), 0);
	pw_file_unref(&file);
}

/* With one thread the two drops cannot get in each other's way. */
static void
pages_that_were_fetched_are_dropped(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = cold_file(fx);
	struct fetch fe = {.fe_fetch = {.ft_waiter.wt_done = fetch_done,
			       .ft_file = file,
			       .ft_len = 256 * KIB,
			       .ft_cache = PW_CACHE_DROP}};
	int tries;

	assert_int_equal(pw_fetch(&fe.fe_fetch), -EINPROGRESS);
	settle(fx->fx_loop);
	assert_int_equal(pages_resident(file->fil_fd, 0, 256 * KIB), 64);
	pw_unpin(&fe.fe_fetch);
	for (tries = 0;
	     tries < 100 && pages_resident(file->fil_fd, 0, 256 * KIB) > 0;
	     tries++) {
		pw_loop_tick(fx->fx_loop, clock_now() + 2 * DROP_LATER);
		settle(fx->fx_loop);
		usleep(10000);
	}
	assert_int_equal(pages_resident(file->fil_fd, 0, 256 * KIB), 0);
	/* Pages that others read stay. */
	read_in(file->fil_fd, 0, 256 * KIB);
	assert_int_equal(pw_fetch(&fe.fe_fetch), 0);
	pw_unpin(&fe.fe_fetch);
	pw_loop_tick(fx->fx_loop, clock_now() + 2 * DROP_LATER);
	settle(fx->fx_loop);
	assert_int_equal(pages_resident(file->fil_fd, 0, 256 * KIB), 64);
	pw_file_unref(&file);
}

static void
a_full_queue_refuses_what_has_not_begun(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct fetch first, second, begun = {0};
	struct latch la;

	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	assert_int_equal(
	    start(&first, file, 0, 10, PW_FETCH_MEMORY), -EINPROGRESS);
	assert_int_equal(
	    start(&second, file, WINDOW, 10, PW_FETCH_MEMORY), -EAGAIN);
	begun.fe_fetch = second.fe_fetch;
	begun.fe_fetch.ft_begun = true;
	assert_int_equal(pw_fetch(&begun.fe_fetch), -EINPROGRESS);
	latch_open(&la);
	settle(fx->fx_loop);
	assert_lends(&first, 10);
	assert_lends(&begun, 10);
	pw_unpin(&first.fe_fetch);
	pw_unpin(&begun.fe_fetch);
	assert_int_equal(budget_taken(fx), 0);
	pw_file_unref(&file);
}

static void
a_fetch_that_cannot_be_is_refused(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE),
		       *dir = open_file(fx, ".");
	struct pw_fetch no_done = {.ft_file = file, .ft_len = 1};
	struct fetch fe;

	assert_int_equal(pw_fetch(&no_done), -EINVAL);
	assert_int_equal(start(&fe, NULL, 0, 1, PW_FETCH_PAGES), -EINVAL);
	assert_int_equal(start(&fe, dir, 0, 1, PW_FETCH_PAGES), -EINVAL);
	assert_int_equal(start(&fe, file, 0, 0, PW_FETCH_PAGES), -EINVAL);
	assert_int_equal(start(&fe, file, -1, 1, PW_FETCH_PAGES), -EINVAL);
	assert_int_equal(start(&fe, file, 1, SIZE, PW_FETCH_PAGES), -EINVAL);
	assert_int_equal(start(&fe, file, SIZE, 1, PW_FETCH_PAGES), -EINVAL);
	assert_int_equal(
	    start(&fe, file, 1, SIZE_MAX, PW_FETCH_PAGES), -EINVAL);
	assert_int_equal(fetch(fx, &fe, file, 0, 1, PW_FETCH_MEMORY), 0);
	assert_int_equal(pw_fetch(&fe.fe_fetch), -EINVAL);
	assert_lends(&fe, 1);
	pw_unpin(&fe.fe_fetch);
	assert_int_equal(file_priv(file)->fp_refs, 2);
	pw_file_unref(&dir);
	pw_file_unref(&file);
}

/* The residency of a file of a network file system is unknown; a copy can be had. */
static void
a_file_that_cannot_be_checked_is_copied(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", SIZE);
	struct fetch fe;

	file_priv(file)->fp_ask = OS_ASK_FETCH;
	file_priv(file)->fp_remote = true;
	assert_int_equal(pw_resident(file, 0, 1), -EOPNOTSUPP);
	assert_int_equal(fetch(fx, &fe, file, 7, 100, PW_FETCH_MEMORY), 0);
	assert_lends(&fe, 100);
	pw_unpin(&fe.fe_fetch);
	overwrite(fx);
	assert_int_equal(
	    fetch(fx, &fe, file, WINDOW, 10, PW_FETCH_MEMORY), -ESTALE);
	pw_file_unref(&file);
}

static void
residency_is_asked_without_a_read(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = cold_file(fx);

	assert_int_equal(pw_resident(file, 0, SIZE), 0);
	assert_int_equal(pages_resident(file->fil_fd, 0, SIZE), 0);
	read_in(file->fil_fd, 0, 128 * KIB);
	assert_int_equal(pw_resident(file, 0, 128 * KIB), 1);
	assert_int_equal(pw_resident(file, 0, 128 * KIB + 1), 0);
	assert_int_equal(pages_resident(file->fil_fd, 0, SIZE), 32);
	assert_int_equal(pw_resident(file, 0, 0), -EINVAL);
	assert_int_equal(pw_resident(file, -1, 1), -EINVAL);
	assert_int_equal(pw_resident(file, 1, SIZE), -EINVAL);
	assert_true(file_priv(file)->fp_random);
	/* While pages are dropped, none is promised. */
	file_priv(file)->fp_drops = true;
	assert_int_equal(pw_resident(file, 0, 128 * KIB), 1);
	assert_true(drop_lock_enter_drop(file_priv(file)->fp_drop_lock));
	assert_int_equal(pw_resident(file, 0, 128 * KIB), 0);
	drop_lock_leave(file_priv(file)->fp_drop_lock);
	pw_file_unref(&file);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		memory_is_lent_by_windows, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		all_that_need_a_window_share_one_copy, setup_one_thread,
		teardown),
	    cmocka_unit_test_setup_teardown(
		a_copy_is_made_beside_a_mapping, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_fetch_that_makes_no_copy_is_repeated, setup_one_thread,
		teardown),
	    cmocka_unit_test_setup_teardown(
		a_copy_never_changes_and_is_of_one_version, setup_one_thread,
		teardown),
	    cmocka_unit_test_setup_teardown(
		a_transmission_uses_the_copy, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		pages_are_resident_afterwards, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		whole_windows_are_locked, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_pin_that_ends_too_early_is_not_lent, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_mapping_that_ends_too_early_is_not_lent, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		fetched_pages_of_another_owner_are_found_resident, setup,
		teardown),
	    cmocka_unit_test_setup_teardown(
		without_pins_pages_are_lent_unlocked_and_no_memory, setup,
		teardown),
	    cmocka_unit_test_setup_teardown(
		a_fetch_waits_for_the_budget, setup, teardown),
	    cmocka_unit_test_setup_teardown(pages_that_were_fetched_are_dropped,
		setup_one_thread, teardown),
	    cmocka_unit_test_setup_teardown(
		a_full_queue_refuses_what_has_not_begun, setup_narrow,
		teardown),
	    cmocka_unit_test_setup_teardown(
		a_fetch_that_cannot_be_is_refused, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_file_that_cannot_be_checked_is_copied, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		residency_is_asked_without_a_read, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
