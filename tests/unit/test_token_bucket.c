/*
 * So many units a second (server/util/token_bucket.h).
 */
#include "test.h"

#include <pthread.h>

#include "server/util/token_bucket.h"

#define SECOND UINT64_C(1000000000)
#define NOW    (1000 * SECOND)

TEST(a_full_bucket_gives_its_depth_at_once)
{
	const struct token_rate tr = {100, 50};
	struct token_bucket tb = {0};

	assert_true(token_is_full(&tb, NOW));
	assert_true(token_take(&tb, &tr, 30, NOW) <= NOW);
	assert_true(token_take(&tb, &tr, 20, NOW) <= NOW);
	assert_false(token_is_full(&tb, NOW));
	/* The next ten are earned in a tenth of a second. */
	assert_int_equal(token_take(&tb, &tr, 10, NOW), NOW + SECOND / 10);
	assert_int_equal(token_take(&tb, &tr, 10, NOW), NOW + SECOND / 5);
}

TEST(a_bucket_fills_to_its_depth)
{
	const struct token_rate tr = {100, 50};
	struct token_bucket tb = {0};

	token_take(&tb, &tr, 50, NOW);
	assert_false(token_is_full(&tb, NOW + SECOND / 2 - 1));
	assert_true(token_is_full(&tb, NOW + SECOND / 2));
	assert_int_equal(token_take(&tb, &tr, 60, NOW + 100 * SECOND),
	    NOW + 100 * SECOND + SECOND / 10);
}

TEST(returned_tokens_can_be_taken_again)
{
	const struct token_rate tr = {100, 50};
	struct token_bucket tb = {0};

	token_take(&tb, &tr, 50, NOW);
	token_take(&tb, &tr, 1000, NOW);
	token_give(&tb, &tr, 1000);
	assert_int_equal(token_take(&tb, &tr, 10, NOW), NOW + SECOND / 10);
	/* Never more than all. */
	token_give(&tb, &tr, UINT64_C(1) << 40);
	assert_int_equal(
	    token_take(&tb, &tr, 60, NOW + SECOND), NOW + SECOND + SECOND / 10);
}

TEST(try_takes_all_tokens_or_none)
{
	const struct token_rate tr = {10, 3};
	struct token_bucket tb = {0};
	uint64_t wait = 0;

	for (int i = 0; i < 3; i++)
		assert_true(token_try(&tb, &tr, 1, NOW, &wait));
	for (int i = 0; i < 3; i++) {
		assert_false(token_try(&tb, &tr, 1, NOW, &wait));
		assert_int_equal(wait, SECOND / 10);
	}
	assert_false(token_try(&tb, &tr, 1, NOW + SECOND / 10 - 1, &wait));
	assert_int_equal(wait, 1);
	assert_true(token_try(&tb, &tr, 1, NOW + SECOND / 10, &wait));
}

TEST(the_largest_fit)
{
	const struct token_rate fast = {
	    TOKEN_RATE_MOST, TOKEN_BURST_MOST + TOKEN_RATE_MOST / 8};
	const struct token_rate slow = {1, TOKEN_RATE_MOST};
	struct token_bucket tb = {0};

	assert_true(token_take(&tb, &fast, TOKEN_BURST_MOST, NOW) <= NOW);
	assert_int_equal(token_take(&tb, &fast, TOKEN_RATE_MOST, NOW),
	    NOW + SECOND - SECOND / 8);
	tb = (struct token_bucket){0};
	assert_true(token_take(&tb, &slow, 1000000, NOW) <= NOW);
}

TEST(a_very_slow_rate_overflows_no_counter)
{
	const struct token_rate tr = {1, TOKEN_BURST_MOST};
	struct token_bucket tb = {0};

	assert_true(token_take(&tb, &tr, TOKEN_BURST_MOST, NOW) <= NOW);
	assert_true(token_take(&tb, &tr, TOKEN_BURST_MOST, NOW) > NOW);
}

TEST(shares_are_worth_a_wakeup)
{
	assert_int_equal(token_share(1024), 2048);
	assert_int_equal(token_share(65536), 131072);
	assert_int_equal(token_share(1000000), 262144);
	assert_int_equal(token_share(8 << 20), 1 << 20);
}

struct taker {
	struct token_bucket *tk_bucket;
	uint64_t tk_last;
};

#define TAKES 20000

static void *
take_many(void *arg)
{
	const struct token_rate tr = {1000, 1};
	struct taker *tk = arg;

	for (int i = 0; i < TAKES; i++) {
		tk->tk_last = token_take(tk->tk_bucket, &tr, 2, NOW);
		token_give(tk->tk_bucket, &tr, 1);
	}
	return NULL;
}

TEST(threads_lose_nothing)
{
	struct token_bucket tb = {0};
	struct taker tks[4];
	pthread_t threads[4];

	for (int i = 0; i < 4; i++) {
		tks[i] = (struct taker){&tb, 0};
		assert_int_equal(
		    pthread_create(&threads[i], NULL, take_many, &tks[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_false(token_is_full(&tb, NOW + 4 * TAKES * SECOND / 1000 - 1));
	assert_true(token_is_full(&tb, NOW + 4 * TAKES * SECOND / 1000));
}
