/*
 * frames: see frames.h.
 */
#include <err.h>
#include <string.h>

#include "frames.h"

#define END_STREAM_AND_HEADERS 0x05
#define LONGEST		       126 /* of a literal whose length is one byte */

size_t
frames_head(unsigned char *to, size_t len, enum frame_type type, unsigned flags,
    uint32_t stream)
{
	const unsigned char head[FRAMES_HEAD] = {(unsigned char)(len >> 16),
	    (unsigned char)(len >> 8), (unsigned char)len, (unsigned char)type,
	    (unsigned char)flags, (unsigned char)(stream >> 24),
	    (unsigned char)(stream >> 16), (unsigned char)(stream >> 8),
	    (unsigned char)stream};

	memcpy(to, head, sizeof(head));
	return sizeof(head);
}

/* A field whose name is in the static table (RFC 7541, 6.2.2). */
static size_t
literal(unsigned char *to, unsigned char name, const char *value)
{
	size_t len = strlen(value);

	if (len > LONGEST)
		errx(2, "%s: too long", value);
	to[0] = name;
	to[1] = (unsigned char)len;
	memcpy(to + 2, value, len);
	return 2 + len;
}

size_t
frames_get(unsigned char *to, const struct targets *ts, uint32_t stream)
{
	unsigned char *fields = to + FRAMES_HEAD;
	size_t n = 0;

	fields[n++] = 0x82;
	fields[n++] = ts->ts_tls ? 0x87 : 0x86;
	n += literal(fields + n, 0x01, ts->ts_authority);
	n += literal(fields + n, 0x04, ts->ts_list[0].t_path);
	return frames_head(
		   to, n, FRAME_HEADERS, END_STREAM_AND_HEADERS, stream) +
	       n;
}
