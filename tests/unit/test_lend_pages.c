/*
 * pw_fetch, pw_unpin and pw_resident (lib/send/lend.c) with PW_FETCH_PAGES: which pages are resident
 * and locked, and when they are dropped.
 */
#include "lend_fixture.h"

TEST(pages_are_resident_afterwards)
{
	SCOPED_FILE *file = cold_file();
	struct fetch fe;

	assert_int_equal(pw_resident(file, 5, SIZE - 5), 0);
	assert_int_equal(
	    start(&fe, file, 5, (size_t)WINDOW - 5, PW_FETCH_PAGES),
	    -EINPROGRESS);
	settle(fx->fx_loop);
	assert_int_equal(fe.fe_fetch.ft_waiter.wt_error, 0);
	assert_int_equal(fe.fe_fetch.ft_have, WINDOW - 5);
	assert_int_equal(budget_taken(), WINDOW - 5);
	assert_int_equal(
	    pages_resident(file->fil_fd, 0, (size_t)WINDOW), WINDOW / 4096);
	assert_int_equal(pw_resident(file, 5, (size_t)WINDOW - 5), 1);
	pw_unpin(&fe.fe_fetch);
	/* A part of a window, which cannot be locked, needs no disk thread now. */
	assert_int_equal(start(&fe, file, 5, 100, PW_FETCH_PAGES), 0);
	assert_int_equal(budget_taken(), 0);
	pw_unpin(&fe.fe_fetch);
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

TEST(whole_windows_are_locked)
{
	struct pw_file *file;
	struct fetch a, b;

	small_readahead = true;
	file = cold_file();
	assert_int_equal(fetch(&a, file, 0, SIZE, PW_FETCH_PAGES), 0);
	if (a.fe_fetch.ft_mem == NULL) {
		pw_unpin(&a.fe_fetch);
		pw_file_unref(&file);
		small_readahead = false;
		print_message("%s: no locked folios here\n", fx->fx_dir);
		skip();
	}
	assert_lends(&a, (size_t)WINDOW);
	assert_int_equal(fetch(&b, file, WINDOW, REST, PW_FETCH_PAGES), 0);
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
TEST(a_pin_that_ends_too_early_is_not_lent)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	struct fetch a, b;

	assert_int_equal(fetch(&a, file, 0, 100, PW_FETCH_MEMORY), 0);
	assert_int_equal(
	    fetch(&b, file, 0, (size_t)WINDOW, PW_FETCH_MEMORY), 0);
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
}

/* So its blocks are known to be in memory, as to a file of another owner they must be. */
TEST(a_mapping_that_ends_too_early_is_not_lent)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	struct pins *ps = pool_pins(fx->fx_pool);
	struct pins_key key = pins_key(file);
	struct fetch fe;
	void *map;

	assert_true(pins_reserve(ps, 4096));
	map = os_map(file->fil_fd, 0, 4096);
	assert_non_null(map);
	add_mapping(ps, &key, map, 4096);
	assert_int_equal(fetch(&fe, file, 100, 3996, PW_FETCH_PAGES), 0);
	assert_lends(&fe, 3996);
	pw_unpin(&fe.fe_fetch);
	map = os_map(file->fil_fd, 0, 4096);
	assert_non_null(map);
	assert_true(pins_reserve(ps, 4096));
	add_mapping(ps, &key, map, 4096);
	assert_int_equal(fetch(&fe, file, 100, 3997, PW_FETCH_PAGES), 0);
	assert_null(fe.fe_fetch.ft_mem);
	pw_unpin(&fe.fe_fetch);
}

TEST(fetched_pages_of_another_owner_are_found_resident)
{
	SCOPED_FILE *file = cold_file();
	struct fetch fe;

	as_another_owner(file);
	assert_int_equal(fetch(&fe, file, 5, 256 * KIB, PW_FETCH_PAGES), 0);
	assert_int_equal(pw_resident(file, 5, 256 * KIB), 1);
	pw_unpin(&fe.fe_fetch);
}

TEST(without_pins_pages_are_lent_unlocked_and_no_memory)
{
	SCOPED_FILE *file = cold_file();
	struct fetch fe;

	leave_no_room_for_pins();
	assert_int_equal(fetch(&fe, file, 0, SIZE, PW_FETCH_MEMORY), -ENOBUFS);
	assert_null(fe.fe_fetch.ft_mem);
	assert_int_equal(budget_taken(), 0);
	assert_int_equal(fetch(&fe, file, 0, SIZE, PW_FETCH_PAGES), 0);
	assert_null(fe.fe_fetch.ft_mem);
	assert_int_equal(pw_resident(file, 0, (size_t)WINDOW), 1);
	pw_unpin(&fe.fe_fetch);
}

/* With one thread the two drops cannot get in each other's way. */
TEST(pages_that_were_fetched_are_dropped, setup_one_thread)
{
	SCOPED_FILE *file = cold_file();
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
}

TEST(residency_is_asked_without_a_read)
{
	SCOPED_FILE *file = cold_file();

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
}
