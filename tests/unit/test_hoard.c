/*
 * Who is closed of those that have sent no complete request (server/worker/hoard.c); each test has
 * the name of the rule that it pins.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/worker/hoard.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct seed seed = {1, 2};

/*
 * A connection is a letter, its address: a small one has sent nothing, a capital something;
 * '!' behind it: it is spared; '|': those behind it are too young.
 */
static size_t
parse(const char *text, struct hoarded list[HOARD_MAX], size_t *ripe)
{
	size_t n = 0;

	*ripe = SIZE_MAX;
	for (; *text != '\0'; text++)
		if (*text == '|')
			*ripe = n;
		else if (*text == '!')
			list[n - 1].ho_spared = true;
		else
			list[n++] =
			    (struct hoarded){.ho_key = (uint64_t)*text | 0x20,
				.ho_begun = (*text & 0x20) == 0};
	if (*ripe == SIZE_MAX)
		*ripe = n;
	return n;
}

enum { NONE = -1 };

static void
who_goes(void **state)
{
	static const struct {
		const char *list;
		int pick;
		unsigned most;
	} table[] = {
	    {"", NONE, 0},
	    {"a", 0, 1},
	    {"A", 0, 1},
	    /* of the address that has most */
	    {"abb", 1, 2},
	    {"aBB", 1, 2},
	    {"bab", 0, 2},
	    {"abbccc", 3, 3},
	    /* of several such addresses, of any */
	    {"aabb", 0, 2},
	    {"AABb", 3, 2},
	    {"abc", 0, 1},
	    /* first what has sent nothing, then the oldest */
	    {"AAaa", 2, 4},
	    {"ABc", 2, 1},
	    {"AAA", 0, 3},
	    /* too young: it counts, but stays */
	    {"|a", NONE, 1},
	    {"A|a", 0, 2},
	    {"b|aa", NONE, 2},
	    {"ba|a", 1, 2},
	    {"aabb|b", 2, 3},
	    /* spared: the same */
	    {"a!", NONE, 1},
	    {"a!a", 1, 2},
	    {"a!a!b", NONE, 2},
	    {"a!A", 1, 2},
	    {"a!a!Aaa", 3, 5},
	};
	struct hoarded list[HOARD_MAX];
	unsigned most;
	size_t i, n, ripe, pick;

	(void)state;
	for (i = 0; i < COUNT(table); i++) {
		n = parse(table[i].list, list, &ripe);
		pick = hoard_pick(&seed, list, n, ripe, &most);
		if (pick != (table[i].pick == NONE ? HOARD_NONE
						   : (size_t)table[i].pick) ||
		    most != table[i].most)
			fail_msg(
			    "%s: %d of %u", table[i].list, (int)pick, most);
	}
}

/* Each of an address of its own, but for two: wherever these are. */
static void
two_of_one_address_are_found_among_many(void **state)
{
	struct hoarded list[HOARD_MAX] = {0};
	unsigned most;
	size_t first, i;

	(void)state;
	for (first = 0; first < HOARD_MAX - 1; first++) {
		for (i = 0; i < HOARD_MAX; i++)
			list[i] = (struct hoarded){.ho_key = i};
		list[HOARD_MAX - 1].ho_key = first;
		list[first].ho_begun = true;
		assert_int_equal(
		    hoard_pick(&seed, list, HOARD_MAX, HOARD_MAX, &most),
		    HOARD_MAX - 1);
		assert_int_equal(most, 2);
		list[HOARD_MAX - 1].ho_begun = true;
		assert_int_equal(
		    hoard_pick(&seed, list, HOARD_MAX, HOARD_MAX, &most),
		    first);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(who_goes),
	    cmocka_unit_test(two_of_one_address_are_found_among_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
