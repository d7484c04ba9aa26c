/*
 * The rules of server/util/buf.h: what is appended is there, blocks go round through
 * the free list, and a failure changes nothing but b_failed.
 */
#include "test.h"

#include <inttypes.h>

#include "server/util/buf.h"

#define TOO_MUCH ((size_t)1 << 60) /* more than any address space */
#define BLOCKS	 5000		   /* more than a list keeps */

/* The sanitizers would end the program instead of failing. */
#define SANITIZER "allocator_may_return_null=1"
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *
__asan_default_options(void)
{
	return SANITIZER;
}

const char *
__tsan_default_options(void)
{
	return SANITIZER;
}

static void
assert_holds(const struct buf *b, const char *data, size_t len)
{
	assert_false(b->b_failed);
	assert_int_equal(b->b_len, len);
	assert_true(b->b_cap >= len);
	if (len > 0)
		assert_memory_equal(b->b_data, data, len);
}

static unsigned
kept(const struct buf_list *bl)
{
	return bl->bl_small.bs_count + bl->bl_large.bs_count;
}

TEST(appended_bytes_follow_the_contents)
{
	SCOPED(buf_list_destroy) struct buf_list bl = {0};
	struct buf b = {0};

	buf_str(&b, &bl, "one");
	buf_add(&b, &bl, " \0two", 5);
	buf_str(&b, &bl, "");
	buf_uint(&b, &bl, 3);
	assert_holds(&b, "one \0two3", 9);
	buf_release(&b, &bl);
}

TEST(nothing_is_held_until_it_is_needed)
{
	struct buf_list bl = {0};
	struct buf b = {0};

	buf_add(&b, &bl, "", 0);
	buf_add(&b, &bl, NULL, 0);
	assert_null(b.b_data);
	assert_int_equal(b.b_cap, 0);
	assert_false(b.b_failed);
	buf_release(&b, &bl);
	assert_int_equal(kept(&bl), 0);
}

TEST(numbers_are_decimal)
{
	static const uint64_t numbers[] = {0, 1, 9, 10, 99, 100, 4294967295,
	    4294967296, INT64_MAX, UINT64_MAX - 1, UINT64_MAX};
	SCOPED(buf_list_destroy) struct buf_list bl = {0};
	struct buf b = {0};
	char expected[32];

	for (size_t i = 0; i < COUNT(numbers); i++) {
		snprintf(expected, sizeof(expected), "%" PRIu64, numbers[i]);
		b.b_len = 0;
		buf_uint(&b, &bl, numbers[i]);
		assert_holds(&b, expected, strlen(expected));
	}
	buf_release(&b, &bl);
}

TEST(it_grows_past_a_block_and_keeps_its_contents)
{
	static char data[10 * BUF_SIZE];
	SCOPED(buf_list_destroy) struct buf_list bl = {0};
	struct buf b = {0};
	size_t i, len = 0, n;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (char)(i % 251);
	for (n = 1; len + n <= sizeof(data); n += 13) {
		buf_add(&b, &bl, data + len, n);
		len += n;
		assert_holds(&b, data, len);
	}
	assert_true(len > 4 * BUF_SIZE);
	buf_release(&b, &bl);
	assert_null(b.b_data);
	assert_int_equal(b.b_len, 0);
	assert_int_equal(b.b_cap, 0);
}

TEST(room_that_is_there_does_not_move)
{
	SCOPED(buf_list_destroy) struct buf_list bl = {0};
	struct buf b = {0};
	const char *before;

	assert_true(buf_reserve(&b, &bl, 1));
	assert_true(b.b_cap >= 1);
	assert_true(buf_reserve(&b, &bl, 3 * BUF_SIZE));
	before = b.b_data;
	assert_true(buf_reserve(&b, &bl, 3 * BUF_SIZE));
	assert_true(buf_reserve(&b, &bl, 0));
	assert_ptr_equal(b.b_data, before);
	memset(b.b_data, 'x', 3 * BUF_SIZE);
	buf_release(&b, &bl);
}

TEST(consume_takes_from_the_front)
{
	SCOPED(buf_list_destroy) struct buf_list bl = {0};
	struct buf b = {0};

	buf_str(&b, &bl, "head and body");
	buf_consume(&b, 0);
	assert_holds(&b, "head and body", 13);
	buf_consume(&b, 5);
	assert_holds(&b, "and body", 8);
	buf_consume(&b, 8);
	assert_holds(&b, "", 0);
	buf_str(&b, &bl, "more");
	assert_holds(&b, "more", 4);
	buf_release(&b, &bl);
}

TEST(a_block_that_was_released_is_used_again)
{
	struct buf_list bl = {0};
	struct buf one = {0}, two = {0};
	char *block;

	buf_str(&one, &bl, "1");
	block = one.b_data;
	assert_int_equal(one.b_cap, BUF_SMALL);
	buf_release(&one, &bl);
	assert_int_equal(kept(&bl), 1);
	buf_str(&two, &bl, "2");
	assert_ptr_equal(two.b_data, block);
	assert_int_equal(kept(&bl), 0);
	buf_str(&one, &bl, "3");
	assert_ptr_not_equal(one.b_data, two.b_data);
	buf_release(&one, &bl);
	buf_release(&two, &bl);
	assert_int_equal(kept(&bl), 2);
	buf_list_destroy(&bl);
	assert_int_equal(kept(&bl), 0);
	assert_null(bl.bl_small.bs_free);
}

TEST(only_blocks_of_the_usual_sizes_are_kept)
{
	struct buf_list bl = {0};
	struct buf b = {0};

	assert_true(buf_reserve(&b, &bl, BUF_SIZE + 1));
	buf_release(&b, &bl);
	assert_int_equal(kept(&bl), 0);
	/* The blocks that it has grown out of are. */
	buf_str(&b, &bl, "x");
	assert_int_equal(b.b_cap, BUF_SMALL);
	assert_true(buf_reserve(&b, &bl, BUF_SMALL + 1));
	assert_int_equal(b.b_cap, BUF_SIZE);
	assert_true(buf_reserve(&b, &bl, BUF_SIZE + 1));
	assert_int_equal(b.b_cap, 2 * BUF_SIZE);
	assert_int_equal(bl.bl_small.bs_count, 1);
	assert_int_equal(bl.bl_large.bs_count, 1);
	assert_holds(&b, "x", 1);
	buf_release(&b, &bl);
	buf_list_destroy(&bl);
	assert_int_equal(kept(&bl), 0);
}

TEST(the_free_list_is_bounded)
{
	static struct buf many[BLOCKS];
	SCOPED(buf_list_destroy) struct buf_list bl = {0};
	unsigned most;

	for (size_t i = 0; i < BLOCKS; i++)
		buf_str(&many[i], &bl, "x");
	for (size_t i = 0; i < BLOCKS; i++)
		buf_release(&many[i], &bl);
	most = kept(&bl);
	assert_in_range(most, 1, BLOCKS - 1);
	buf_str(&many[0], &bl, "x");
	buf_release(&many[0], &bl);
	assert_int_equal(kept(&bl), most);
}

TEST(a_failed_append_changes_only_the_error)
{
	SCOPED(buf_list_destroy) struct buf_list bl = {0};
	struct buf b = {0}, before;

	buf_str(&b, &bl, "here");
	before = b;
	assert_false(buf_reserve(&b, &bl, TOO_MUCH));
	assert_memory_equal(&b, &before, sizeof(b));
	buf_add(&b, &bl, "never read", TOO_MUCH);
	assert_true(b.b_failed);
	assert_ptr_equal(b.b_data, before.b_data);
	assert_int_equal(b.b_len, 4);
	assert_memory_equal(b.b_data, "here", 4);
	buf_str(&b, &bl, "more");
	assert_true(b.b_failed);
	buf_release(&b, &bl);
	assert_false(b.b_failed);
}

TEST(fit_shrinks_a_buffer_that_is_less_than_half_full)
{
	SCOPED(buf_list_destroy) struct buf_list bl = {0};
	struct buf b = {0};

	buf_fit(&b, &bl);
	assert_null(b.b_data);
	buf_str(&b, &bl, "here");
	buf_fit(&b, &bl);
	assert_int_equal(kept(&bl), 1);
	assert_int_equal(b.b_cap, 4);
	assert_memory_equal(b.b_data, "here", 4);
	buf_str(&b, &bl, " and there");
	assert_int_equal(b.b_cap, BUF_SMALL);
	for (size_t i = b.b_len; i <= BUF_SMALL / 2; i++)
		buf_str(&b, &bl, "x");
	buf_fit(&b, &bl);
	assert_int_equal(b.b_cap, BUF_SMALL);
	buf_release(&b, &bl);
	assert_int_equal(kept(&bl), 1);
}

TEST(shrink_moves_small_contents_into_a_small_block)
{
	static const char secret[] = "a password";
	SCOPED(buf_list_destroy) struct buf_list bl = {0};
	struct buf b = {0};
	char *left;

	buf_shrink(&b, &bl);
	assert_null(b.b_data);
	assert_true(buf_reserve(&b, &bl, BUF_SIZE));
	buf_str(&b, &bl, "0123456789abcdef");
	buf_str(&b, &bl, secret);
	left = b.b_data;
	buf_shrink(&b, &bl);
	assert_int_equal(b.b_cap, BUF_SMALL);
	assert_holds(&b, "0123456789abcdefa password", 26);
	assert_int_equal(bl.bl_large.bs_count, 1);
	for (size_t i = 16; i < 26; i++)
		assert_int_equal(left[i], 0);
	assert_true(buf_reserve(&b, &bl, BUF_SIZE));
	while (b.b_len <= BUF_SMALL)
		buf_str(&b, &bl, "x");
	buf_shrink(&b, &bl);
	assert_int_equal(b.b_cap, BUF_SIZE);
	buf_release(&b, &bl);
}

TEST(exact_room_is_its_own)
{
	struct buf_list bl = {0};
	struct buf b = {0};

	assert_true(buf_reserve_exact(&b, 7));
	buf_str(&b, &bl, "1234567");
	assert_int_equal(b.b_cap, 7);
	buf_release(&b, &bl);
	assert_int_equal(kept(&bl), 0);
	assert_false(buf_reserve_exact(&b, TOO_MUCH));
	assert_null(b.b_data);
}
