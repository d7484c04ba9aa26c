/*
 * token_bucket: see token_bucket.h.
 */
#include <stdatomic.h>

#include "server/util/token_bucket.h"

#define SECOND	UINT64_C(1000000000)
#define SHARES	((uint64_t)8)	      /* divisor of the rate in token_share */
#define LEAST	((uint64_t)256 << 10) /* minimum of token_share, bytes */
/* time whose bytes limit LEAST at low rates, seconds */
#define LONGEST ((uint64_t)2)
/* longest time, seconds; below 2^61 nanoseconds */
#define FOREVER ((uint64_t)1 << 31)

/* Returns the nanoseconds in which n units are earned, at most FOREVER. */
static uint64_t
token_bucket_cost(const struct token_rate *tr, uint64_t n)
{
	uint64_t seconds = n / tr->tr_rate;

	if (seconds >= FOREVER)
		return FOREVER * SECOND;
	return seconds * SECOND + n % tr->tr_rate * SECOND / tr->tr_rate;
}

static uint64_t
token_bucket_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

uint64_t
token_take(struct token_bucket *tb, const struct token_rate *tr, uint64_t n,
    uint64_t now)
{
	uint64_t old = atomic_load(&tb->tb_earned), new;
	uint64_t depth = token_bucket_cost(tr, tr->tr_depth),
		 price = token_bucket_cost(tr, n);

	do
		new = token_bucket_later(old, now) + price;
	while (!atomic_compare_exchange_weak(&tb->tb_earned, &old, new));
	return new > depth ? new - depth : 0;
}

void
token_give(struct token_bucket *tb, const struct token_rate *tr, uint64_t n)
{
	uint64_t old = atomic_load(&tb->tb_earned),
		 price = token_bucket_cost(tr, n);

	while (!atomic_compare_exchange_weak(
	    &tb->tb_earned, &old, old > price ? old - price : 0))
		continue;
}

bool
token_try(struct token_bucket *tb, const struct token_rate *tr, uint64_t n,
    uint64_t now, uint64_t *wait)
{
	uint64_t old = atomic_load(&tb->tb_earned), new;
	uint64_t depth = token_bucket_cost(tr, tr->tr_depth),
		 price = token_bucket_cost(tr, n);

	do {
		new = token_bucket_later(old, now) + price;
		if (new > now + depth) {
			*wait = new - now - depth;
			return false;
		}
	} while (!atomic_compare_exchange_weak(&tb->tb_earned, &old, new));
	return true;
}

uint64_t
token_share(uint64_t rate)
{
	uint64_t most = LONGEST * rate, least = most < LEAST ? most : LEAST;

	return rate / SHARES > least ? rate / SHARES : least;
}

bool
token_is_full(const struct token_bucket *tb, uint64_t now)
{
	return atomic_load(&tb->tb_earned) <= now;
}
