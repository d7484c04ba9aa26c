/*
 * The Range field (RFC 9110, section 14): grammar, arithmetic at both ends of
 * off_t, order and merging.
 */
#include "test.h"

#include "server/http/range.h"

#define MAX	  4 /* more only if they are cheap */
#define ROOM	  8
#define HUGE_FILE INT64_MAX

struct range_case {
	const char *rc_value;
	off_t rc_size;
	struct range rc_ranges[ROOM]; /* a length of 0 ends them */
};

static const struct range_case satisfiable[] = {
    {"bytes=0-0", 100, {{0, 1}}},
    {"bytes=0-99", 100, {{0, 100}}},
    {"bytes=99-99", 100, {{99, 1}}},
    {"bytes=10-19", 100, {{10, 10}}},
    {"bytes=0-", 100, {{0, 100}}},
    {"bytes=99-", 100, {{99, 1}}},
    {"bytes=0-0", 1, {{0, 1}}},
    /* a last position behind the end is the end */
    {"bytes=0-100", 100, {{0, 100}}},
    {"bytes=50-1000", 100, {{50, 50}}},
    {"bytes=99-100", 100, {{99, 1}}},
    /* suffixes */
    {"bytes=-1", 100, {{99, 1}}},
    {"bytes=-99", 100, {{1, 99}}},
    {"bytes=-100", 100, {{0, 100}}},
    {"bytes=-101", 100, {{0, 100}}},
    {"bytes=-1", 1, {{0, 1}}},
    /* leading zeros are digits */
    {"bytes=000-009", 100, {{0, 10}}},
    {"bytes=-0001", 100, {{99, 1}}},
    {"bytes=00000000000000000000000000001-2", 100, {{1, 2}}},
    /* the unit is compared without case */
    {"BYTES=0-0", 100, {{0, 1}}},
    {"Bytes=0-0", 100, {{0, 1}}},
};

static const struct range_case big_numbers[] = {
    {"bytes=4294967295-4294967296", 5000000000, {{4294967295, 2}}},
    {"bytes=-4294967297", 5000000000, {{705032703, 4294967297}}},
    {"bytes=0-9223372036854775807", 100, {{0, 100}}},
    {"bytes=0-9223372036854775808", 100, {{0, 100}}},
    {"bytes=0-18446744073709551616", 100, {{0, 100}}},
    {"bytes=1-99999999999999999999999999999999", 100, {{1, 99}}},
    {"bytes=-9223372036854775807", 100, {{0, 100}}},
    {"bytes=-9223372036854775808", 100, {{0, 100}}},
    {"bytes=-18446744073709551617", 100, {{0, 100}}},
    {"bytes=0-", HUGE_FILE, {{0, HUGE_FILE}}},
    {"bytes=0-9223372036854775806", HUGE_FILE, {{0, HUGE_FILE}}},
    {"bytes=0-9223372036854775807", HUGE_FILE, {{0, HUGE_FILE}}},
    {"bytes=9223372036854775806-", HUGE_FILE, {{HUGE_FILE - 1, 1}}},
    {"bytes=9223372036854775806-9223372036854775807", HUGE_FILE,
	{{HUGE_FILE - 1, 1}}},
    {"bytes=-9223372036854775807", HUGE_FILE, {{0, HUGE_FILE}}},
    {"bytes=-9223372036854775808", HUGE_FILE, {{0, HUGE_FILE}}},
    {"bytes=0-0,9223372036854775806-", HUGE_FILE, {{0, 1}, {HUGE_FILE - 1, 1}}},
    {"bytes=1-,0-0", HUGE_FILE, {{0, HUGE_FILE}}},
};

static const struct range_case sets[] = {
    {"bytes=0-0,2-2", 100, {{0, 1}, {2, 1}}},
    {"bytes=0-0,-1", 100, {{0, 1}, {99, 1}}},
    {"bytes=0-0,10-10,20-20,30-30", 100, {{0, 1}, {10, 1}, {20, 1}, {30, 1}}},
    /* the client's order */
    {"bytes=50-59,0-9", 100, {{50, 10}, {0, 10}}},
    {"bytes=-1,0-0,50-50", 100, {{99, 1}, {0, 1}, {50, 1}}},
    /* the unsatisfiable ones are dropped, wherever they stand */
    {"bytes=100-,0-0", 100, {{0, 1}}},
    {"bytes=0-0,100-200,-0", 100, {{0, 1}}},
    {"bytes=0-0,99999999999999999999-,5-5", 100, {{0, 1}, {5, 1}}},
};

static const struct range_case merged[] = {
    {"bytes=0-9,5-14", 100, {{0, 15}}},
    {"bytes=5-14,0-9", 100, {{0, 15}}},
    {"bytes=0-9,0-9", 100, {{0, 10}}},
    {"bytes=0-99,10-19", 100, {{0, 100}}},
    {"bytes=10-19,0-99", 100, {{0, 100}}},
    {"bytes=0-,-50", 100, {{0, 100}}},
    {"bytes=-10,90-94", 100, {{90, 10}}},
    /* adjacent, and a gap of one byte */
    {"bytes=0-9,10-19", 100, {{0, 20}}},
    {"bytes=10-19,0-9", 100, {{0, 20}}},
    {"bytes=0-9,11-19", 100, {{0, 10}, {11, 9}}},
    /* one that closes the gap between others */
    {"bytes=0-9,20-29,10-19", 100, {{0, 30}}},
    {"bytes=20-29,0-9,10-19", 100, {{0, 30}}},
    {"bytes=50-59,20-29,0-9,10-19", 100, {{50, 10}, {0, 30}}},
    {"bytes=20-29,50-59,0-9,5-24", 100, {{0, 30}, {50, 10}}},
    {"bytes=0-0,40-49,20-29,45-49", 100, {{0, 1}, {40, 10}, {20, 10}}},
    {"bytes=0-0,10-10,20-20,0-99", 100, {{0, 100}}},
};

static const struct range_case white_space_and_empty_members[] = {
    {"bytes=0-0, 2-2", 100, {{0, 1}, {2, 1}}},
    {"bytes=0-0 ,\t2-2", 100, {{0, 1}, {2, 1}}},
    {"bytes=,0-0", 100, {{0, 1}}},
    {"bytes=0-0,", 100, {{0, 1}}},
    {"bytes=, ,\t,0-0,,2-2, ,", 100, {{0, 1}, {2, 1}}},
    {"  bytes=0-0\t", 100, {{0, 1}}},
    {"bytes= 0-0", 100, {{0, 1}}},
    /* empty members do not count */
    {"bytes=,,,,,,,,0-0", 100, {{0, 1}}},
};

static const struct range_case unsatisfiable[] = {
    {"bytes=100-", 100, {{0, 0}}},
    {"bytes=100-100", 100, {{0, 0}}},
    {"bytes=1000-2000", 100, {{0, 0}}},
    {"bytes=-0", 100, {{0, 0}}},
    {"bytes=-000", 100, {{0, 0}}},
    {"bytes=100-,200-,-0", 100, {{0, 0}}},
    /* these cost nothing, however many there are */
    {"bytes=100-,100-,200-,200-,300-", 100, {{0, 0}}},
    {"bytes=9223372036854775807-", 100, {{0, 0}}},
    {"bytes=9223372036854775807-", HUGE_FILE, {{0, 0}}},
    {"bytes=9223372036854775808-", HUGE_FILE, {{0, 0}}},
    {"bytes=18446744073709551616-", 100, {{0, 0}}},
    {"bytes=99999999999999999999-99999999999999999999", 100, {{0, 0}}},
};

static const struct range_case ignored[] = {
    {"", 100, {{0, 0}}},
    {"bytes", 100, {{0, 0}}},
    {"bytes=", 100, {{0, 0}}},
    {"bytes= ", 100, {{0, 0}}},
    {"bytes=,", 100, {{0, 0}}},
    {"bytes=, ,", 100, {{0, 0}}},
    {"=0-0", 100, {{0, 0}}},
    {"0-0", 100, {{0, 0}}},
    {"bytes 0-0", 100, {{0, 0}}},
    {"bytes =0-0", 100, {{0, 0}}},
    {"bytes:0-0", 100, {{0, 0}}},
    {"byte=0-0", 100, {{0, 0}}},
    {"bytess=0-0", 100, {{0, 0}}},
    {"xbytes=0-0", 100, {{0, 0}}},
    {"items=0-0", 100, {{0, 0}}},
    {"none", 100, {{0, 0}}},
    {"bytes==0-0", 100, {{0, 0}}},
    {"bytes=0", 100, {{0, 0}}},
    {"bytes=-", 100, {{0, 0}}},
    {"bytes=--1", 100, {{0, 0}}},
    {"bytes=0--1", 100, {{0, 0}}},
    {"bytes=-1-", 100, {{0, 0}}},
    {"bytes=-1-5", 100, {{0, 0}}},
    {"bytes=0-1-2", 100, {{0, 0}}},
    {"bytes=+0-1", 100, {{0, 0}}},
    {"bytes=0-+1", 100, {{0, 0}}},
    {"bytes=a-b", 100, {{0, 0}}},
    {"bytes=0-a", 100, {{0, 0}}},
    {"bytes=0x0-0x1", 100, {{0, 0}}},
    {"bytes=0.0-1", 100, {{0, 0}}},
    {"bytes=0 -1", 100, {{0, 0}}},
    {"bytes=0- 1", 100, {{0, 0}}},
    {"bytes=1 2-3", 100, {{0, 0}}},
    {"bytes=0-1 2-3", 100, {{0, 0}}},
    {"bytes=0-1;2-3", 100, {{0, 0}}},
    {"bytes=0-1/100", 100, {{0, 0}}},
    {"bytes=*", 100, {{0, 0}}},
    /* the last position before the first is invalid, not unsatisfiable */
    {"bytes=1-0", 100, {{0, 0}}},
    {"bytes=200-199", 100, {{0, 0}}},
    /* one bad member spoils the set, wherever it stands */
    {"bytes=0-0,x", 100, {{0, 0}}},
    {"bytes=x,0-0", 100, {{0, 0}}},
    {"bytes=0-0,5-4,7-8", 100, {{0, 0}}},
    {"bytes=100-,-", 100, {{0, 0}}},
    /* more than MAX members that overlap, or are the whole representation */
    {"bytes=0-0,0-0,0-0,0-0,0-0", 100, {{0, 0}}},
    {"bytes=0-9,20-29,40-49,60-69,69-70", 100, {{0, 0}}},
    {"bytes=69-70,60-69,40-49,20-29,0-9", 100, {{0, 0}}},
    {"bytes=40-49,0-9,60-69,20-29,5-5", 100, {{0, 0}}},
    {"bytes=0-9,20-29,40-49,60-69,200-,60-", 100, {{0, 0}}},
    {"bytes=0-19,20-39,40-59,60-79,80-99", 100, {{0, 0}}},
    {"bytes=80-99,60-79,40-59,20-39,0-19", 100, {{0, 0}}},
    /* nothing has no ranges */
    {"bytes=0-", 0, {{0, 0}}},
    {"bytes=0-0", 0, {{0, 0}}},
    {"bytes=1-", 0, {{0, 0}}},
    {"bytes=-0", 0, {{0, 0}}},
    {"bytes=-1", 0, {{0, 0}}},
    {"bytes=0-0,-1", 0, {{0, 0}}},
};

/* More than MAX members: none shares a byte with another, and bytes are left over. */
static const struct range_case cheap[] = {
    {"bytes=0-0,10-10,20-20,30-30,40-40", 100,
	{{0, 1}, {10, 1}, {20, 1}, {30, 1}, {40, 1}}},
    {"bytes=40-40,30-30,0-0,20-20,10-10", 100,
	{{40, 1}, {30, 1}, {0, 1}, {20, 1}, {10, 1}}},
    {"bytes=100-,100-,100-,100-,0-0", 100, {{0, 1}}},
    {"bytes=0-19,20-39,40-59,60-79,80-98", 100, {{0, 99}}},
    {"bytes=81-99,60-79,40-59,20-39,0-19", 100, {{81, 19}, {0, 80}}},
};

static enum range_verdict
parse(const char *value, off_t size, struct range *out, size_t max, size_t *n)
{
	size_t len = strlen(value);
	SCOPED(free_at) char *copy = malloc(len + (len == 0));
	enum range_verdict verdict;

	assert_non_null(copy);
	memcpy(copy, value, len);
	verdict = range_parse((struct str){copy, len}, size, out, max, n);
	return verdict;
}

static void
expect(const struct range_case *cases, size_t count, enum range_verdict verdict)
{
	for (size_t i = 0; i < count; i++) {
		const struct range_case *rc = &cases[i];
		struct range *out = calloc(RANGE_MOST, sizeof(*out));
		size_t n = 77, want = 0;

		assert_non_null(out);
		while (want < ROOM && rc->rc_ranges[want].rng_len > 0)
			want++;
		if (parse(rc->rc_value, rc->rc_size, out, MAX, &n) != verdict ||
		    n != want)
			fail_msg(
			    "%s of %lld", rc->rc_value, (long long)rc->rc_size);
		for (size_t k = 0; k < n; k++)
			if (out[k].rng_off != rc->rc_ranges[k].rng_off ||
			    out[k].rng_len != rc->rc_ranges[k].rng_len)
				fail_msg("%s of %lld: range %zu is %lld+%lld",
				    rc->rc_value, (long long)rc->rc_size, k,
				    (long long)out[k].rng_off,
				    (long long)out[k].rng_len);
		free(out);
	}
}

TEST(single_range_is_cut_to_the_representation)
{
	expect(satisfiable, COUNT(satisfiable), RANGE_OK);
}

TEST(numbers_beyond_off_t_do_not_wrap)
{
	expect(big_numbers, COUNT(big_numbers), RANGE_OK);
}

TEST(set_keeps_the_clients_order)
{
	expect(sets, COUNT(sets), RANGE_OK);
}

TEST(overlapping_and_adjacent_ranges_are_merged)
{
	expect(merged, COUNT(merged), RANGE_OK);
}

TEST(white_space_and_empty_members_are_skipped)
{
	expect(white_space_and_empty_members,
	    COUNT(white_space_and_empty_members), RANGE_OK);
}

TEST(range_behind_the_end_is_unsatisfiable)
{
	expect(unsatisfiable, COUNT(unsatisfiable), RANGE_UNSATISFIABLE);
}

TEST(malformed_ranges_are_ignored)
{
	size_t n = 77;
	struct range out[RANGE_MOST];

	expect(ignored, COUNT(ignored), RANGE_IGNORE);
	assert_int_equal(range_parse((struct str){NULL, 0}, 100, out, MAX, &n),
	    RANGE_IGNORE);
	assert_int_equal(n, 0);
	assert_int_equal(
	    range_parse(STR("bytes=0-0\0"), 100, out, MAX, &n), RANGE_IGNORE);
}

TEST(cheap_set_may_have_more_members)
{
	expect(cheap, COUNT(cheap), RANGE_OK);
}

/* As "bytes=0-0,3-3,..." in the file's order, or in the opposite one. */
static size_t
many(char *value, size_t n, bool backwards)
{
	size_t len = 6;

	memcpy(value, "bytes=", len);
	for (size_t i = 0; i < n; i++) {
		size_t at = 3 * (backwards ? n - 1 - i : i);

		len += (size_t)sprintf(value + len, "%zu-%zu,", at, at);
	}
	return len;
}

TEST(sets_are_bounded)
{
	static char value[RANGE_MOST * 16];
	static struct range out[RANGE_MOST];
	size_t n;

	for (int backwards = 0; backwards < 2; backwards++) {
		many(value, RANGE_MOST, backwards);
		assert_int_equal(parse(value, INT64_MAX, out, 1, &n), RANGE_OK);
		assert_int_equal(n, RANGE_MOST);
		assert_int_equal(
		    out[1].rng_off, backwards ? 3 * (RANGE_MOST - 2) : 3);
		many(value, RANGE_MOST + 1, backwards);
		assert_int_equal(
		    parse(value, INT64_MAX, out, RANGE_MOST + 1, &n),
		    RANGE_IGNORE);
	}
}

/* Random sets of up to MAX ranges of 24 bytes, against a map of the bytes. */
TEST(merged_set_covers_the_same_bytes_once)
{
	uint64_t x = 1994;

	for (int round = 0; round < 20000; round++) {
		bool want[32] = {false}, got[32] = {false};
		struct range out[RANGE_MOST];
		char value[128] = "bytes=";
		size_t n, members = 1 + next_random(&x) % MAX;

		for (size_t k = 0; k < members; k++) {
			unsigned a = (unsigned)(next_random(&x) % 24);
			unsigned b = a + (unsigned)(next_random(&x) % 6);
			size_t at = strlen(value);

			snprintf(
			    value + at, sizeof(value) - at, "%u-%u,", a, b);
			for (unsigned i = a; i <= b && i < 24; i++)
				want[i] = true;
		}
		assert_int_equal(parse(value, 24, out, MAX, &n), RANGE_OK);
		for (size_t k = 0; k < n; k++)
			for (off_t i = 0; i < out[k].rng_len; i++) {
				assert_false(got[out[k].rng_off + i]);
				got[out[k].rng_off + i] = true;
			}
		assert_memory_equal(want, got, sizeof(want));
		for (size_t k = 0; k < n; k++)
			assert_false(got[out[k].rng_off + out[k].rng_len]);
	}
}
