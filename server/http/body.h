/*
 * body: where the body of a request ends.  Its data is of no use here, so the caller discards it;
 * what must be right is where the next request begins.  Pure.
 *
 * The chunked transfer coding is read to the letter of RFC 9112, 7.1:
 * - a size is hexadecimal digits alone, and a line ends in CRLF
 * - an extension is a token, or a token, '=' and a token or quoted string; spaces and tabs may
 *   stand around ';' and '=' only
 * - data is followed by CRLF
 * - a trailer field is what a field of a head is
 *
 * The bound is BODY_DATA bytes of data, and BODY_EXTRA bytes of extensions, leading zeros of
 * sizes and trailer fields.
 */
#ifndef SERVER_HTTP_BODY_H
#define SERVER_HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BODY_DATA  65536
#define BODY_EXTRA 16384

/* Kept for each connection, hence small.  All zero: no body. */
struct body {
	uint32_t bd_left;  /* bytes of data to come, of the body or chunk */
	uint32_t bd_data;  /* bytes of data in the chunks so far */
	uint16_t bd_extra; /* bytes that count for BODY_EXTRA */
	uint8_t bd_state;  /* private to body.c; 0: the body has ended */
};

enum body_status {
	BODY_END,  /* what follows is the next request */
	BODY_MORE, /* all bytes belong to the body */
	BODY_BAD, /* not RFC 9112, or above a bound: nothing behind it may be read */
};

/* Returns a body of Content-Length bytes, BODY_DATA at most. */
struct body body_sized(uint64_t length);

struct body body_chunked(void);

static inline bool
body_ended(const struct body *bd)
{
	return bd->bd_state == 0;
}

/*
 * Reads the next len bytes received.  Sets *used to the bytes that belong to the body.  The
 * result does not depend on how the bytes were cut into calls.
 */
enum body_status body_skip(
    struct body *, const char *buf, size_t len, size_t *used);

#endif
