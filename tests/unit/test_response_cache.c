/*
 * The rules of server/content/response_cache.h: which responses are stored, for which requests, and
 * for how long they are fresh.
 */
#include "response_cache_fixture.h"

int
__wrap_pw_file_copy(struct pw_file *file, off_t off, void *to, size_t len)
{
	return copy_of_any(file, off, to, len);
}

/* ---------------------------------------------------------------- codings */

TEST(an_answer_that_varies_is_for_those_who_accept_the_same)
{
	SCOPED_CACHE *rch = create(PLENTY);
	SCOPED_FILE *file = new_file("f", 10);
	struct cached_key k = key(here, "/f"), other = k;

	k.ck_varies = true;
	k.ck_accept = 1;
	other.ck_accept = 2;
	response_cache_offer(
	    rch, k, file, str(FIELDS), 2, file->fil_checked, settled(file));
	assert_non_null(response_cache_find(
	    rch, k, file->fil_checked, settled(file), DATE_A));
	assert_null(response_cache_find(
	    rch, other, file->fil_checked, settled(file), DATE_A));
	assert_null(
	    response_cache_of_file(rch, other, file, file->fil_checked));
	other.ck_accept = 1;
	assert_non_null(
	    response_cache_of_file(rch, other, file, file->fil_checked));
}

/* ---------------------------------------------------------------- admission */

TEST(an_answer_is_the_head_and_the_whole_file)
{
	static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 65535, 65536};
	SCOPED_CACHE *rch = create(PLENTY);
	struct pw_file *file;
	char name[16], target[16];
	size_t i, all = 0;

	for (i = 0; i < COUNT(sizes); i++) {
		snprintf(name, sizeof(name), "%zu", sizes[i]);
		snprintf(target, sizeof(target), "/%zu", sizes[i]);
		file = new_file(name, sizes[i]);
		offer(rch, target, file, RESPONSE_CACHE_ASKED);
		assert_answer(find(rch, target, file), sizes[i]);
		all += cost(target, file);
		assert_int_equal(response_cache_bytes(rch), all);
		pw_file_unref(&file);
	}
}

TEST(a_larger_file_is_left_out)
{
	struct pw_file *file =
	    new_file("f", (size_t)RESPONSE_CACHE_LARGEST + 1);
	SCOPED_CACHE *rch = create(PLENTY);

	offer(rch, "/f", file, 255);
	assert_null(find(rch, "/f", file));
	assert_int_equal(response_cache_bytes(rch), 0);
	pw_file_unref(&file);
}

TEST(a_file_comes_in_the_second_time)
{
	SCOPED_FILE *file = new_file("f", 10);
	SCOPED_CACHE *rch = create(PLENTY);

	offer(rch, "/f", file, RESPONSE_CACHE_ASKED - 1);
	assert_null(find(rch, "/f", file));
	offer(rch, "/f", file, RESPONSE_CACHE_ASKED);
	assert_answer(find(rch, "/f", file), 10);
}

TEST(a_target_has_room_for_one_byte_less_than_said)
{
	SCOPED_FILE *file = new_file("f", 10);
	SCOPED_CACHE *rch = create(PLENTY);
	char target[RESPONSE_CACHE_TARGET + 1];

	memset(target, 'a', RESPONSE_CACHE_TARGET);
	target[RESPONSE_CACHE_TARGET] = '\0';
	offer(rch, target, file, RESPONSE_CACHE_ASKED);
	assert_null(find(rch, target, file));
	target[RESPONSE_CACHE_TARGET - 1] = '\0';
	offer(rch, target, file, RESPONSE_CACHE_ASKED);
	assert_answer(find(rch, target, file), 10);
}

TEST(a_file_that_has_just_changed_is_left_out)
{
	SCOPED_FILE *file = new_file("f", 10);
	SCOPED_CACHE *rch = create(PLENTY);
	time_t now;

	for (now = settled(file) - RESPONSE_CACHE_SETTLED - 1;
	     now < settled(file); now++) {
		response_cache_offer(rch, key(here, "/f"), file, str(FIELDS),
		    RESPONSE_CACHE_ASKED, file->fil_checked, now);
		assert_null(find(rch, "/f", file));
	}
	response_cache_offer(rch, key(here, "/f"), file, str(FIELDS),
	    RESPONSE_CACHE_ASKED, file->fil_checked, now);
	assert_answer(find(rch, "/f", file), 10);
}

TEST(a_file_that_is_not_in_memory_is_left_out)
{
	struct pw_file *file;
	struct response_cache *rch;

	skip_unless(NEED_EVICTION | NEED_NOWAIT);
	file = new_file("f", 8 * KIB);
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
	destroy(&rch);
}

TEST(a_file_that_was_cut_is_left_out)
{
	SCOPED_FILE *file = new_file("f", 8 * KIB);
	SCOPED_CACHE *rch = create(PLENTY);

	assert_int_equal(truncate(path_in("f"), 5000), 0);
	offer(rch, "/f", file, RESPONSE_CACHE_ASKED);
	assert_null(find(rch, "/f", file));
	assert_int_equal(response_cache_bytes(rch), 0);
}

/* --------------------------------------------------------------------- keys */

TEST(sites_and_targets_are_told_apart)
{
	struct pw_file *one = new_file("1", 10), *two = new_file("2", 20);
	SCOPED_CACHE *rch = create(PLENTY);
	time_t now = settled(two);

	offer(rch, "/f", one, RESPONSE_CACHE_ASKED);
	assert_null(response_cache_find(
	    rch, key(there, "/f"), two->fil_checked, now, DATE_A));
	assert_null(find(rch, "/", one));
	assert_null(find(rch, "/ff", one));
	assert_null(find(rch, "/F", one));
	assert_null(find(rch, "", one));
	response_cache_offer(rch, key(there, "/f"), two, str(FIELDS),
	    RESPONSE_CACHE_ASKED, two->fil_checked, now);
	offer(rch, "/ff", two, RESPONSE_CACHE_ASKED);
	assert_answer(find(rch, "/f", one), 10);
	assert_answer(find(rch, "/ff", one), 20);
	assert_answer(response_cache_find(
			  rch, key(there, "/f"), two->fil_checked, now, DATE_A),
	    20);
	pw_file_unref(&one);
	pw_file_unref(&two);
}

TEST(many_targets_are_found_again)
{
	SCOPED_FILE *file = new_file("f", 1);
	SCOPED_CACHE *rch = create(PLENTY);
	char target[16];

	for (int i = 0; i < 1000; i++) {
		snprintf(target, sizeof(target), "/%d", i);
		offer(rch, target, file, RESPONSE_CACHE_ASKED);
	}
	for (int i = 0; i < 1000; i++) {
		snprintf(target, sizeof(target), "/%d", i);
		assert_answer(find(rch, target, file), 1);
	}
}

/* ---------------------------------------------------------------- freshness */

TEST(an_answer_is_fresh_as_long_as_its_file)
{
	SCOPED_FILE *file = new_file("f", 10);
	SCOPED_CACHE *rch = create(PLENTY);
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

TEST(the_answer_of_another_file_is_gone_at_once)
{
	struct pw_file *file = new_file("f", 10), other;
	SCOPED_CACHE *rch = create(PLENTY);
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
}

TEST(the_date_goes_on_and_nothing_else_changes)
{
	SCOPED_FILE *file = new_file("f", 10);
	SCOPED_CACHE *rch = create(PLENTY);
	struct cached_response *rsp;
	time_t now = settled(file);

	offer(rch, "/f", file, RESPONSE_CACHE_ASKED);
	rsp = response_cache_find(
	    rch, key(here, "/f"), file->fil_checked, now + 1, DATE_B);
	assert_non_null(rsp);
	assert_memory_equal(rsp->rsp_text + HEAD_WRITE_DATE, DATE_B, DATE_LEN);
	memcpy(rsp->rsp_text + HEAD_WRITE_DATE, DATE_A, DATE_LEN);
	assert_answer(rsp, 10);
}

/* Room for three answers of the file, and not for four. */
/* Its Last-Modified may lie in the future then. */
TEST(an_answer_is_gone_when_the_clock_goes_back)
{
	SCOPED_FILE *file = new_file("f", 10);
	SCOPED_CACHE *rch = create(PLENTY);
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
}

TEST(no_set_is_empty, NULL)
{
	struct response_cache *none = NULL;
	struct cached_response *nothing = NULL;

	assert_int_equal(response_cache_bytes(none), 0);
	response_cache_destroy(&none);
	response_cache_unref(&nothing);
}
