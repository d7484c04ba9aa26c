/*
 * What is remembered of paths that lead nowhere (lib/file/negative_cache.h), and that the pool is
 * not asked for them again (lib/file/open_cache.c).
 */
#include "lib_fixture.h"

#include "lib/file/negative_cache.h"
#include "lib/util/clock.h"

#define SECOND UINT64_C(1000000)
#define CACHE  4
#define MANY   20000

static struct pw_root one = {.rt_dev = 1, .rt_ino = 2};

static int
create(void **state)
{
	*state = negative_create();
	return *state == NULL;
}

static int
destroy(void **state)
{
	struct negative_cache *ms = *state;

	negative_destroy(&ms);
	return ms != NULL;
}

TEST(an_error_is_remembered_for_a_second, create, destroy)
{
	struct negative_cache *ms = *state;

	assert_int_equal(negative_find(ms, &one, "a", 7), 0);
	negative_add(ms, &one, "a", -ENOENT, 7);
	assert_int_equal(negative_find(ms, &one, "a", 7), -ENOENT);
	assert_int_equal(negative_find(ms, &one, "a", 6 + SECOND), -ENOENT);
	assert_int_equal(negative_find(ms, &one, "a", 7 + SECOND), 0);
}

TEST(the_last_stored_result_counts, create, destroy)
{
	struct negative_cache *ms = *state;

	negative_add(ms, &one, "a", -ENOENT, 0);
	negative_add(ms, &one, "a", -EACCES, SECOND / 2);
	assert_int_equal(negative_find(ms, &one, "a", SECOND), -EACCES);
	negative_add(ms, &one, "a", -EIO, SECOND);
	assert_int_equal(negative_find(ms, &one, "a", SECOND), 0);
}

static const struct {
	int error;
	bool lasts;
} errors[] = {{-ENOENT, true}, {-ENOTDIR, true}, {-EACCES, true},
    {-EPERM, true}, {-ELOOP, true}, {-EXDEV, true}, {-ENAMETOOLONG, true},
    {-EIO, false}, {-ENOMEM, false}, {-EMFILE, false}, {-ENFILE, false},
    {-EAGAIN, false}, {-ETIMEDOUT, false}, {-ESTALE, false}, {0, false}};

TEST(temporary_errors_are_not_remembered, create, destroy)
{
	for (size_t i = 0; i < COUNT(errors); i++) {
		negative_add(*state, &one, "a", errors[i].error, 0);
		assert_int_equal(negative_find(*state, &one, "a", 1),
		    errors[i].lasts ? errors[i].error : 0);
	}
}

TEST(only_the_same_path_and_root_is_missing, create, destroy)
{
	struct pw_root same = one, other = {.rt_dev = 1, .rt_ino = 3},
		       disk = {.rt_dev = 2, .rt_ino = 2};

	negative_add(*state, &one, "a", -ENOENT, 0);
	assert_int_equal(negative_find(*state, &one, "b", 1), 0);
	assert_int_equal(negative_find(*state, &one, "", 1), 0);
	assert_int_equal(negative_find(*state, &one, "aa", 1), 0);
	assert_int_equal(negative_find(*state, &other, "a", 1), 0);
	assert_int_equal(negative_find(*state, &disk, "a", 1), 0);
	assert_int_equal(negative_find(*state, &same, "a", 1), -ENOENT);
}

/* What is known is what was added last, as much as there is room for. */
TEST(a_scan_is_bounded_in_memory, create, destroy)
{
	size_t known = 0, len = 100;
	char path[128];
	int i;

	for (i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "%0*d", (int)len, i);
		negative_add(*state, &one, path, -ENOENT, 0);
	}
	for (i = MANY - 1; i >= 0; i--) {
		snprintf(path, sizeof(path), "%0*d", (int)len, i);
		if (negative_find(*state, &one, path, 1) == 0)
			break;
		known++;
	}
	assert_in_range(known, 100, NEGATIVE_BYTES / len);
	for (; i >= 0; i--) {
		snprintf(path, sizeof(path), "%0*d", (int)len, i);
		assert_int_equal(negative_find(*state, &one, path, 1), 0);
	}
}

TEST(a_path_without_room_for_it_is_not_remembered, create, destroy)
{
	SCOPED(free_at) char *path = calloc(1, NEGATIVE_BYTES + 1);

	assert_non_null(path);
	memset(path, 'a', NEGATIVE_BYTES);
	negative_add(*state, &one, path, -ENAMETOOLONG, 0);
	assert_int_equal(negative_find(*state, &one, path, 1), 0);
}

/* ------------------------------------------------- through the cache of files */

/* By the pool: true; at once: false. */
static bool
asks_pool(const char *path, uint64_t now_us, int *error)
{
	struct pw_open op = {.op_waiter.wt_done = nothing_done};
	bool pool;

	*error = pw_file_open(fx->fx_loop, fx->fx_root, path, now_us, &op);
	pool = *error == -EINPROGRESS;
	if (pool) {
		settle(fx->fx_loop);
		*error = op.op_waiter.wt_error;
	}
	pw_file_unref(&op.op_file);
	return pool;
}

/* As of a network file system: nothing is asked on the loop. */
static int
setup_remote(void **state)
{
	int error = setup_with(state, 0, 0, CACHE);

	if (error == 0)
		fx->fx_root->rt_cached = false;
	return error;
}

TEST(the_disk_pool_looks_up_once_a_second, setup_remote)
{
	static const char *const paths[] = {
	    "none", "none/x", "f/x", "..", "self"};
	static const int expected[] = {
	    -ENOENT, -ENOENT, -ENOTDIR, -EXDEV, -ELOOP};
	uint64_t before;
	int error;

	make_file("f", 10);
	assert_int_equal(symlink("self", path_in("self")), 0);
	for (size_t i = 0; i < COUNT(paths); i++) {
		before = clock_now();
		assert_true(asks_pool(paths[i], before, &error));
		assert_int_equal(error, expected[i]);
		assert_false(asks_pool(paths[i], before + SECOND - 1, &error));
		assert_int_equal(error, expected[i]);
		assert_true(asks_pool(paths[i], clock_now() + SECOND, &error));
		assert_int_equal(error, expected[i]);
	}
}

TEST(a_created_file_is_found_within_a_second, setup_remote)
{
	int error;

	assert_true(asks_pool("f", clock_now(), &error));
	assert_int_equal(error, -ENOENT);
	make_file("f", 10);
	assert_true(asks_pool("f", clock_now() + SECOND, &error));
	assert_int_equal(error, 0);
}

TEST(a_removed_file_is_missing, setup_remote)
{
	uint64_t now = clock_now();
	int error;

	make_file("f", 10);
	assert_true(asks_pool("f", now, &error));
	assert_int_equal(error, 0);
	assert_int_equal(unlink(path_in("f")), 0);
	assert_true(asks_pool("f", clock_now() + SECOND, &error));
	assert_int_equal(error, -ENOENT);
	assert_false(asks_pool("f", now, &error));
	assert_int_equal(error, -ENOENT);
}

/* With room for four files, and nobody using them. */
TEST(a_scan_evicts_no_open_file, setup_remote)
{
	static const char *const names[] = {"a", "b", "c"};
	uint64_t now = clock_now();
	char path[16];
	int error, fds;

	for (size_t i = 0; i < COUNT(names); i++) {
		make_file(names[i], 10);
		assert_true(asks_pool(names[i], now, &error));
	}
	fds = count_fds();
	for (size_t i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "none-%zu", i);
		assert_true(asks_pool(path, now, &error));
		assert_int_equal(error, -ENOENT);
	}
	assert_int_equal(count_fds(), fds);
	for (size_t i = 0; i < COUNT(names); i++)
		assert_false(asks_pool(names[i], now, &error));
}
