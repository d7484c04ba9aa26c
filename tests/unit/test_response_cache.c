/*
 * The rules of server/content/response_cache.h: what is taken in and what goes, for how long an
 * answer is fresh, and that memory is bounded.
 */
#include "lib_fixture.h"

#include "server/content/response_cache.h"
#include "server/http/date.h"
#include "server/http/head_write.h"

#define SECOND UINT64_C(1000000)
#define DATE_A "Sun, 06 Nov 1994 08:49:37 GMT"
#define DATE_B "Mon, 07 Nov 1994 08:49:38 GMT"
#define HEAD   HEAD_WRITE_OK DATE_A "\r\nContent-Length: 1\r\n\r\n"
#define PLENTY ((size_t)1 << 20)

/* Only their addresses matter. */
static const char places[2];
static const struct site *const here =
    (const struct site *)(const void *)places;
static const struct site *const there =
    (const struct site *)(const void *)(places + 1);

static struct str
str(const char *text)
{
	return (struct str){text, strlen(text)};
}

static struct cached_key
key(const struct site *site, const char *target)
{
	return (struct cached_key){.ck_site = site, .ck_target = str(target)};
}

/* The first second in which it may be taken in. */
static time_t
settled(const struct pw_file *file)
{
	return file->fil_ctime.tv_sec + RESPONSE_CACHE_SETTLED;
}

static void
offer(struct response_cache *rch, const char *target, struct pw_file *file,
    unsigned asked)
{
	response_cache_offer(rch, key(here, target), file, str(HEAD), asked,
	    file->fil_checked, settled(file));
}

static struct cached_response *
find(struct response_cache *rch, const char *target, const struct pw_file *file)
{
	return response_cache_find(
	    rch, key(here, target), file->fil_checked, settled(file), DATE_A);
}

/* What one answer of HEAD takes. */
static size_t
cost(const char *target, const struct pw_file *file)
{
	return sizeof(struct cached_response) + strlen(target) + strlen(HEAD) +
	       (size_t)file->fil_size;
}

static struct response_cache *
create(size_t bytes)
{
	struct response_cache *rch = response_cache_create(bytes);

	assert_non_null(rch);
	assert_int_equal(response_cache_bytes(rch), 0);
	return rch;
}

static void
destroy(struct response_cache *rch)
{
	response_cache_destroy(&rch);
	assert_null(rch);
}

static void
assert_answer(const struct cached_response *rsp, size_t size)
{
	char *expected = malloc(size + 1);

	assert_non_null(rsp);
	assert_non_null(expected);
	fill(expected, 0, size);
	assert_int_equal(rsp->rsp_head, strlen(HEAD));
	assert_int_equal(rsp->rsp_len, strlen(HEAD) + size);
	assert_memory_equal(rsp->rsp_text, HEAD, strlen(HEAD));
	assert_memory_equal(rsp->rsp_text + rsp->rsp_head, expected, size);
	free(expected);
}

/* ---------------------------------------------------------------- codings */

static void
an_answer_that_varies_is_for_those_who_accept_the_same(void **state)
{
	struct response_cache *rch = create(PLENTY);
	struct pw_file *file = new_file(*state, "f", 10);
	struct cached_key k = key(here, "/f"), other = k;

	k.ck_varies = true;
	k.ck_accept = 1;
	other.ck_accept = 2;
	response_cache_offer(
	    rch, k, file, str(HEAD), 2, file->fil_checked, settled(file));
	assert_non_null(response_cache_find(
	    rch, k, file->fil_checked, settled(file), DATE_A));
	assert_null(response_cache_find(
	    rch, other, file->fil_checked, settled(file), DATE_A));
	assert_null(
	    response_cache_of_file(rch, other, file, file->fil_checked));
	other.ck_accept = 1;
	assert_non_null(
	    response_cache_of_file(rch, other, file, file->fil_checked));
	pw_file_unref(&file);
	destroy(rch);
}

/* ---------------------------------------------------------------- admission */

static void
an_answer_is_the_head_and_the_whole_file(void **state)
{
	static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 65535, 65536};
	struct fixture *fx = *state;
	struct response_cache *rch = create(PLENTY);
	struct pw_file *file;
	char name[16], target[16];
	size_t i, all = 0;

	for (i = 0; i < COUNT(sizes); i++) {
		snprintf(name, sizeof(name), "%zu", sizes[i]);
		snprintf(target, sizeof(target), "/%zu", sizes[i]);
		file = new_file(fx, name, sizes[i]);
		offer(rch, target, file, RESPONSE_CACHE_ASKED);
		assert_answer(find(rch, target, file), sizes[i]);
		all += cost(target, file);
		assert_int_equal(response_cache_bytes(rch), all);
		pw_file_unref(&file);
	}
	destroy(rch);
}

static void
a_larger_file_is_left_out(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file =
	    new_file(fx, "f", (size_t)RESPONSE_CACHE_LARGEST + 1);
	struct response_cache *rch = create(PLENTY);

	offer(rch, "/f", file, 255);
	assert_null(find(rch, "/f", file));
	assert_int_equal(response_cache_bytes(rch), 0);
	pw_file_unref(&file);
	destroy(rch);
}

static void
a_file_comes_in_the_second_time(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", 10);
	struct response_cache *rch = create(PLENTY);

	offer(rch, "/f", file, RESPONSE_CACHE_ASKED - 1);
	assert_null(find(rch, "/f", file));
	offer(rch, "/f", file, RESPONSE_CACHE_ASKED);
	assert_answer(find(rch, "/f", file), 10);
	pw_file_unref(&file);
	destroy(rch);
}

static void
a_target_has_room_for_one_byte_less_than_said(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", 10);
	struct response_cache *rch = create(PLENTY);
	char target[RESPONSE_CACHE_TARGET + 1];

	memset(target, 'a', RESPONSE_CACHE_TARGET);
	target[RESPONSE_CACHE_TARGET] = '\0';
	offer(rch, target, file, RESPONSE_CACHE_ASKED);
	assert_null(find(rch, target, file));
	target[RESPONSE_CACHE_TARGET - 1] = '\0';
	offer(rch, target, file, RESPONSE_CACHE_ASKED);
	assert_answer(find(rch, target, file), 10);
	pw_file_unref(&file);
	destroy(rch);
}

static void
a_file_that_has_just_changed_is_left_out(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", 10);
	struct response_cache *rch = create(PLENTY);
	time_t now;

	for (now = settled(file) - RESPONSE_CACHE_SETTLED - 1;
	     now < settled(file); now++) {
		response_cache_offer(rch, key(here, "/f"), file, str(HEAD),
		    RESPONSE_CACHE_ASKED, file->fil_checked, now);
		assert_null(find(rch, "/f", file));
	}
	response_cache_offer(rch, key(here, "/f"), file, str(HEAD),
	    RESPONSE_CACHE_ASKED, file->fil_checked, now);
	assert_answer(find(rch, "/f", file), 10);
	pw_file_unref(&file);
	destroy(rch);
}

static void
a_file_that_is_not_in_memory_is_left_out(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file;
	struct response_cache *rch;

	skip_unless(fx, NEED_EVICTION | NEED_NOWAIT);
	file = new_file(fx, "f", 8 * KIB);
	rch = create(PLENTY);
	assert_true(evict(file->fil_fd, 8 * KIB));
	offer(rch, "/f", file, RESPONSE_CACHE_ASKED);
	assert_null(find(rch, "/f", file));
	assert_int_equal(response_cache_bytes(rch), 0);
	assert_int_equal(pages_resident(file->fil_fd, 0, 8 * KIB), 0);
	read_in(file->fil_fd, 0, 8 * KIB);
	offer(rch, "/f", file, RESPONSE_CACHE_ASKED);
	assert_answer(find(rch, "/f", file), 8 * KIB);
	pw_file_unref(&file);
	destroy(rch);
}

static void
a_file_that_was_cut_is_left_out(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", 8 * KIB);
	struct response_cache *rch = create(PLENTY);

	assert_int_equal(truncate(path_in(fx, "f"), 5000), 0);
	offer(rch, "/f", file, RESPONSE_CACHE_ASKED);
	assert_null(find(rch, "/f", file));
	assert_int_equal(response_cache_bytes(rch), 0);
	pw_file_unref(&file);
	destroy(rch);
}

/* --------------------------------------------------------------------- keys */

static void
sites_and_targets_are_told_apart(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *one = new_file(fx, "1", 10),
		       *two = new_file(fx, "2", 20);
	struct response_cache *rch = create(PLENTY);
	time_t now = settled(two);

	offer(rch, "/f", one, RESPONSE_CACHE_ASKED);
	assert_null(response_cache_find(
	    rch, key(there, "/f"), two->fil_checked, now, DATE_A));
	assert_null(find(rch, "/", one));
	assert_null(find(rch, "/ff", one));
	assert_null(find(rch, "/F", one));
	assert_null(find(rch, "", one));
	response_cache_offer(rch, key(there, "/f"), two, str(HEAD),
	    RESPONSE_CACHE_ASKED, two->fil_checked, now);
	offer(rch, "/ff", two, RESPONSE_CACHE_ASKED);
	assert_answer(find(rch, "/f", one), 10);
	assert_answer(find(rch, "/ff", one), 20);
	assert_answer(response_cache_find(
			  rch, key(there, "/f"), two->fil_checked, now, DATE_A),
	    20);
	pw_file_unref(&one);
	pw_file_unref(&two);
	destroy(rch);
}

static void
many_targets_are_found_again(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", 1);
	struct response_cache *rch = create(PLENTY);
	char target[16];
	int i;

	for (i = 0; i < 1000; i++) {
		snprintf(target, sizeof(target), "/%d", i);
		offer(rch, target, file, RESPONSE_CACHE_ASKED);
	}
	for (i = 0; i < 1000; i++) {
		snprintf(target, sizeof(target), "/%d", i);
		assert_answer(find(rch, target, file), 1);
	}
	pw_file_unref(&file);
	destroy(rch);
}

/* ---------------------------------------------------------------- freshness */

static void
an_answer_is_fresh_as_long_as_its_file(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", 10);
	struct response_cache *rch = create(PLENTY);
	uint64_t looked = file->fil_checked;
	time_t now = settled(file);

	offer(rch, "/f", file, RESPONSE_CACHE_ASKED);
	assert_non_null(response_cache_find(
	    rch, key(here, "/f"), looked + SECOND - 1, now, DATE_A));
	assert_null(response_cache_find(
	    rch, key(here, "/f"), looked + SECOND, now, DATE_A));
	/* Not looked at again: asking does not make it fresh. */
	assert_answer(response_cache_of_file(
			  rch, key(here, "/f"), file, file->fil_checked),
	    10);
	assert_null(response_cache_find(
	    rch, key(here, "/f"), looked + SECOND, now, DATE_A));
	file->fil_checked = looked + 5 * SECOND;
	assert_answer(response_cache_of_file(
			  rch, key(here, "/f"), file, file->fil_checked),
	    10);
	assert_answer(response_cache_find(rch, key(here, "/f"),
			  looked + 6 * SECOND - 1, now, DATE_A),
	    10);
	assert_null(response_cache_find(
	    rch, key(here, "/f"), looked + 6 * SECOND, now, DATE_A));
	pw_file_unref(&file);
	destroy(rch);
}

static void
change(struct pw_file *file, int what)
{
	switch (what) {
	case 0:
		file->fil_ino++;
		break;
	case 1:
		file->fil_dev++;
		break;
	case 2:
		file->fil_size++;
		break;
	case 3:
		file->fil_mtime.tv_sec++;
		break;
	case 4:
		file->fil_mtime.tv_nsec++;
		break;
	case 5:
		file->fil_ctime.tv_sec++;
		break;
	case 6:
		file->fil_ctime.tv_nsec++;
		break;
	case 7:
		file->fil_stale = true;
		break;
	}
}

static void
the_answer_of_another_file_is_gone_at_once(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", 10), other;
	struct response_cache *rch = create(PLENTY);
	int what;

	for (what = 0; what < 8; what++) {
		offer(rch, "/f", file, RESPONSE_CACHE_ASKED);
		assert_answer(find(rch, "/f", file), 10);
		other = *file;
		change(&other, what);
		assert_null(response_cache_of_file(
		    rch, key(here, "/f"), &other, file->fil_checked));
		assert_null(find(rch, "/f", file));
		assert_int_equal(response_cache_bytes(rch), 0);
	}
	assert_null(response_cache_of_file(
	    rch, key(here, "/f"), file, file->fil_checked));
	pw_file_unref(&file);
	destroy(rch);
}

static void
the_date_goes_on_and_nothing_else_changes(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", 10);
	struct response_cache *rch = create(PLENTY);
	struct cached_response *rsp;
	time_t now = settled(file);

	offer(rch, "/f", file, RESPONSE_CACHE_ASKED);
	rsp = response_cache_find(
	    rch, key(here, "/f"), file->fil_checked, now + 1, DATE_B);
	assert_non_null(rsp);
	assert_memory_equal(rsp->rsp_text + HEAD_WRITE_DATE, DATE_B, DATE_LEN);
	memcpy(rsp->rsp_text + HEAD_WRITE_DATE, DATE_A, DATE_LEN);
	assert_answer(rsp, 10);
	pw_file_unref(&file);
	destroy(rch);
}

/* ------------------------------------------------------------------- memory */

/* Room for three answers of the file, and not for four. */
/* Its Last-Modified may lie in the future then. */
static void
an_answer_is_gone_when_the_clock_goes_back(void **state)
{
	struct pw_file *file = new_file(*state, "f", 10);
	struct response_cache *rch = create(PLENTY);
	time_t now = settled(file);

	offer(rch, "/f", file, RESPONSE_CACHE_ASKED);
	assert_non_null(response_cache_find(
	    rch, key(here, "/f"), file->fil_checked, now + 9, DATE_B));
	assert_non_null(response_cache_find(
	    rch, key(here, "/f"), file->fil_checked, now + 9, DATE_B));
	assert_null(response_cache_find(
	    rch, key(here, "/f"), file->fil_checked, now + 8, DATE_A));
	assert_int_equal(response_cache_bytes(rch), 0);
	offer(rch, "/f", file, RESPONSE_CACHE_ASKED);
	assert_answer(find(rch, "/f", file), 10);
	pw_file_unref(&file);
	destroy(rch);
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

static void
the_oldest_goes_if_it_was_used_less(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", 1000);
	struct response_cache *rch = create_for_three(file);

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
	pw_file_unref(&file);
	destroy(rch);
}

static void
the_oldest_stays_if_it_was_used_about_as_often(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", 1000);
	struct response_cache *rch = create_for_three(file);
	int i;

	offer(rch, "/1", file, RESPONSE_CACHE_ASKED);
	offer(rch, "/2", file, RESPONSE_CACHE_ASKED);
	offer(rch, "/3", file, RESPONSE_CACHE_ASKED);
	for (i = 0; i < 8; i++)
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
	pw_file_unref(&file);
	destroy(rch);
}

static void
what_is_equally_popular_stays(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", 1000);
	struct response_cache *rch = create_for_three(file);
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
	pw_file_unref(&file);
	destroy(rch);
}

static void
counts_are_halved_with_time(void **state)
{
	const uint64_t half = (uint64_t)1 << 23;
	struct response_cache_count hc = {0};

	(void)state;
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

static void
memory_is_bounded(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", 3000);
	size_t max = 64 * KIB;
	struct response_cache *rch = create(max);
	char target[16];
	int i;

	for (i = 0; i < 1000; i++) {
		snprintf(target, sizeof(target), "/%d", i);
		offer(
		    rch, target, file, RESPONSE_CACHE_ASKED + (unsigned)i % 7);
		assert_in_range(response_cache_bytes(rch), 1, max);
		if (i % 3 == 0)
			find(rch, target, file);
	}
	pw_file_unref(&file);
	destroy(rch);
}

static void
what_never_fits_pushes_nothing_out(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *small = new_file(fx, "s", 1000);
	struct pw_file *large = new_file(fx, "l", 6000);
	struct response_cache *rch = create_for_three(small);

	offer(rch, "/1", small, RESPONSE_CACHE_ASKED);
	offer(rch, "/2", small, RESPONSE_CACHE_ASKED);
	offer(rch, "/l", large, 255);
	assert_true(has(rch, "/1", small));
	assert_true(has(rch, "/2", small));
	assert_false(has(rch, "/l", large));
	pw_file_unref(&small);
	pw_file_unref(&large);
	destroy(rch);
}

static void
a_large_one_takes_the_place_of_several(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *small = new_file(fx, "s", 1000);
	struct pw_file *large = new_file(fx, "l", 3000);
	struct response_cache *rch = create_for_three(small);

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
	destroy(rch);
}

/* What is still on its way to a client is neither freed nor forgotten. */
static void
what_somebody_sends_stays_and_counts(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", 1000);
	struct response_cache *rch = create_for_three(file);
	struct cached_response *sent[3];
	char target[3] = "/1";
	int i;

	for (i = 0; i < 3; i++, target[1]++) {
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
	for (i = 0; i < 3; i++) {
		assert_answer(sent[i], 1000);
		response_cache_unref(&sent[i]);
		assert_null(sent[i]);
	}
	offer(rch, "/4", file, 255);
	assert_true(has(rch, "/4", file));
	pw_file_unref(&file);
	destroy(rch);
}

static void
one_that_another_replaces_is_sent_to_its_end(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", 1000);
	struct pw_file *other = new_file(fx, "o", 2000);
	struct response_cache *rch = create(PLENTY);
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
	destroy(rch);
}

/* Another one goes for it, or it has none; never it itself. */
static void
a_form_of_a_head_counts_and_goes_with_the_answer(void **state)
{
	struct fixture *fx = *state;
	struct pw_file *file = new_file(fx, "f", 1000);
	size_t one = cost("/f", file), form = 200;
	struct response_cache *rch = create(2 * one + form - 1);
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
	pw_file_unref(&file);
	destroy(rch);
}

static void
no_set_is_empty(void **state)
{
	struct response_cache *none = NULL;
	struct cached_response *nothing = NULL;

	(void)state;
	assert_int_equal(response_cache_bytes(none), 0);
	response_cache_destroy(&none);
	response_cache_unref(&nothing);
}

#define RULE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    RULE(an_answer_that_varies_is_for_those_who_accept_the_same),
	    RULE(an_answer_is_the_head_and_the_whole_file),
	    RULE(a_larger_file_is_left_out),
	    RULE(a_file_comes_in_the_second_time),
	    RULE(a_target_has_room_for_one_byte_less_than_said),
	    RULE(a_file_that_has_just_changed_is_left_out),
	    RULE(a_file_that_is_not_in_memory_is_left_out),
	    RULE(a_file_that_was_cut_is_left_out),
	    RULE(sites_and_targets_are_told_apart),
	    RULE(many_targets_are_found_again),
	    RULE(an_answer_is_fresh_as_long_as_its_file),
	    RULE(the_answer_of_another_file_is_gone_at_once),
	    RULE(the_date_goes_on_and_nothing_else_changes),
	    RULE(an_answer_is_gone_when_the_clock_goes_back),
	    RULE(the_oldest_goes_if_it_was_used_less),
	    RULE(the_oldest_stays_if_it_was_used_about_as_often),
	    RULE(what_is_equally_popular_stays),
	    RULE(counts_are_halved_with_time),
	    RULE(memory_is_bounded),
	    RULE(what_never_fits_pushes_nothing_out),
	    RULE(a_large_one_takes_the_place_of_several),
	    RULE(what_somebody_sends_stays_and_counts),
	    RULE(one_that_another_replaces_is_sent_to_its_end),
	    RULE(a_form_of_a_head_counts_and_goes_with_the_answer),
	    cmocka_unit_test(no_set_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
