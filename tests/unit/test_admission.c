/*
 * Which files earn a place in memory (lib/disk/admission.h).
 */
#include "lib_fixture.h"

#include "lib/disk/admission.h"

#define ROOM  ((uint64_t)64 << 20)
#define SIZE  ((off_t)1 << 20) /* so 64 files fit */
#define FITS  64
#define FILES 512

struct crowd {
	struct admission *cr_popular;
	struct noted cr_noted;
	struct file_private cr_files[FILES];
	uint64_t cr_random;
};

static struct crowd *
crowd_create(void)
{
	struct crowd *cr = calloc(1, sizeof(*cr));

	assert_non_null(cr);
	cr->cr_popular = admission_create(ROOM);
	assert_non_null(cr->cr_popular);
	for (size_t i = 0; i < FILES; i++) {
		cr->cr_files[i].fp_file.fil_dev = 1;
		cr->cr_files[i].fp_file.fil_ino = 1000 + i;
		cr->cr_files[i].fp_file.fil_size = SIZE;
	}
	cr->cr_random = 1;
	return cr;
}

static void
crowd_destroy(struct crowd *cr)
{
	admission_destroy(&cr->cr_popular);
	assert_null(cr->cr_popular);
	free(cr);
}

static void
note(struct crowd *cr, size_t i, off_t len)
{
	admission_sent(
	    cr->cr_popular, &cr->cr_noted, &cr->cr_files[i].fp_file, len);
}

static enum admission_verdict
judge(struct crowd *cr, size_t i)
{
	return admission_judge(cr->cr_popular, &cr->cr_files[i].fp_file, 0);
}

static bool
stays(struct crowd *cr, size_t i)
{
	return judge(cr, i) != ADMISSION_GOES;
}

static bool
asked(struct crowd *cr, size_t i)
{
	note(cr, i, SIZE);
	return stays(cr, i);
}

/* True if the last of them may stay. */
static bool
asked_often(struct crowd *cr, size_t i, unsigned times)
{
	bool yes = false;

	while (times-- > 0)
		yes = asked(cr, i);
	return yes;
}

/* 0 to n - 1, from the middle of a linear congruence (Knuth's MMIX). */
static size_t
draw(struct crowd *cr, size_t n)
{
	cr->cr_random =
	    cr->cr_random * 6364136223846793005U + 1442695040888963407U;
	return (size_t)(cr->cr_random >> 33) % n;
}

TEST(files_that_fit_into_memory_stay, NULL)
{
	struct crowd *cr = crowd_create();

	for (size_t i = 0; i < FITS; i++)
		assert_true(asked(cr, i));
	crowd_destroy(cr);
}

TEST(files_requested_once_go_if_not_all_fit, NULL)
{
	struct crowd *cr = crowd_create();
	size_t i, stay = 0;

	for (i = 0; i < FITS; i++)
		asked_often(cr, i, 3);
	for (; i < FILES; i++)
		stay += asked(cr, i);
	assert_int_equal(stay, 0);
	for (i = 0; i < FITS; i++)
		assert_true(asked(cr, i));
	crowd_destroy(cr);
}

/* Of files that are all alike as many stay as fit, and always the same. */
TEST(some_of_equally_popular_files_stay, NULL)
{
	struct crowd *cr = crowd_create();
	bool before[FILES];
	size_t i, stay = 0, same = 0;

	for (i = 0; i < FILES; i++)
		asked_often(cr, i, 2);
	for (i = 0; i < FILES; i++)
		stay += before[i] = judge(cr, i) == ADMISSION_STAYS;
	for (i = 0; i < FILES; i++)
		same += before[i] == (judge(cr, i) == ADMISSION_STAYS);
	assert_in_range(stay, FITS / 2, FITS * 2);
	assert_int_equal(same, FILES);
	crowd_destroy(cr);
}

/* Files that were asked for twice fill the room: a third request would earn it. */
TEST(a_file_one_request_short_is_on_trial, NULL)
{
	struct crowd *cr = crowd_create();

	for (size_t i = 0; i < FITS; i++)
		asked_often(cr, i, 3);
	note(cr, FITS, SIZE);
	assert_int_equal(judge(cr, FITS), ADMISSION_GOES);
	note(cr, FITS, SIZE);
	assert_int_equal(judge(cr, FITS), ADMISSION_TRIAL);
	assert_int_equal(judge(cr, 0), ADMISSION_STAYS);
	crowd_destroy(cr);
}

/* Though it has its place: nobody knows that it will be asked for again. */
TEST(a_file_requested_once_is_on_trial, NULL)
{
	struct crowd *cr = crowd_create();

	note(cr, 0, SIZE);
	assert_int_equal(judge(cr, 0), ADMISSION_TRIAL);
	note(cr, 0, SIZE);
	assert_int_equal(judge(cr, 0), ADMISSION_STAYS);
	crowd_destroy(cr);
}

TEST(a_crawler_evicts_no_file, NULL)
{
	struct crowd *cr = crowd_create();
	size_t i, lost = 0;

	for (i = 0; i < (size_t)FITS * 20; i++)
		asked(cr, draw(cr, FITS / 2));
	for (i = FITS / 2; i < FILES; i++) {
		asked(cr, i);
		lost += !asked(cr, draw(cr, FITS / 2));
	}
	assert_int_equal(lost, 0);
	crowd_destroy(cr);
}

TEST(a_file_of_a_quarter_of_the_room_is_the_largest_that_stays, NULL)
{
	struct crowd *cr = crowd_create();

	cr->cr_files[0].fp_file.fil_size = (off_t)(ROOM / 4);
	note(cr, 0, cr->cr_files[0].fp_file.fil_size);
	assert_true(stays(cr, 0));
	cr->cr_files[1].fp_file.fil_size = (off_t)(ROOM / 4 + 1);
	note(cr, 1, cr->cr_files[1].fp_file.fil_size);
	assert_false(stays(cr, 1));
	crowd_destroy(cr);
}

/* A hundred pieces of a file are not a hundred requests for it. */
TEST(parts_count_when_their_lengths_make_the_whole_file, NULL)
{
	struct crowd *cr = crowd_create();
	bool ever = false;

	for (size_t i = 0; i < FILES - 1; i++)
		asked_often(cr, i, 2);
	for (size_t i = 0; i < 100; i++) {
		note(cr, FILES - 1, SIZE / 100);
		ever |= stays(cr, FILES - 1);
	}
	assert_false(ever);
	for (size_t i = 0; i < 100 * ADMISSION_MOST; i++)
		note(cr, FILES - 1, SIZE / 100 + 1);
	assert_true(stays(cr, FILES - 1));
	crowd_destroy(cr);
}

/* Nobody takes the lock for each request. */
TEST(noted_requests_count_when_the_loop_passes_them_on, NULL)
{
	struct crowd *cr = crowd_create();

	for (size_t i = 0; i < 3 * (size_t)FITS; i++)
		note(cr, i % FITS, SIZE);
	assert_int_equal(cr->cr_noted.nt_files, 0);
	for (size_t i = 0; i < 3 * (size_t)FITS / 2; i++)
		note(cr, i % (FITS / 2), SIZE);
	assert_int_equal(cr->cr_noted.nt_files, FITS / 2);
	assert_int_equal(cr->cr_files[0].fp_sent, 3 * SIZE);
	admission_tell(cr->cr_popular, &cr->cr_noted);
	assert_int_equal(cr->cr_noted.nt_files, 0);
	assert_int_equal(cr->cr_files[0].fp_sent, 0);
	for (size_t i = 0; i < FITS; i++)
		assert_true(stays(cr, i));
	for (size_t i = FITS; i < FILES; i++)
		assert_false(asked(cr, i));
	crowd_destroy(cr);
}

TEST(requests_for_very_popular_files_are_passed_on_at_once, NULL)
{
	struct crowd *cr = crowd_create();

	for (int i = 1; i < ADMISSION_MOST; i++)
		note(cr, 0, SIZE);
	assert_int_equal(cr->cr_noted.nt_files, 1);
	note(cr, 0, SIZE);
	assert_int_equal(cr->cr_noted.nt_files, 0);
	assert_int_equal(cr->cr_files[0].fp_sent, 0);
	crowd_destroy(cr);
}

TEST(popularity_decays, NULL)
{
	struct crowd *cr = crowd_create();

	for (size_t i = 0; i < (size_t)FITS * 20; i++)
		asked(cr, draw(cr, FITS));
	for (size_t i = 0; i < (size_t)FITS * 20 * ADMISSION_SAMPLE; i++)
		asked(cr, FITS + draw(cr, 2 * FITS));
	for (size_t i = 0; i < FITS; i++)
		assert_false(asked(cr, i));
	crowd_destroy(cr);
}

/* Each rank twice as likely as the one twice as far down. */
static size_t
draw_by_zipf(struct crowd *cr)
{
	static double sums[FILES];
	double at;
	size_t i;

	if (sums[0] == 0)
		for (i = 0; i < FILES; i++)
			sums[i] =
			    (i > 0 ? sums[i - 1] : 0) + 1.0 / (double)(i + 1);
	at = (double)draw(cr, 1 << 30) / (1 << 30) * sums[FILES - 1];
	for (i = 0; sums[i] < at; i++)
		continue;
	return i;
}

TEST(with_zipf_requests_the_most_popular_stay, NULL)
{
	struct crowd *cr = crowd_create();
	size_t i, at, first = 0, first_kept = 0, rest = 0, rest_kept = 0;
	bool yes;

	for (i = 0; i < 40000; i++) {
		at = draw_by_zipf(cr);
		yes = asked(cr, at);
		if (i < 10000)
			continue;
		if (at < FITS / 2) {
			first++;
			first_kept += yes;
		} else if (at >= (size_t)FITS * 2) {
			rest++;
			rest_kept += yes;
		}
	}
	assert_in_range(first_kept * 100 / first, 95, 100);
	assert_in_range(rest_kept * 100 / rest, 0, 20);
	crowd_destroy(cr);
}
