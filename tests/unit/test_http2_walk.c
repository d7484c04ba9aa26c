/*
 * Tests of server/http2/walk.h: however the bytes are cut, the same frames are found at the same places.
 */
#include "test.h"

#include "server/http2/walk.h"

#define FRAMES 6

static const struct {
	uint32_t len;
	uint8_t type;
	uint8_t flags;
	uint32_t stream;
	uint32_t depends;
	int32_t says;
} frames[FRAMES] = {
    {0, 4, 1, 0, 0, -1},	   /* SETTINGS */
    {5, 2, 0, 3, 0x80000003, 3},   /* PRIORITY, exclusive */
    {300, 0, 8, 1, 0, -1},	   /* DATA, padded */
    {3, 2, 0, 5, 0, -1},	   /* PRIORITY, too short */
    {5, 2, 255, 0x80000007, 9, 9}, /* a reserved bit */
    {70000, 1, 5, 7, 0, -1},	   /* HEADERS */
};

static unsigned char stream[H2_WALK_PREFACE + 71000];
static size_t stream_len, begins[FRAMES];

static void
put(uint32_t number, int bytes)
{
	while (bytes-- > 0)
		stream[stream_len++] = (unsigned char)(number >> 8 * bytes);
}

static void
make(void)
{
	stream_len = 0;
	memset(stream, 0xff, sizeof(stream));
	stream_len = H2_WALK_PREFACE;
	for (int i = 0; i < FRAMES; i++) {
		begins[i] = stream_len;
		put(frames[i].len, 3);
		put(frames[i].type, 1);
		put(frames[i].flags, 1);
		put(frames[i].stream, 4);
		if (frames[i].len >= 4) {
			put(frames[i].depends, 4);
			stream_len += frames[i].len - 4;
		} else
			stream_len += frames[i].len;
	}
	assert_true(stream_len <= sizeof(stream));
}

/* In pieces of this size, in bytes. */
static void
walk(size_t piece)
{
	struct h2_walk wa = {0};
	struct h2_walk_frame wf;
	size_t from, len, at, begin;
	int n = 0;

	for (from = 0; from < stream_len; from += len) {
		len = piece < stream_len - from ? piece : stream_len - from;
		at = 0;
		while (h2_walk(&wa, stream + from, len, &at, &begin, &wf)) {
			assert_true(n < FRAMES);
			assert_int_equal(wf.wf_len, frames[n].len);
			assert_int_equal(wf.wf_type, frames[n].type);
			assert_int_equal(wf.wf_flags, frames[n].flags);
			assert_int_equal(
			    wf.wf_stream, frames[n].stream & INT32_MAX);
			assert_int_equal(wf.wf_depends, frames[n].says);
			assert_true(at <= len);
			assert_int_equal(
			    begin, begins[n] > from ? begins[n] - from : 0);
			n++;
		}
		assert_int_equal(at, len);
	}
	assert_int_equal(n, FRAMES);
}

TEST(frames_are_found_however_the_bytes_are_cut)
{
	make();
	for (size_t piece = 1; piece < 64; piece++)
		walk(piece);
	walk(4096);
	walk(stream_len);
}
