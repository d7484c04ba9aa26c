/*
 * body: finds the end of a request's body.  The caller discards the data, so only the start of the
 * next request must be right.  Pure.
 *
 * The chunked transfer coding is read to the letter of RFC 9112, 7.1:
 * - a size is hexadecimal digits alone, and a line ends in CRLF
 * - an extension is a token, or a token, '=' and a token or quoted string; spaces and tabs may
 *   stand around ';' and '=' only
 * - data is followed by CRLF
 * - a trailer field has the syntax of a header field
 *
 * A body may have at most BODY_DATA bytes of data, and BODY_EXTRA bytes of extensions, leading
 * zeros of sizes and trailer fields.
 */
#ifndef SERVER_HTTP_BODY_H
#define SERVER_HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BODY_DATA  65536
#define BODY_EXTRA 16384

/* The state of one body; small, because each connection has one.  All zero means no body. */
struct body {
	uint32_t bd_left;  /* bytes of the body or chunk still to come */
	uint32_t bd_data;  /* bytes of data in the chunks so far */
	uint16_t bd_extra; /* bytes that count towards BODY_EXTRA */
	uint8_t bd_state;  /* private to body.c; 0 once the body has ended */
};

enum body_status {
	BODY_END,  /* the next request follows */
	BODY_MORE, /* all bytes belong to the body, which goes on */
	BODY_BAD,  /* against RFC 9112, or above a limit; read no further */
};

/* Returns a body of `length` bytes, the value of Content-Length, which is at most BODY_DATA. */
struct body body_sized(uint64_t length);

struct body body_chunked(void);

static inline bool
body_ended(const struct body *bd)
{
	return bd->bd_state == 0;
}

/*
 * Reads the next `len` bytes received.  Sets *used to the number of bytes that belong to the body.
 * The result does not depend on how the bytes are split over calls.
 */
enum body_status body_skip(
    struct body *, const char *buf, size_t len, size_t *used);

#endif
