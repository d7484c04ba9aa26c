/*
 * The memory of a response cache (server/content/response_cache.h): its bound, which responses it
 * evicts, and responses that are being sent.
 */
#include "response_cache_fixture.h"

int
__wrap_pw_file_copy(struct pw_file *file, off_t off, void *to, size_t len)
{
	return copy_of_any(file, off, to, len);
}

static struct response_cache *
create_for_three(const struct pw_file *file)
{
	struct response_cache *rch = create(4 * cost("/1", file) - 1);

	return rch;
}

static bool
has(struct response_cache *rch, const char *target, const struct pw_file *file)
{
	return find(rch, target, file) != NULL;
}

TEST(the_oldest_goes_if_it_was_used_less)
{
	SCOPED_FILE *file = new_file("f", 1000);
	SCOPED_CACHE *rch = create_for_three(file);

	offer(rch, "/1", file, RESPONSE_CACHE_ASKED);
	offer(rch, "/2", file, RESPONSE_CACHE_ASKED);
	offer(rch, "/3", file, RESPONSE_CACHE_ASKED);
	assert_int_equal(response_cache_bytes(rch), 3 * cost("/1", file));
	assert_true(has(rch, "/1", file));
	/* It came with 2 and was used once more: half of that, and one. */
	offer(rch, "/4", file, 6);
	assert_int_equal(response_cache_bytes(rch), 3 * cost("/1", file));
	assert_true(has(rch, "/2", file));
	assert_true(has(rch, "/3", file));
	assert_true(has(rch, "/4", file));
	assert_false(has(rch, "/1", file));
}

TEST(the_oldest_stays_if_it_was_used_about_as_often)
{
	SCOPED_FILE *file = new_file("f", 1000);
	SCOPED_CACHE *rch = create_for_three(file);

	offer(rch, "/1", file, RESPONSE_CACHE_ASKED);
	offer(rch, "/2", file, RESPONSE_CACHE_ASKED);
	offer(rch, "/3", file, RESPONSE_CACHE_ASKED);
	for (int i = 0; i < 8; i++)
		assert_true(has(rch, "/1", file));
	/* 10 uses, half of them and one: it stays, as the youngest. */
	offer(rch, "/4", file, 16);
	assert_int_equal(response_cache_bytes(rch), 3 * cost("/1", file));
	assert_false(has(rch, "/4", file));
	offer(rch, "/4", file, 5);
	assert_false(has(rch, "/2", file));
	offer(rch, "/5", file, 5);
	assert_false(has(rch, "/3", file));
	/* The order is 1, 4, 5 now. */
	offer(rch, "/6", file, 17);
	assert_false(has(rch, "/1", file));
	assert_true(has(rch, "/4", file));
	assert_true(has(rch, "/5", file));
	assert_true(has(rch, "/6", file));
}

TEST(what_is_equally_popular_stays)
{
	SCOPED_FILE *file = new_file("f", 1000);
	SCOPED_CACHE *rch = create_for_three(file);
	static const char *const in[] = {"/1", "/2", "/3"};
	static const char *const out[] = {"/4", "/5", "/6", "/7"};
	unsigned asked, i, left = 0;

	for (i = 0; i < 3; i++)
		offer(rch, in[i], file, RESPONSE_CACHE_ASKED);
	for (asked = 1; asked < 100; asked++) {
		for (i = 0; i < 3; i++)
			assert_true(has(rch, in[i], file));
		for (i = 0; i < 4; i++)
			offer(rch, out[i], file, asked);
	}
	for (i = 0; i < 3; i++)
		assert_true(has(rch, in[i], file));
	/* Nor does what has just come in go for others that are no more popular. */
	offer(rch, "/new", file, 200);
	for (i = 0; i < 40; i++)
		offer(rch, out[i % 4], file, 100);
	assert_true(has(rch, "/new", file));
	for (i = 0; i < 3; i++)
		left += has(rch, in[i], file);
	assert_int_equal(left, 2);
}

TEST(counts_are_halved_with_time)
{
	const uint64_t half = (uint64_t)1 << 23;
	struct response_cache_count hc = {0};

	assert_int_equal(response_cache_count(&hc, 5 * half, 100), 100);
	assert_int_equal(response_cache_count(&hc, 6 * half - 1, 1), 101);
	assert_int_equal(response_cache_count(&hc, 6 * half, 0), 50);
	assert_int_equal(response_cache_count(&hc, 8 * half, 1), 13);
	assert_int_equal(response_cache_count(&hc, 40 * half, 0), 0);
	assert_int_equal(response_cache_count(&hc, 1000 * half, 7), 7);
	/* For a request that began before the last one that was counted. */
	assert_int_equal(response_cache_count(&hc, 999 * half, 1), 8);
	assert_int_equal(response_cache_count(&hc, 1001 * half, 0), 4);
}

TEST(memory_is_bounded)
{
	SCOPED_FILE *file = new_file("f", 3000);
	size_t max = 64 * KIB;
	SCOPED_CACHE *rch = create(max);
	char target[16];

	for (int i = 0; i < 1000; i++) {
		snprintf(target, sizeof(target), "/%d", i);
		offer(
		    rch, target, file, RESPONSE_CACHE_ASKED + (unsigned)i % 7);
		assert_in_range(response_cache_bytes(rch), 1, max);
		if (i % 3 == 0)
			find(rch, target, file);
	}
}

TEST(what_never_fits_pushes_nothing_out)
{
	struct pw_file *small = new_file("s", 1000);
	struct pw_file *large = new_file("l", 6000);
	SCOPED_CACHE *rch = create_for_three(small);

	offer(rch, "/1", small, RESPONSE_CACHE_ASKED);
	offer(rch, "/2", small, RESPONSE_CACHE_ASKED);
	offer(rch, "/l", large, 255);
	assert_true(has(rch, "/1", small));
	assert_true(has(rch, "/2", small));
	assert_false(has(rch, "/l", large));
	pw_file_unref(&small);
	pw_file_unref(&large);
}

TEST(a_large_one_takes_the_place_of_several)
{
	struct pw_file *small = new_file("s", 1000);
	struct pw_file *large = new_file("l", 3000);
	SCOPED_CACHE *rch = create_for_three(small);

	offer(rch, "/1", small, RESPONSE_CACHE_ASKED);
	offer(rch, "/2", small, RESPONSE_CACHE_ASKED);
	offer(rch, "/3", small, RESPONSE_CACHE_ASKED);
	offer(rch, "/l", large, 5);
	assert_answer(find(rch, "/l", large), 3000);
	assert_false(has(rch, "/1", small));
	assert_false(has(rch, "/2", small));
	assert_true(has(rch, "/3", small));
	pw_file_unref(&small);
	pw_file_unref(&large);
}

/* What is still on its way to a client is neither freed nor forgotten. */
TEST(what_somebody_sends_stays_and_counts)
{
	SCOPED_FILE *file = new_file("f", 1000);
	SCOPED_CACHE *rch = create_for_three(file);
	struct cached_response *sent[3];
	char target[3] = "/1";

	for (int i = 0; i < 3; i++, target[1]++) {
		offer(rch, target, file, RESPONSE_CACHE_ASKED);
		sent[i] = find(rch, target, file);
		response_cache_ref(sent[i]);
	}
	offer(rch, "/4", file, 255);
	assert_false(has(rch, "/4", file));
	assert_true(has(rch, "/1", file));
	assert_true(has(rch, "/2", file));
	assert_true(has(rch, "/3", file));
	assert_int_equal(response_cache_bytes(rch), 3 * cost("/1", file));
	for (int i = 0; i < 3; i++) {
		assert_answer(sent[i], 1000);
		response_cache_unref(&sent[i]);
		assert_null(sent[i]);
	}
	offer(rch, "/4", file, 255);
	assert_true(has(rch, "/4", file));
}

TEST(one_that_another_replaces_is_sent_to_its_end)
{
	struct pw_file *file = new_file("f", 1000);
	struct pw_file *other = new_file("o", 2000);
	SCOPED_CACHE *rch = create(PLENTY);
	struct cached_response *old;

	offer(rch, "/f", file, RESPONSE_CACHE_ASKED);
	response_cache_ref(old = find(rch, "/f", file));
	assert_null(response_cache_of_file(
	    rch, key(here, "/f"), other, file->fil_checked));
	offer(rch, "/f", other, RESPONSE_CACHE_ASKED);
	assert_answer(find(rch, "/f", other), 2000);
	assert_answer(old, 1000);
	response_cache_unref(&old);
	assert_int_equal(response_cache_bytes(rch), cost("/f", other));
	pw_file_unref(&file);
	pw_file_unref(&other);
}

/* Another one goes for it, or it has none; never it itself. */
TEST(a_form_of_a_head_counts_and_goes_with_the_answer)
{
	SCOPED_FILE *file = new_file("f", 1000);
	size_t one = cost("/f", file), form = 200;
	SCOPED_CACHE *rch = create(2 * one + form - 1);
	struct cached_response *rsp;

	offer(rch, "/f", file, RESPONSE_CACHE_ASKED);
	offer(rch, "/g", file, RESPONSE_CACHE_ASKED);
	rsp = find(rch, "/g", file);
	assert_non_null(rsp);
	/* The other one was asked for as often. */
	assert_null(response_cache_form(rsp, form, file->fil_checked));
	assert_null(rsp->rsp_form);
	assert_int_equal(response_cache_bytes(rch), 2 * one);
	for (int i = 0; i < 10; i++)
		rsp = find(rch, "/g", file);
	while (response_cache_form(rsp, form, file->fil_checked) == NULL)
		assert_ptr_equal(find(rch, "/g", file), rsp);
	memset(rsp->rsp_form, 1, form);
	assert_null(find(rch, "/f", file));
	assert_int_equal(response_cache_bytes(rch), one + form);
	assert_null(response_cache_form(rsp, 4 * one, file->fil_checked));
	assert_ptr_equal(find(rch, "/g", file), rsp);
}
