/*
 * In which order passwords are verified (server/content/tries.c); each test has the name of the
 * rule that it pins.
 */
#include "test.h"

#include "server/content/tries.h"

#define V4(n) (UINT64_C(0xffff) << 32 | (n))
#define V6    UINT64_C(0x20010db800000000)
#define NOW   1000000 /* seconds */

static struct tries tries;

int
setup(void **state)
{
	(void)state;
	memset(&tries, 0, sizeof(tries));
	tries.tr_seed = (struct seed){1, 2};
	return 0;
}

static struct tries_key
key(uint64_t client, uint64_t user)
{
	return (struct tries_key){client, user};
}

static uint64_t
rank(uint64_t client, uint32_t now)
{
	struct tries_key tk = key(client, 0);

	return tries_rank(&tries, &tk, now);
}

static void
try(uint64_t client, unsigned n, uint32_t now)
{
	struct tries_key tk = key(client, 0);

	while (n-- > 0)
		tries_add(&tries, &tk, now);
}

TEST(a_first_try_in_a_minute_goes_before_any_second)
{
	assert_int_equal(rank(V4(1), NOW), 0);
	try(V4(1), 1, NOW);
	try(V4(2), 1000, NOW - TRIES_MINUTE);
	assert_true(rank(V4(2), NOW) < rank(V4(1), NOW));
	assert_true(rank(V4(2), NOW - 1) > rank(V4(1), NOW));
	/* Of first tries that of a client that has tried less goes before. */
	assert_true(rank(V4(3), NOW) < rank(V4(2), NOW));
	assert_true(
	    rank(V4(1), NOW + TRIES_MINUTE) < rank(V4(2), NOW + TRIES_MINUTE));
	/* In the end all is forgotten. */
	assert_int_equal(rank(V4(2), NOW + 20 * TRIES_MINUTE), 0);
}

TEST(a_right_password_is_no_try)
{
	struct tries_key tk = key(V4(1), 1);

	tries_add(&tries, &tk, NOW);
	assert_int_not_equal(rank(V4(1), NOW), 0);
	tries_forgive(&tries, &tk, NOW);
	assert_int_equal(rank(V4(1), NOW), 0);
	tries_forgive(&tries, &tk, NOW);
	assert_int_equal(rank(V4(1), NOW), 0);
}

TEST(prefixes_of_one_network_are_not_many_clients)
{
	for (unsigned i = 0; i < 16; i++) {
		try(V6 + i, 1, NOW);
		try(V6 + 0x10000 + (i << 8), 1, NOW);
		try(V4(0x7f000000 + i), 1, NOW);
	}
	assert_true(rank(V6 + 99, NOW) >> 32 == 4);
	assert_true(rank(V6 + 0x10000 + (99 << 8), NOW) >> 32 == 2);
	assert_int_equal(rank(V6 + 0x20000, NOW), 0);
	/* Clients of an IPv4 network are strangers. */
	assert_int_equal(rank(V4(0x7f000000 + 99), NOW), 0);
}

TEST(a_thousand_guessing_addresses_delay_no_other_client)
{
	unsigned i, first = 0;

	for (i = 0; i < 1000; i++)
		try(V4(i << 8), 50, NOW);
	for (i = 0; i < 1000; i++)
		first += rank(V4(i << 8 | 1), NOW) == 0;
	assert_true(first > 990);
}

TEST(users_that_many_guess_come_later)
{
	static const unsigned steps[] = {0, 6, 7, 62, 63, 510, 511};
	struct tries_key tk;
	unsigned i, n, at = 0;

	for (n = 0; n < 520; n++) {
		tk = key(V4(n), 7);
		if (at < sizeof(steps) / sizeof(steps[0]) && n == steps[at]) {
			assert_int_equal(
			    tries_for_user(&tries, &tk, NOW), at / 2);
			at++;
		}
		tries_add(&tries, &tk, NOW);
	}
	for (i = 8; i < 16; i++) {
		tk = key(V4(1), i);
		assert_int_equal(tries_for_user(&tries, &tk, NOW), 0);
	}
}
