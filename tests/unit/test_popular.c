/*
 * The paths that are asked for most (server/content/popular.c); each test has the name of the rule
 * that it pins.
 */

#include "test.h"

#include "server/content/popular.h"

static const struct seed seed = {1, 2};
static const struct site *const one = (const void *)"1", *const other =
							     (const void *)"2";

static void
ask(struct popular *po, const struct site *site, const char *path,
    unsigned times, uint64_t now)
{
	struct str s = {path, strlen(path)};

	while (times-- > 0)
		popular_asked(po, site, s, popular_hash(po, s), now);
}

static size_t
list(struct popular *po, uint64_t now, struct popular_path **out)
{
	size_t n;

	*out = calloc(popular_size(po), sizeof(**out));
	assert_non_null(*out);
	n = popular_copy(po, now, *out);
	return popular_merge(*out, n);
}

static void
expect(const struct popular_path *pp, const struct site *site, const char *path,
    uint64_t count, uint64_t error)
{
	assert_ptr_equal(pp->pp_site, site);
	assert_int_equal(pp->pp_len, strlen(path));
	assert_memory_equal(pp->pp_path, path, pp->pp_len);
	assert_int_equal(pp->pp_count, count);
	assert_int_equal(pp->pp_error, error);
}

/* A request that waited for its disk is counted when that has answered. */
TEST(an_earlier_clock_loses_no_counts)
{
	SCOPED(popular_destroy)
	struct popular *po = popular_create(1, &seed, 0);
	SCOPED(free_at) struct popular_path *pp;

	ask(po, one, "/a", 4, POPULAR_WINDOW_US + 1);
	ask(po, one, "/a", 1, POPULAR_WINDOW_US - 1);
	ask(po, one, "/a", 1, POPULAR_WINDOW_US + 2);
	assert_int_equal(list(po, POPULAR_WINDOW_US - 2, &pp), 1);
	expect(pp, one, "/a", 6, 0);
}

TEST(counts_are_exact_while_there_are_counters)
{
	struct popular *po = popular_create(1, &seed, 0);
	SCOPED(free_at) struct popular_path *pp;

	ask(po, one, "/b", 3, 1);
	ask(po, one, "/a", 5, 1);
	ask(po, other, "/a", 4, 1);
	assert_int_equal(list(po, 1, &pp), 3);
	expect(&pp[0], one, "/a", 5, 0);
	expect(&pp[1], other, "/a", 4, 0);
	expect(&pp[2], one, "/b", 3, 0);
	assert_int_equal(popular_counted(po), 12);
	popular_destroy(&po);
	assert_null(po);
}

/* Each request for a popular one stands among 20 for names that come once. */
TEST(popular_ones_are_found_among_names_that_come_once)
{
	SCOPED(popular_destroy)
	struct popular *po = popular_create(10, &seed, 0);
	SCOPED(free_at) struct popular_path *pp;
	char path[64];

	assert_int_equal(popular_size(po), POPULAR_LEAST);
	for (unsigned i = 0; i < 20000; i++) {
		if (i % 20 == 0) {
			snprintf(
			    path, sizeof(path), "/popular/%u", i / 20 % 10);
			ask(po, one, path, 1, 1);
		}
		snprintf(path, sizeof(path), "/once/%u", i);
		ask(po, one, path, 1, 1);
	}
	assert_int_equal(list(po, 1, &pp), POPULAR_LEAST);
	for (unsigned i = 0; i < 10; i++) {
		assert_memory_equal(pp[i].pp_path, "/popular/", 9);
		assert_true(pp[i].pp_count >= 100);
		assert_true(pp[i].pp_count - pp[i].pp_error <= 100);
		assert_true(pp[i].pp_error <= 21000 / POPULAR_LEAST);
	}
}

TEST(counts_are_halved_as_time_goes_by)
{
	SCOPED(popular_destroy)
	struct popular *po = popular_create(1, &seed, 0);
	struct popular_path *pp;

	ask(po, one, "/a", 9, 0);
	ask(po, one, "/b", 1, 0);
	assert_int_equal(list(po, POPULAR_WINDOW_US, &pp), 1);
	expect(&pp[0], one, "/a", 4, 0);
	free(pp);
	ask(po, one, "/b", 3, POPULAR_WINDOW_US);
	assert_int_equal(list(po, 2 * POPULAR_WINDOW_US, &pp), 2);
	expect(&pp[0], one, "/a", 2, 0);
	expect(&pp[1], one, "/b", 1, 0);
	free(pp);
	assert_int_equal(list(po, 1000 * POPULAR_WINDOW_US, &pp), 0);
	free(pp);
}

TEST(long_paths_are_not_counted)
{
	SCOPED(popular_destroy)
	struct popular *po = popular_create(1, &seed, 0);
	SCOPED(free_at) struct popular_path *pp;
	char path[POPULAR_PATH + 2];

	memset(path, 'x', sizeof(path));
	path[POPULAR_PATH + 1] = '\0';
	ask(po, one, path, 1, 1);
	assert_int_equal(popular_counted(po), 0);
	path[POPULAR_PATH] = '\0';
	ask(po, one, path, 1, 1);
	assert_int_equal(list(po, 1, &pp), 1);
	assert_int_equal(pp[0].pp_len, POPULAR_PATH);
}

TEST(lists_of_several_workers_become_one)
{
	struct popular_path pp[4] = {
	    {.pp_site = one,
		.pp_count = 3,
		.pp_error = 1,
		.pp_len = 2,
		.pp_path = "/a"},
	    {.pp_site = one, .pp_count = 4, .pp_len = 2, .pp_path = "/b"},
	    {.pp_site = one, .pp_count = 5, .pp_len = 2, .pp_path = "/a"},
	    {.pp_site = one,
		.pp_count = 9,
		.pp_error = 8,
		.pp_len = 3,
		.pp_path = "/aa"},
	};

	assert_int_equal(popular_merge(pp, 4), 3);
	expect(&pp[0], one, "/a", 8, 1);
	expect(&pp[1], one, "/b", 4, 0);
	expect(&pp[2], one, "/aa", 9, 8);
	assert_int_equal(popular_merge(pp, 0), 0);
	assert_int_equal(popular_merge(pp, 1), 1);
}
