/*
 * Buckets of clients (server/content/client_rates.h): whose limit is whose when the table is full.
 */
#include "test.h"

#include <sys/socket.h>

#include <netinet/in.h>
#include <time.h>

#include "server/content/client_rates.h"

#define LATER  512 /* clients that come when the table is full */
#define ROUNDS 5
#define IN_USE          \
	(CLIENT_RATES + \
	    CLIENT_RATES / 8) /* more than every part of the table holds */
#define SCOPED_RATES SCOPED(client_rates_destroy) struct client_rates

static const char rule[1];

/* Takes the buckets of the nth client. */
static struct client_buckets
take(struct client_rates *cs, uint32_t n)
{
	struct sockaddr_in sin = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000000U + n)};
	struct client_buckets cb;

	client_rates_take(cs, (struct sockaddr *)&sin, rule, 0, &cb);
	assert_non_null(cb.cb_levels[0]);
	return cb;
}

static int
order(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return x < y ? -1 : x > y;
}

/* Returns how many different buckets LATER clients have at once, from the nth on. */
static unsigned
buckets_of_later(struct client_rates *cs, uint32_t n)
{
	static struct client_buckets cb[LATER];
	static uintptr_t seen[LATER];
	unsigned different = 1;

	for (uint32_t i = 0; i < LATER; i++) {
		cb[i] = take(cs, n + i);
		seen[i] = (uintptr_t)cb[i].cb_levels[0];
	}
	qsort(seen, LATER, sizeof(seen[0]), order);
	for (unsigned i = 1; i < LATER; i++)
		different += seen[i] != seen[i - 1];
	for (unsigned i = 0; i < LATER; i++)
		client_rates_give(cs, &cb[i]);
	return different;
}

TEST(clients_that_have_gone_leave_room_for_others)
{
	SCOPED_RATES *cs = client_rates_create();
	struct client_buckets cb;
	uint32_t i;

	for (i = 0; i < 2 * CLIENT_RATES; i++) {
		cb = take(cs, i);
		client_rates_give(cs, &cb);
	}
	assert_int_equal(buckets_of_later(cs, i), LATER);
}

TEST(clients_beyond_a_table_in_use_share_few_buckets)
{
	SCOPED_RATES *cs = client_rates_create();
	SCOPED(free_at) struct client_buckets *cb = calloc(IN_USE, sizeof(*cb));
	uint32_t i;

	assert_non_null(cb);
	for (i = 0; i < IN_USE; i++)
		cb[i] = take(cs, i);
	assert_true(buckets_of_later(cs, i) <= 64);
	while (i-- > 0)
		client_rates_give(cs, &cb[i]);
	assert_int_equal(buckets_of_later(cs, IN_USE), LATER);
}

TEST(a_bucket_in_use_stays_while_others_come_and_go)
{
	struct client_rates *cs = client_rates_create();
	struct client_buckets used = take(cs, 0), cb;

	for (uint32_t i = 1; i < 2 * CLIENT_RATES; i++) {
		cb = take(cs, i);
		client_rates_give(cs, &cb);
	}
	cb = take(cs, 0);
	assert_ptr_equal(cb.cb_levels[0], used.cb_levels[0]);
	client_rates_give(cs, &cb);
	client_rates_give(cs, &used);
	client_rates_destroy(&cs);
}

static uint64_t
computed_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Returns the processor time that LATER clients need, one after the other, from the nth on. */
static uint64_t
time_of_later(struct client_rates *cs, uint32_t n)
{
	uint64_t begin, least = UINT64_MAX;
	struct client_buckets cb;

	for (int round = 0; round < ROUNDS; round++) {
		begin = computed_ns();
		for (uint32_t i = 0; i < LATER; i++) {
			cb = take(cs, n + i);
			client_rates_give(cs, &cb);
		}
		if (computed_ns() - begin < least)
			least = computed_ns() - begin;
	}
	return least;
}

TEST(a_new_client_does_not_wait_for_a_walk_over_a_table_in_use)
{
	SCOPED_RATES *cs = client_rates_create();
	SCOPED(free_at) struct client_buckets *cb = calloc(IN_USE, sizeof(*cb));
	uint32_t i;

	assert_non_null(cb);
	for (i = 0; i < IN_USE; i++)
		cb[i] = take(cs, i);
	assert_true(time_of_later(cs, IN_USE) < 8 * time_of_later(cs, 0));
	while (i-- > 0)
		client_rates_give(cs, &cb[i]);
}
