/*
 * What a loop remembers to have found in memory (lib/file/verified.h).
 */
#include "test.h"

#include "lib/file/verified.h"

#define PIECE VERIFIED_PIECE
#define SIZE  (8 * PIECE + 100)

/* What of [off, end) is left to ask about, after [2, 5) pieces and the end were found at 10. */
struct trim_case {
	off_t tc_off, tc_end;
	off_t tc_left, tc_left_end;
};

static const struct trim_case cases[] = {
    {2 * PIECE, 5 * PIECE, 0, 0},
    {2 * PIECE + 1, 5 * PIECE - 1, 0, 0},
    {3 * PIECE, 3 * PIECE + 1, 0, 0},
    {0, 2 * PIECE, 0, 2 * PIECE},
    {0, SIZE, 0, 8 * PIECE},
    {PIECE, 4 * PIECE, PIECE, 2 * PIECE},
    {PIECE + 7, 2 * PIECE + 7, PIECE + 7, 2 * PIECE},
    {3 * PIECE + 7, 6 * PIECE + 7, 5 * PIECE, 6 * PIECE + 7},
    {5 * PIECE, 6 * PIECE, 5 * PIECE, 6 * PIECE},
    /* a hole between what is known is asked about with what is in it only */
    {4 * PIECE, SIZE, 5 * PIECE, 8 * PIECE},
    {8 * PIECE, SIZE, 0, 0},
    {SIZE - 1, SIZE, 0, 0},
};

static struct verified *
create(uint32_t *file)
{
	struct verified *vf = verified_create();

	assert_non_null(vf);
	*file = verified_number(vf);
	return vf;
}

TEST(only_unverified_pieces_are_left)
{
	uint32_t file;
	struct verified *vf = create(&file);
	off_t off, end;

	verified_note(vf, file, 2 * PIECE, 5 * PIECE, SIZE, 10);
	verified_note(vf, file, 8 * PIECE, SIZE, SIZE, 10);
	for (size_t i = 0; i < COUNT(cases); i++) {
		off = cases[i].tc_off;
		end = cases[i].tc_end;
		verified_trim(vf, file, &off, &end, 10);
		if (cases[i].tc_left_end == 0)
			assert_true(off == end);
		else {
			assert_int_equal(off, cases[i].tc_left);
			assert_int_equal(end, cases[i].tc_left_end);
		}
	}
	verified_destroy(&vf);
	assert_null(vf);
}

TEST(expired_pieces_are_left)
{
	uint32_t file;
	SCOPED(verified_destroy) struct verified *vf = create(&file);
	off_t off = 0, end = PIECE;

	verified_note(vf, file, 0, PIECE, SIZE, 10);
	verified_trim(vf, file, &off, &end, 11);
	assert_int_equal(end - off, PIECE);
	verified_note(vf, file, 0, PIECE, SIZE, 11);
	verified_trim(vf, file, &off, &end, 11);
	assert_int_equal(end - off, 0);
}

TEST(a_part_of_a_piece_is_not_remembered)
{
	uint32_t file;
	SCOPED(verified_destroy) struct verified *vf = create(&file);
	off_t off = 0, end = SIZE;

	verified_note(vf, file, 1, PIECE, SIZE, 10);
	verified_note(vf, file, PIECE, 2 * PIECE - 1, SIZE, 10);
	verified_note(vf, file, 8 * PIECE, SIZE - 1, SIZE, 10);
	verified_note(vf, file, 8 * PIECE + 1, SIZE, SIZE, 10);
	verified_trim(vf, file, &off, &end, 10);
	assert_int_equal(off, 0);
	assert_int_equal(end, SIZE);
}

TEST(pieces_of_files_are_kept_apart)
{
	uint32_t file, other;
	SCOPED(verified_destroy) struct verified *vf = create(&file);
	off_t off = 0, end = SIZE;

	other = verified_number(vf);
	assert_int_not_equal(file, other);
	verified_note(vf, file, 0, SIZE, SIZE, 10);
	verified_trim(vf, other, &off, &end, 10);
	assert_int_equal(end - off, SIZE);
	verified_trim(vf, file, &off, &end, 10);
	assert_int_equal(end - off, 0);
}

/* However much there is, nothing that was not found is taken for found. */
TEST(a_large_file_evicts_older_pieces)
{
	const off_t large = 100000 * PIECE;
	uint32_t file;
	SCOPED(verified_destroy) struct verified *vf = create(&file);
	off_t off, end, at, known = 0;

	for (at = 0; at < large; at += 2 * PIECE)
		verified_note(vf, file, at, at + PIECE, large, 10);
	for (at = 0; at < large; at += PIECE) {
		off = at;
		end = at + PIECE;
		verified_trim(vf, file, &off, &end, 10);
		if (at % (2 * PIECE) != 0)
			assert_int_equal(end - off, PIECE);
		else if (off == end)
			known++;
	}
	assert_in_range(known, 1, 4096);
}

TEST(piece_is_in_use_after_two_uses_in_a_row)
{
	const uint64_t begin = 10 * (uint64_t)VERIFIED_AGAIN;
	uint64_t now = begin;
	uint32_t file;
	SCOPED(verified_destroy) struct verified *vf = create(&file);

	verified_use(vf, file, 0, 2 * PIECE, SIZE, now);
	assert_false(verified_is_used(vf, file, 0, PIECE, now));
	now += VERIFIED_AGAIN - 1;
	/* a part of a piece does not count */
	verified_use(vf, file, 0, 2 * PIECE - 1, SIZE, now);
	assert_true(verified_is_used(vf, file, 1, PIECE, now));
	assert_false(verified_is_used(vf, file, 1, PIECE + 1, now));
	verified_note(vf, file, 0, PIECE, SIZE, now);
	assert_true(
	    verified_is_used(vf, file, 0, PIECE, now + VERIFIED_AGAIN - 1));
	assert_false(
	    verified_is_used(vf, file, 0, PIECE, now + VERIFIED_AGAIN));
	verified_use(vf, file, 0, PIECE, SIZE, now + VERIFIED_AGAIN);
	assert_false(
	    verified_is_used(vf, file, 0, PIECE, now + VERIFIED_AGAIN));
}

TEST(fetched_pieces_are_not_in_use)
{
	const uint64_t now = 10 * (uint64_t)VERIFIED_AGAIN;
	uint32_t file;
	SCOPED(verified_destroy) struct verified *vf = create(&file);

	verified_use(vf, file, 0, 2 * PIECE, SIZE, now);
	verified_use(vf, file, 0, 2 * PIECE, SIZE, now);
	verified_unuse(vf, file, PIECE - 1, PIECE);
	assert_false(verified_is_used(vf, file, 0, PIECE, now));
	assert_true(verified_is_used(vf, file, PIECE, 2 * PIECE, now));
}
