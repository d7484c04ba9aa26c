/*
 * The offset of the index of an MP4 file (lib/send/mp4_index.c), by tables of boxes.  The fuzzing
 * harness compares it with a second reading.
 */

#include "test.h"

#include "lib/send/mp4_index.h"

#define KNOWN 4096
#define SIZE  1000000
#define LONG  (UINT64_C(1) << 63) /* flag of a length that has 64 bits */
#define MOST  20

struct box {
	const char *bx_type;
	uint64_t bx_len;
};

struct start {
	unsigned char st_data[KNOWN];
	unsigned st_reads;
};

struct row {
	const char *rw_what;
	struct box rw_boxes[MOST];
	off_t rw_index;
};

static const struct row rows[] = {
    {"media data last but one", {{"ftyp", 32}, {"mdat", 500000}}, 500032},
    {"a length of 64 bits", {{"ftyp", 24}, {"mdat", 700000 | LONG}}, 700024},
    {"QuickTime", {{"wide", 8}, {"mdat", 900000}}, 900008},
    {"no other box before", {{"mdat", 999999}}, 999999},
    {"a reserved place before", {{"ftyp", 32}, {"free", 3000}, {"mdat", 9000}},
	12032},
    {"any box before", {{"ftyp", 32}, {"uuid", 100}, {"mdat", 9000}}, 9132},
    {"a second one", {{"ftyp", 32}, {"mdat", 64}, {"mdat", 9000}}, 9096},
    {"its end in the last header", {{"ftyp", 32}, {"mdat", KNOWN - 40}},
	KNOWN - 8},
    {"the index first", {{"ftyp", 32}, {"moov", 600}, {"mdat", 9000}}, -1},
    {"the index within", {{"ftyp", 32}, {"mdat", 64}, {"moov", 9000}}, -1},
    {"fragments", {{"ftyp", 32}, {"moof", 64}, {"mdat", 9000}}, -1},
    {"no index", {{"ftyp", 32}, {"mdat", SIZE - 32}}, -1},
    {"up to the end", {{"ftyp", 32}, {"mdat", 0}}, -1},
    {"beyond the end", {{"ftyp", 32}, {"mdat", SIZE}}, -1},
    {"beyond every file", {{"ftyp", 32}, {"mdat", (LONG - 1) | LONG}}, -1},
    {"shorter than its header", {{"ftyp", 32}, {"mdat", 7}}, -1},
    {"shorter than its long header", {{"ftyp", 32}, {"mdat", 15 | LONG}}, -1},
    {"a long box first", {{"ftyp", 32}, {"free", 5000}, {"mdat", 9000}}, -1},
    {"another format", {{"RIFF", 32}, {"mdat", 9000}}, -1},
    {"all zeros", {{"\0\0\0\0", 0}}, -1},
};

static void
number(unsigned char *to, uint64_t n, int bytes)
{
	while (bytes-- > 0) {
		to[bytes] = (unsigned char)n;
		n >>= 8;
	}
}

static void
lay_out(struct start *st, const struct box *boxes)
{
	uint64_t at = 0, len;
	bool is_long;

	memset(st, 0, sizeof(*st));
	for (; boxes->bx_type != NULL && at + MP4_HEADER <= KNOWN; boxes++) {
		is_long = (boxes->bx_len & LONG) != 0;
		len = boxes->bx_len & ~LONG;
		number(st->st_data + at, is_long ? 1 : len, 4);
		memcpy(st->st_data + at + 4, boxes->bx_type, 4);
		if (is_long)
			number(st->st_data + at + 8, len, 8);
		at += len;
	}
}

static bool
read_start(void *arg, off_t at, unsigned char header[MP4_HEADER])
{
	struct start *st = arg;

	st->st_reads++;
	assert_in_range(at, 0, KNOWN - MP4_HEADER);
	memcpy(header, st->st_data + at, MP4_HEADER);
	return true;
}

static bool
read_nothing(void *arg, off_t at, unsigned char header[MP4_HEADER])
{
	(void)arg, (void)at;
	memset(header, 0, MP4_HEADER);
	return false;
}

TEST(the_index_is_behind_the_media_data)
{
	struct start st;
	off_t found;

	for (size_t i = 0; i < COUNT(rows); i++) {
		lay_out(&st, rows[i].rw_boxes);
		found = mp4_index_find(read_start, &st, KNOWN, SIZE);
		if (found != rows[i].rw_index)
			fail_msg("%s: %lld", rows[i].rw_what, (long long)found);
	}
}

TEST(few_boxes_are_read)
{
	struct box boxes[KNOWN / 8 + 1] = {{"ftyp", 8}};
	struct start st;

	for (size_t i = 1; i < KNOWN / 8; i++)
		boxes[i] = (struct box){"free", 8};
	lay_out(&st, boxes);
	assert_int_equal(mp4_index_find(read_start, &st, KNOWN, SIZE), -1);
	assert_in_range(st.st_reads, 1, 16);
}

TEST(a_short_file_or_an_error_has_no_index)
{
	struct start st;
	off_t known;

	lay_out(&st, rows[0].rw_boxes);
	for (known = 0; known < 32 + MP4_HEADER; known++)
		assert_int_equal(
		    mp4_index_find(read_start, &st, known, SIZE), -1);
	assert_int_equal(mp4_index_find(read_start, &st, KNOWN, 100), -1);
	assert_int_equal(mp4_index_find(read_nothing, NULL, KNOWN, SIZE), -1);
}
