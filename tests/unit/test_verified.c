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
		verified_trim(vf, file, &off, &end, 10, UINT64_MAX);
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
	verified_trim(vf, file, &off, &end, 11, UINT64_MAX);
	assert_int_equal(end - off, PIECE);
	verified_note(vf, file, 0, PIECE, SIZE, 11);
	verified_trim(vf, file, &off, &end, 11, UINT64_MAX);
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
	verified_trim(vf, file, &off, &end, 10, UINT64_MAX);
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
	verified_trim(vf, other, &off, &end, 10, UINT64_MAX);
	assert_int_equal(end - off, SIZE);
	verified_trim(vf, file, &off, &end, 10, UINT64_MAX);
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
		verified_trim(vf, file, &off, &end, 10, UINT64_MAX);
		if (at % (2 * PIECE) != 0)
			assert_int_equal(end - off, PIECE);
		else if (off == end)
			known++;
	}
	assert_in_range(known, 1, 4096);
}

/* Returns how many bytes from off on were in use after the time, or were not, as `used` says. */
static off_t
run_of(const struct verified *vf, uint32_t file, off_t off, uint64_t since,
    bool used)
{
	off_t end = SIZE;

	assert_int_equal(verified_is_used(vf, file, off, &end, since), used);
	return end - off;
}

/* Returns how many bytes of the piece need a check. */
static off_t
unknown_at(const struct verified *vf, uint32_t file, off_t off, uint64_t since)
{
	off_t end = off + PIECE;

	verified_trim(vf, file, &off, &end, UINT64_MAX, since);
	return end - off;
}

TEST(piece_is_in_use_after_two_uses_in_a_row)
{
	const uint64_t begin = 10 * (uint64_t)VERIFIED_AGAIN;
	uint64_t now = begin;
	uint32_t file;
	SCOPED(verified_destroy) struct verified *vf = create(&file);

	verified_use(vf, file, 0, 2 * PIECE, SIZE, now);
	assert_int_equal(run_of(vf, file, 0, 0, false), SIZE);
	now += VERIFIED_AGAIN - 1;
	/* a part of a piece does not count */
	verified_use(vf, file, 0, 2 * PIECE - 1, SIZE, now);
	assert_int_equal(run_of(vf, file, 1, now - 1, true), PIECE - 1);
	assert_int_equal(run_of(vf, file, PIECE, 0, false), SIZE - PIECE);
	assert_int_equal(unknown_at(vf, file, 0, now - 1), 0);
	assert_int_equal(unknown_at(vf, file, PIECE, 0), PIECE);
	assert_int_equal(run_of(vf, file, 0, now, false), SIZE);
	assert_int_equal(unknown_at(vf, file, 0, now), PIECE);
	now += VERIFIED_AGAIN;
	verified_use(vf, file, 0, PIECE, SIZE, now);
	assert_int_equal(run_of(vf, file, 0, 0, false), SIZE);
}

/* A full socket takes a part of a piece. */
TEST(piece_that_is_sent_in_parts_is_used)
{
	const uint64_t now = 10 * (uint64_t)VERIFIED_AGAIN;
	uint32_t file;
	SCOPED(verified_destroy) struct verified *vf = create(&file);

	for (int i = 0; i < 2; i++) {
		verified_use(vf, file, 0, PIECE + 1, SIZE, now);
		verified_use(vf, file, PIECE + 1, 2 * PIECE, SIZE, now);
		/* not all of the third piece, and its end too late */
		verified_use(vf, file, 2 * PIECE, 2 * PIECE + 1, SIZE, now);
		verified_use(vf, file, 2 * PIECE + 2, 3 * PIECE, SIZE, now);
		verified_use(vf, file, 2 * PIECE + 1, 3 * PIECE, SIZE,
		    now + VERIFIED_AGAIN);
	}
	assert_int_equal(run_of(vf, file, 0, now - 1, true), 2 * PIECE);
}

TEST(fetched_pieces_are_not_in_use)
{
	const uint64_t now = 10 * (uint64_t)VERIFIED_AGAIN;
	uint32_t file;
	SCOPED(verified_destroy) struct verified *vf = create(&file);

	verified_use(vf, file, 0, 2 * PIECE, SIZE, now);
	verified_use(vf, file, 0, 2 * PIECE, SIZE, now);
	verified_unuse(vf, file, PIECE - 1, PIECE);
	assert_int_equal(run_of(vf, file, 0, 0, false), PIECE);
	assert_int_equal(run_of(vf, file, PIECE, 0, true), PIECE);
}
