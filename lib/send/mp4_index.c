/*
 * mp4_index: see mp4_index.h.
 */
#include "lib/send/mp4_index.h"

#include <stdint.h>
#include <string.h>

#define BOXES 16 /* maximum number of boxes up to the media data */

static uint64_t
mp4_index_number(const unsigned char *p, int bytes)
{
	uint64_t n = 0;

	while (bytes-- > 0)
		n = n << 8 | *p++;
	return n;
}

static bool
mp4_index_is(const unsigned char *header, const char *type)
{
	return memcmp(header + 4, type, 4) == 0;
}

/* Returns true if the box may be the first one of a file. */
static bool
mp4_index_begins(const unsigned char *header)
{
	static const char *const types[] = {
	    "ftyp", "mdat", "wide", "free", "skip", "pnot"};
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (mp4_index_is(header, types[i]))
			return true;
	return false;
}

/* Returns the end of the box at `at`, or -1 if no byte of the file is behind the box, or its length is wrong. */
static off_t
mp4_index_end(const unsigned char *header, off_t at, off_t size)
{
	uint64_t len = mp4_index_number(header, 4), least = 8;

	if (len == 1) {
		len = mp4_index_number(header + 8, 8);
		least = 16;
	}
	/* A length of 0 is that of a box which ends with the file. */
	return len < least || len >= (uint64_t)(size - at) ? -1
							   : at + (off_t)len;
}

off_t
mp4_index_find(mp4_read_f *read, void *arg, off_t known, off_t size)
{
	unsigned char header[MP4_HEADER];
	off_t at = 0, end;
	int i;

	if (known > size)
		known = size;
	for (i = 0; i < BOXES && at <= known - MP4_HEADER; i++, at = end) {
		if (!read(arg, at, header) ||
		    (i == 0 && !mp4_index_begins(header)) ||
		    mp4_index_is(header, "moov") ||
		    mp4_index_is(header, "moof"))
			return -1;
		end = mp4_index_end(header, at, size);
		if (end < 0)
			return -1;
		if (mp4_index_is(header, "mdat") && end > known - MP4_HEADER)
			return end;
	}
	return -1;
}
