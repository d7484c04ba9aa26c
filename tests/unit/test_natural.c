/*
 * The order of names (server/util/natural.h), against all pairs of a list that is in order.
 */
#include "test.h"

#include "server/util/natural.h"

static int
sign(int n)
{
	return (n > 0) - (n < 0);
}

static void
assert_in_order(const char *const names[], size_t count)
{
	size_t i, j;
	int by, expected;

	for (i = 0; i < count; i++)
		for (j = 0; j < count; j++) {
			by = sign(natural_compare(names[i], names[j]));
			expected = (i > j) - (i < j);
			if (by != expected)
				fail_msg("\"%s\" to \"%s\": %d", names[i],
				    names[j], by);
		}
}

TEST(digits_are_compared_as_one_number)
{
	static const char *const names[] = {"", "0", "1", "2", "10", "16",
	    "152", "18446744073709551615", "18446744073709551616", "a", "a0",
	    "a1", "a1b", "a1b2", "a1b10", "a1b10c", "a2", "a2.9", "a2.10",
	    "a10", "a10-1", "aa1"};

	assert_in_order(names, COUNT(names));
}

/* As numbers they are the same, as names they are not. */
TEST(zeros_before_a_number_decide_last)
{
	assert_true(natural_compare("0", "00") < 0);
	assert_true(natural_compare("00", "000") < 0);
	assert_true(natural_compare("01", "1") < 0);
	assert_true(natural_compare("01b", "1a") > 0);
	assert_true(natural_compare("0", "0x") < 0);
	assert_true(natural_compare("00x", "0y") < 0);
	assert_true(natural_compare("0000000000000000000002", "10") < 0);
}

TEST(other_bytes_are_compared_as_bytes)
{
	static const char *const names[] = {"\x01", " ", "!", "-1", "-2", "1",
	    "9", ":", "A", "B1", "a", "b", "\x7f", "\x80", "\xc3\xa9", "\xff"};

	assert_in_order(names, COUNT(names));
}

/* Whatever the names: it is an order, so that sorting comes to an end. */
TEST(it_is_a_total_order)
{
	enum { NAMES = 120 };
	static const char bytes[] = "0019a.";
	char names[NAMES][6];
	unsigned seed = 1, i, j, k;
	int ij, jk;

	for (i = 0; i < NAMES; i++) {
		memset(names[i], 0, sizeof(names[i]));
		for (j = 0; j < i % 6; j++) {
			seed = seed * 1103515245 + 12345;
			names[i][j] = bytes[(seed >> 16) % 6];
		}
	}
	for (i = 0; i < NAMES; i++)
		for (j = 0; j < NAMES; j++) {
			ij = sign(natural_compare(names[i], names[j]));
			assert_int_equal(
			    ij, -sign(natural_compare(names[j], names[i])));
			assert_int_equal(
			    ij == 0, strcmp(names[i], names[j]) == 0);
			for (k = 0; k < NAMES; k++) {
				jk = sign(natural_compare(names[j], names[k]));
				if (ij == jk)
					assert_int_equal(
					    sign(natural_compare(
						names[i], names[k])),
					    ij);
			}
		}
}
