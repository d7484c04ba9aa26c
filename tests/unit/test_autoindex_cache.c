/*
 * Which pages are made and which are given out again (server/content/autoindex_cache.h).
 */
#include "lib_fixture.h"

#include "lib/disk/shares.h"
#include "lib/util/clock.h"
#include "server/content/autoindex_cache.h"
#include "server/worker/worker.h"

#define SECOND UINT64_C(1000000)
#define BIG    3600 /* names; more than half of the largest page */

#define SCOPED_CACHE SCOPED(autoindex_cache_destroy) struct autoindex_cache

static struct autoindex_cache *
new_cache(void)
{
	return autoindex_cache_create(AUTOINDEX_CACHE_ALIVE);
}

static unsigned listed;

static void
count_listed(struct listing *li)
{
	(void)li;
	listed++;
}

/* As it is now, but changed an hour ago. */
static void
want(struct listing *li, const char *path)
{
	struct stat st;

	assert_int_equal(stat(path_in(path), &st), 0);
	*li = (struct listing){.li_done = count_listed};
	li->li_place = (struct place){.pl_root = fx->fx_root,
	    .pl_path = path,
	    .pl_title = "/",
	    .pl_dev = st.st_dev,
	    .pl_ino = st.st_ino,
	    .pl_mtime = st.st_mtim,
	    .pl_ctime = st.st_ctim};
	li->li_place.pl_ctime.tv_sec -= 3600;
}

/* True: it was made for this; false: it was there. */
static bool
is_made(struct autoindex_cache *ls, struct listing *li, uint64_t now_us)
{
	int error = autoindex_cache_get(ls, fx->fx_loop, li, now_us, 0);

	listed = 0;
	settle(fx->fx_loop);
	assert_true(error == 0 || error == -EINPROGRESS);
	assert_int_equal(listed, error == -EINPROGRESS);
	autoindex_cache_unref(&li->li_text);
	return error == -EINPROGRESS;
}

static bool
made(struct autoindex_cache *ls, const char *path, uint64_t now_us)
{
	struct listing li;

	want(&li, path);
	return is_made(ls, &li, now_us);
}

/* The queue takes one job: the others, had they their own, would be refused. */
TEST(requests_for_one_page_share_a_task, setup_narrow)
{
	SCOPED_CACHE *ls = new_cache();
	struct listing li[8], other;
	struct latch la;

	make_file("f", 10);
	assert_int_equal(mkdir(path_in("d"), 0700), 0);
	latch_shut(&la,
	    pool_device(fx->fx_pool, fx->fx_root->rt_dev, POOL_TASKS),
	    fx->fx_loop);
	listed = 0;
	for (size_t i = 0; i < COUNT(li); i++) {
		want(&li[i], ".");
		assert_int_equal(
		    autoindex_cache_get(ls, fx->fx_loop, &li[i], i, 0),
		    -EINPROGRESS);
	}
	want(&other, "d");
	assert_int_equal(
	    autoindex_cache_get(ls, fx->fx_loop, &other, 0, 0), -EAGAIN);
	latch_finish(&la);
	assert_int_equal(listed, COUNT(li));
	for (size_t i = 0; i < COUNT(li); i++) {
		assert_int_equal(li[i].li_error, 0);
		assert_ptr_equal(li[i].li_text, li[0].li_text);
	}
	for (size_t i = 1; i < COUNT(li); i++)
		autoindex_cache_unref(&li[i].li_text);
	assert_non_null(memmem(li[0].li_text->tx_data, li[0].li_text->tx_len,
	    "<a href=\"f\"", 11));
	autoindex_cache_unref(&li[0].li_text);
}

static const struct listing *first_done;

static void
note_first(struct listing *li)
{
	if (first_done == NULL)
		first_done = li;
}

/* The client may not read it, and others must not wait with it. */
TEST(a_page_of_a_client_that_closed_its_side_waits_for_others, setup_one_thread)
{
	static const char *const paths[] = {"closed", "other", "closed"};
	SCOPED_CACHE *ls = new_cache();
	struct listing li[COUNT(paths)];
	struct latch la;

	first_done = NULL;
	assert_int_equal(mkdir(path_in("closed"), 0700), 0);
	assert_int_equal(mkdir(path_in("other"), 0700), 0);
	latch_shut(&la,
	    pool_device(fx->fx_pool, fx->fx_root->rt_dev, POOL_TASKS),
	    fx->fx_loop);
	for (unsigned i = 0; i < COUNT(li); i++) {
		want(&li[i], paths[i]);
		li[i].li_done = note_first;
		assert_int_equal(autoindex_cache_get(ls, fx->fx_loop, &li[i], 0,
				     (i + 1) << SHARES_CONNECTION),
		    -EINPROGRESS);
		if (i == 0)
			autoindex_cache_defer(&li[i]);
	}
	latch_finish(&la);
	assert_ptr_equal(first_done, &li[1]);
	assert_ptr_not_equal(li[2].li_text, li[0].li_text);
	for (unsigned i = 0; i < COUNT(li); i++) {
		assert_int_equal(li[i].li_error, 0);
		autoindex_cache_unref(&li[i].li_text);
	}
}

TEST(a_page_is_used_for_its_lifetime)
{
	SCOPED_CACHE *ls = new_cache();

	assert_true(made(ls, ".", SECOND));
	assert_false(made(ls, ".", SECOND));
	assert_false(made(ls, ".", SECOND + AUTOINDEX_CACHE_AGE_US - 1));
	assert_true(made(ls, ".", SECOND + AUTOINDEX_CACHE_AGE_US));
	assert_false(made(ls, ".", SECOND + 2 * AUTOINDEX_CACHE_AGE_US - 1));
}

/* It may change again, and its times would say nothing. */
TEST(a_page_of_a_changing_directory_is_used_for_a_second)
{
	SCOPED_CACHE *ls = new_cache();
	struct listing li;

	want(&li, ".");
	li.li_place.pl_ctime.tv_sec = time(NULL);
	assert_true(is_made(ls, &li, 0));
	assert_false(is_made(ls, &li, AUTOINDEX_CACHE_NEW_US - 1));
	assert_true(is_made(ls, &li, AUTOINDEX_CACHE_NEW_US));
}

TEST(each_part_of_the_key_selects_another_page)
{
	static char *const names[] = {NULL};
	SCOPED_CACHE *ls = new_cache();
	struct listing li;
	struct place *pl = &li.li_place;

	for (int i = 0; i < 2; i++) {
		want(&li, ".");
		assert_int_equal(is_made(ls, &li, 0), i == 0);
		pl->pl_dotfiles = true;
		assert_int_equal(is_made(ls, &li, 0), i == 0);
		pl->pl_dotnames = names;
		assert_int_equal(is_made(ls, &li, 0), i == 0);
		pl->pl_title = "/other/";
		assert_int_equal(is_made(ls, &li, 0), i == 0);
		pl->pl_view.vw_json = true;
		assert_int_equal(is_made(ls, &li, 0), i == 0);
		pl->pl_view.vw_sort = VIEW_SIZE;
		assert_int_equal(is_made(ls, &li, 0), i == 0);
		pl->pl_view.vw_descending = true;
		assert_int_equal(is_made(ls, &li, 0), i == 0);
		pl->pl_header = "README";
		assert_int_equal(is_made(ls, &li, 0), i == 0);
		pl->pl_mtime.tv_nsec ^= 1;
		assert_int_equal(is_made(ls, &li, 0), i == 0);
		pl->pl_ctime.tv_sec ^= 1;
		assert_int_equal(is_made(ls, &li, 0), i == 0);
	}
}

TEST(an_added_name_needs_a_new_page)
{
	struct timespec times[2] = {{1, 0}, {1, 0}};
	SCOPED_CACHE *ls = new_cache();

	assert_int_equal(utimensat(AT_FDCWD, path_in("."), times, 0), 0);
	assert_true(made(ls, ".", 0));
	assert_false(made(ls, ".", 0));
	make_file("f", 10);
	assert_true(made(ls, ".", 0));
}

/* Between the lookup and the reading something else was put there. */
TEST(the_page_of_a_replaced_directory_is_sent_but_not_cached)
{
	SCOPED_CACHE *ls = new_cache();
	struct listing li;

	want(&li, ".");
	li.li_place.pl_ino++;
	assert_true(is_made(ls, &li, 0));
	assert_int_equal(li.li_error, 0);
	assert_true(is_made(ls, &li, 0));
}

TEST(a_temporary_error_is_not_cached)
{
	SCOPED_CACHE *ls = new_cache();
	struct listing li;

	want(&li, ".");
	li.li_place.pl_path = "none";
	assert_true(is_made(ls, &li, 0));
	assert_int_equal(li.li_error, -ENOENT);
	assert_true(is_made(ls, &li, 0));
}

/* A page may still be sent to somebody. */
TEST(a_page_outlives_its_place_in_memory)
{
	struct autoindex_cache *ls = new_cache();
	struct listing li;

	want(&li, ".");
	assert_int_equal(
	    autoindex_cache_get(ls, fx->fx_loop, &li, 0, 0), -EINPROGRESS);
	settle(fx->fx_loop);
	assert_true(made(ls, ".", AUTOINDEX_CACHE_AGE_US));
	assert_int_equal(li.li_text->tx_refs, 1);
	assert_memory_equal(li.li_text->tx_data, "<!DOCTYPE html>", 15);
	autoindex_cache_unref(&li.li_text);
	assert_null(li.li_text);
	autoindex_cache_destroy(&ls);
	assert_null(ls);
}

static void
make_names(const char *dir, int count)
{
	char first[64], name[64];

	assert_int_equal(mkdir(path_in(dir), 0700), 0);
	snprintf(first, sizeof(first), "%s/0", dir);
	make_empty(first);
	for (int i = 1; i < count; i++) {
		snprintf(name, sizeof(name), "%s/%d", dir, i);
		make_link(first, name);
	}
}

/* The text of one directory under many titles. */
TEST(the_memory_of_pages_is_bounded)
{
	SCOPED_CACHE *ls = new_cache();
	struct listing li;
	char titles[40][16];
	size_t len = 0, kept = 0;
	int i;

	make_names("d", BIG);
	want(&li, "d");
	for (i = 0; i < (int)COUNT(titles); i++) {
		snprintf(titles[i], sizeof(titles[i]), "/%d/", i);
		li.li_place.pl_title = titles[i];
		assert_int_equal(
		    autoindex_cache_get(ls, fx->fx_loop, &li, 0, 0),
		    -EINPROGRESS);
		settle(fx->fx_loop);
		assert_int_equal(li.li_error, 0);
		len = li.li_text->tx_len;
		autoindex_cache_unref(&li.li_text);
		/* What is used stays. */
		li.li_place.pl_title = titles[0];
		assert_false(is_made(ls, &li, 0));
	}
	assert_in_range(len, AUTOINDEX_READ_WHOLE / 2, AUTOINDEX_READ_WHOLE);
	while (i-- > 1) {
		li.li_place.pl_title = titles[i];
		if (autoindex_cache_get(ls, fx->fx_loop, &li, 0, 0) != 0)
			break;
		autoindex_cache_unref(&li.li_text);
		kept++;
	}
	settle(fx->fx_loop);
	autoindex_cache_unref(&li.li_text);
	assert_in_range(
	    kept * len, AUTOINDEX_CACHE_BYTES / 2, AUTOINDEX_CACHE_BYTES - len);
}

/* Few, for much text: each byte of them becomes six. */
static void
make_long_names(const char *dir, int count)
{
	char name[256];

	assert_int_equal(mkdir(path_in(dir), 0700), 0);
	for (int i = 0; i < count; i++) {
		memset(name, 0xff, sizeof(name) - 1);
		name[snprintf(name, sizeof(name), "%s/%03d", dir, i)] =
		    (char)0xff;
		name[sizeof(name) - 1] = '\0';
		make_empty(name);
	}
}

/* Slow readers may have each page that was ever made. */
TEST(the_memory_of_pages_that_are_sent_is_bounded)
{
	SCOPED_CACHE *ls = new_cache();
	static struct text
	    *texts[2 * AUTOINDEX_CACHE_ALIVE / AUTOINDEX_READ_WHOLE + 1];
	struct listing li;
	size_t n, len = 0;
	int round;

	make_long_names("d", 300);
	for (round = 0; round < 2; round++) {
		for (n = 0; n < COUNT(texts); n++) {
			want(&li, "d");
			li.li_place.pl_ctime.tv_nsec = (long)n + 1000 * round;
			assert_int_equal(
			    autoindex_cache_get(ls, fx->fx_loop, &li, 0, 0),
			    -EINPROGRESS);
			settle(fx->fx_loop);
			texts[n] = li.li_text;
			if (li.li_error != 0)
				break;
			len = li.li_text->tx_len;
		}
		assert_int_equal(li.li_error, -E2BIG);
		assert_in_range(n, AUTOINDEX_CACHE_ALIVE / 2 / len,
		    AUTOINDEX_CACHE_ALIVE / len);
		while (n-- > 0)
			autoindex_cache_unref(&texts[n]);
	}
}

/* That a directory is too large is known for a while, as a page would be. */
TEST(a_directory_that_is_too_large_is_not_read_each_time)
{
	SCOPED_CACHE *ls = new_cache();
	struct listing li;

	make_names("d", 2 * BIG);
	want(&li, "d");
	assert_true(is_made(ls, &li, 0));
	assert_int_equal(li.li_error, -E2BIG);
	li.li_error = 0;
	assert_false(is_made(ls, &li, 0));
	assert_int_equal(li.li_error, -E2BIG);
}

/* So is that its disk is too slow, from when that was found out. */
TEST(a_disk_that_is_too_slow_is_remembered)
{
	SCOPED_CACHE *ls = new_cache();
	uint64_t asked = clock_now() - AUTOINDEX_CACHE_AGE_US;
	struct listing li;

	make_names("d", 2);
	want(&li, "d");
	li.li_place.pl_patience_us = 1;
	assert_true(is_made(ls, &li, asked));
	assert_int_equal(li.li_error, -E2BIG);
	li.li_error = 0;
	assert_false(is_made(ls, &li, asked + AUTOINDEX_CACHE_AGE_US));
	assert_int_equal(li.li_error, -E2BIG);
}
