/*
 * Which byte has to be read before a share of a file on UFS is sent (lib/file/indirect.h).
 */
#include "test.h"

#include "lib/file/indirect.h"

#define KIB   ((off_t)1 << 10)
#define MIB   ((off_t)1 << 20)
#define BEGIN ((uint64_t)5 * INDIRECT_HOLDS)

/* UFS's usual block: 32 KiB. */
#define D (384 * KIB) /* what the inode knows */
#define S (128 * MIB) /* what an indirect block knows */

struct row {
	const char *rw_name;
	off_t rw_block;
	off_t rw_read[3]; /* bytes that were read before; 0: no more */
	off_t rw_off, rw_end;
	off_t rw_missing;
};

static const struct row rows[] = {
    {"a small file", 32 * KIB, {0}, 0, 1, 1},
    {"twelve blocks", 32 * KIB, {0}, 0, D, D},
    {"nothing", 32 * KIB, {0}, D, D, D},
    {"a byte more", 32 * KIB, {0}, 0, D + 1, D},
    {"the first share past it", 32 * KIB, {0}, 0, MIB, D},
    {"from there on", 32 * KIB, {0}, D, MIB, D},
    {"a range further on", 32 * KIB, {0}, MIB, 2 * MIB, MIB},
    {"a range at the end of one", 32 * KIB, {0}, D + S - 1, D + 2 * S,
	D + S - 1},
    {"once read", 32 * KIB, {D}, 0, D + S, D + S},
    {"once read somewhere", 32 * KIB, {D + S - 1}, 0, D + S, D + S},
    {"the next one", 32 * KIB, {D}, 0, D + S + 1, D + S},
    {"the last before the next one", 32 * KIB, {D}, D + S - 1, D + S, D + S},
    {"both", 32 * KIB, {D, D + S}, 0, D + 2 * S, D + 2 * S},
    {"not the one between", 32 * KIB, {D, D + 2 * S}, 0, D + 3 * S, D + S},
    {"between, later", 32 * KIB, {D + 2 * S, D + S, D}, 0, D + 3 * S,
	D + 3 * S},
    {"a byte that needs none", 32 * KIB, {D - 1}, 0, D + 1, D},
    {"64 are remembered", 32 * KIB, {D, D + 63 * S}, 0, D + 1, D + 1},
    {"the 65th makes the first forgotten", 32 * KIB, {D + S, D, D + 64 * S}, 0,
	D + S, D},
    {"and no other", 32 * KIB, {D + S, D, D + 64 * S}, D + S, D + 2 * S,
	D + 2 * S},
    {"back again", 32 * KIB, {D + 64 * S, D + S, D}, 0, D + 2 * S, D + 2 * S},
    {"the last one was forgotten then", 32 * KIB, {D + 64 * S, D}, D + 64 * S,
	D + 65 * S, D + 64 * S},
    {"nor is another one known then", 32 * KIB, {D, D + S, D + 64 * S},
	D + 2 * S, D + 3 * S, D + 2 * S},
    {"nor so the other way", 32 * KIB, {D + 130 * S, D + 67 * S, D}, D + 3 * S,
	D + 4 * S, D + 3 * S},
    {"far away", 32 * KIB, {D, D + 1000 * S}, D + 1000 * S, D + 1001 * S,
	D + 1001 * S},
    {"far back", 32 * KIB, {D + 1000 * S, D}, D, D + S, D + S},
    {"blocks of 4 KiB", 4 * KIB, {0}, 0, MIB, 48 * KIB},
    {"their second one", 4 * KIB, {48 * KIB}, 0, 4 * MIB, 2 * MIB + 48 * KIB},
    {"blocks of 64 KiB", 64 * KIB, {768 * KIB}, 0, 1024 * MIB,
	512 * MIB + 768 * KIB},
};

TEST(indirect_blocks_are_read_before_their_chunk)
{
	const struct row *rw;
	struct indirect in;
	off_t missing;

	for (rw = rows; rw < rows + COUNT(rows); rw++) {
		in = (struct indirect){.in_block = rw->rw_block};
		for (size_t i = 0; i < COUNT(rw->rw_read) && rw->rw_read[i] > 0;
		     i++)
			indirect_note(&in, rw->rw_read[i], BEGIN);
		missing =
		    indirect_missing(&in, rw->rw_off, rw->rw_end, BEGIN + 1);
		if (missing != rw->rw_missing)
			fail_msg("%s: %jd, not %jd", rw->rw_name,
			    (intmax_t)missing, (intmax_t)rw->rw_missing);
	}
}

/* Memory is short, or many files are served: the system may have freed it. */
TEST(an_indirect_block_is_read_again_after_a_while)
{
	struct indirect in = {.in_block = 32 * KIB};

	indirect_note(&in, D, BEGIN);
	assert_int_equal(
	    indirect_missing(&in, 0, MIB, BEGIN + INDIRECT_HOLDS - 1), MIB);
	assert_int_equal(
	    indirect_missing(&in, 0, MIB, BEGIN + INDIRECT_HOLDS), D);
	/* That of the second one does not make the first last any longer. */
	indirect_note(&in, D + S, BEGIN + INDIRECT_HOLDS - 1);
	assert_int_equal(
	    indirect_missing(&in, 0, MIB, BEGIN + INDIRECT_HOLDS), D);
	indirect_note(&in, D, BEGIN + INDIRECT_HOLDS);
	assert_int_equal(
	    indirect_missing(&in, 0, MIB, BEGIN + 2 * INDIRECT_HOLDS - 1), MIB);
	assert_int_equal(
	    indirect_missing(&in, D + S, D + 2 * S, BEGIN + INDIRECT_HOLDS),
	    D + S);
}
