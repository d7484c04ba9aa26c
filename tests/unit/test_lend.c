/*
 * pw_fetch, pw_unpin and pw_resident (lib/send/lend.c): what is lent, who shares it, and what is refused.
 */
#include "lend_fixture.h"
#include "xfer_fixture.h"

TEST(memory_is_lent_by_windows)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	struct fetch a, b;

	assert_int_equal(fetch(&a, file, 100, SIZE - 100, PW_FETCH_MEMORY), 0);
	assert_int_equal(budget_taken(), WINDOW - 100);
	assert_lends(&a, (size_t)WINDOW - 100);
	assert_int_equal(fetch(&b, file, WINDOW, REST, PW_FETCH_MEMORY), 0);
	assert_lends(&b, REST);
	assert_in_range(pw_pool_pinned(fx->fx_pool), PW_FETCH_WINDOW + REST,
	    PW_FETCH_WINDOW + 2 * REST);
	pw_unpin(&b.fe_fetch);
	assert_null(b.fe_fetch.ft_mem);
	assert_lends(&a, (size_t)WINDOW - 100);
	pw_unpin(&a.fe_fetch);
	pw_unpin(&a.fe_fetch);
	assert_int_equal(budget_taken(), 0);
	assert_int_equal(file_priv(file)->fp_refs, 2);
}

TEST(all_that_need_a_window_share_one_copy, setup_one_thread)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	struct pw_device *dv = file_priv(file)->fp_device;
	struct fetch fe[4];
	struct latch la;
	unsigned long ended;

	latch_shut(&la, dv, fx->fx_loop);
	ended = device_ended(dv);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(start(&fe[i], file, 0, REST, PW_FETCH_MEMORY),
		    -EINPROGRESS);
	latch_finish(&la);
	assert_int_equal(device_ended(dv) - ended, 2); /* with the latch */
	assert_int_equal(start(&fe[3], file, 5, 7, PW_FETCH_MEMORY), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(fe[i].fe_times, 1);
		assert_lends(&fe[i], REST);
		assert_ptr_equal(fe[i].fe_fetch.ft_mem, fe[0].fe_fetch.ft_mem);
	}
	assert_ptr_equal(fe[3].fe_fetch.ft_mem, fe[0].fe_fetch.ft_mem + 5);
	for (size_t i = 0; i < 4; i++)
		pw_unpin(&fe[i].fe_fetch);
	assert_int_equal(budget_taken(), 0);
}

/* A mapping of the same bytes is no copy, and must not keep one from being made. */
TEST(a_copy_is_made_beside_a_mapping)
{
	SCOPED_FILE *file = new_file("f", SIZE);
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
	    fetch(&fe, file, 0, (size_t)WINDOW, PW_FETCH_MEMORY), 0);
	assert_lends(&fe, (size_t)WINDOW);
	assert_ptr_not_equal(fe.fe_fetch.ft_mem, map);
	pw_unpin(&fe.fe_fetch);
	assert_int_equal(
	    fetch(&fe, file, 0, (size_t)WINDOW, PW_FETCH_MEMORY), 0);
	assert_int_equal(fe.fe_times, 0);
	pw_unpin(&fe.fe_fetch);
	pins_release(ps, &pn);
}

/* A direct fetch of a file that was just written falls back to the page cache. */
TEST(a_fetch_that_makes_no_copy_is_repeated, setup_one_thread)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	struct pw_waiter w = {.wt_done = nothing_done};
	struct fetch fe;
	struct latch la;

	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	assert_int_equal(
	    pool_fetch(file, 0, (size_t)WINDOW, FETCH_DIRECT, ADMIT_NEW, &w),
	    0);
	assert_int_equal(
	    start(&fe, file, 0, (size_t)WINDOW, PW_FETCH_MEMORY), -EINPROGRESS);
	latch_finish(&la);
	assert_int_equal(w.wt_error, 0);
	assert_int_equal(fe.fe_times, 1);
	assert_int_equal(fe.fe_fetch.ft_waiter.wt_error, 0);
	assert_lends(&fe, (size_t)WINDOW);
	pw_unpin(&fe.fe_fetch);
}

TEST(a_copy_never_changes_and_is_of_one_version, setup_one_thread)
{
	struct pw_file *file = new_file("f", SIZE);
	struct fetch a, b;
	struct latch la;

	assert_int_equal(fetch(&a, file, 0, REST, PW_FETCH_MEMORY), 0);
	overwrite();
	assert_lends(&a, REST);
	assert_int_equal(fetch(&b, file, 0, REST, PW_FETCH_MEMORY), -ESTALE);
	assert_int_equal(fetch(&b, file, WINDOW, 1, PW_FETCH_MEMORY), -ESTALE);
	assert_int_equal(fetch(&b, file, WINDOW, 1, PW_FETCH_PAGES), -ESTALE);
	pw_unpin(&a.fe_fetch);
	pw_file_unref(&file);
	file = new_file("f", SIZE);
	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	assert_int_equal(
	    start(&a, file, 0, REST, PW_FETCH_MEMORY), -EINPROGRESS);
	overwrite();
	latch_finish(&la);
	assert_int_equal(a.fe_fetch.ft_waiter.wt_error, -ESTALE);
	assert_null(a.fe_fetch.ft_mem);
	assert_int_equal(budget_taken(), 0);
	pw_file_unref(&file);
}

TEST(a_transmission_uses_the_copy)
{
	SCOPED_FILE *file = cold_file();
	struct fetch fe;
	struct wire wr;
	struct xfer xf;

	assert_int_equal(
	    fetch(&fe, file, 0, (size_t)WINDOW, PW_FETCH_MEMORY), 0);
	evict(file->fil_fd, SIZE);
	wire_wide(&wr);
	xfer_init(&xf, "nodiskio", &wr, file);
	xf.xf_send.snd_len = 64 * KIB;
	assert_int_equal(pw_send_start(&xf.xf_send), 0);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	assert_int_equal(xf.xf_pending, 0);
	wire_has_file(&wr, 0, 64 * KIB);
	pw_send_finish(&xf.xf_send);
	wire_close(&wr);
	pw_unpin(&fe.fe_fetch);
}

TEST(a_fetch_waits_for_the_budget)
{
	SCOPED_FILE *file = new_file("f", SIZE);
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
	assert_int_equal(budget_taken(), 0);
}

TEST(a_full_queue_refuses_what_has_not_begun, setup_narrow)
{
	SCOPED_FILE *file = new_file("f", SIZE);
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
	latch_finish(&la);
	assert_lends(&first, 10);
	assert_lends(&begun, 10);
	pw_unpin(&first.fe_fetch);
	pw_unpin(&begun.fe_fetch);
	assert_int_equal(budget_taken(), 0);
}

TEST(a_fetch_that_cannot_be_is_refused)
{
	SCOPED_FILE *file = new_file("f", SIZE), *dir = open_file(".");
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
	assert_int_equal(fetch(&fe, file, 0, 1, PW_FETCH_MEMORY), 0);
	assert_int_equal(pw_fetch(&fe.fe_fetch), -EINVAL);
	assert_lends(&fe, 1);
	pw_unpin(&fe.fe_fetch);
	assert_int_equal(file_priv(file)->fp_refs, 2);
}

/* The residency of a file of a network file system is unknown; a copy can be had. */
TEST(a_file_that_cannot_be_checked_is_copied)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	struct fetch fe;

	file_priv(file)->fp_ask = OS_ASK_FETCH;
	file_priv(file)->fp_remote = true;
	assert_int_equal(pw_resident(file, 0, 1), -EOPNOTSUPP);
	assert_int_equal(fetch(&fe, file, 7, 100, PW_FETCH_MEMORY), 0);
	assert_lends(&fe, 100);
	pw_unpin(&fe.fe_fetch);
	overwrite();
	assert_int_equal(
	    fetch(&fe, file, WINDOW, 10, PW_FETCH_MEMORY), -ESTALE);
}
