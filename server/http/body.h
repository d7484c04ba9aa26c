/*
 * body: finds the end of a request's body.  The caller discards the data, and needs only the start
 * of the next request.  Pure.
 *
 * A chunked body must follow RFC 9112, 7.1, exactly:
 * - a size consists of hexadecimal digits, and each line ends in CRLF
 * - an extension is a token, optionally followed by '=' and a token or quoted string; only ';' and
 *   '=' may have spaces and tabs around them
 * - CRLF follows the data
 * - a trailer field has the syntax of a header field
 *
 * A body may have at most BODY_DATA bytes of data.  Extensions, leading zeros of sizes and trailer
 * fields may have at most BODY_EXTRA bytes together.
 */
#ifndef SERVER_HTTP_BODY_H
#define SERVER_HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BODY_DATA  65536
#define BODY_EXTRA 16384

/*
 * State of one body.  The struct is small, because each connection has one.  All zero if there is
 * no body.
 */
struct body {
	uint32_t bd_left;  /* remaining bytes of the body or chunk */
	uint32_t bd_data;  /* data bytes in the chunks so far */
	uint16_t bd_extra; /* bytes that count towards BODY_EXTRA */
	uint8_t bd_state;  /* private to body.c; 0 after the body */
};

enum body_status {
	BODY_END,  /* the next byte belongs to the next request */
	BODY_MORE, /* the body continues after these bytes */
	BODY_BAD,  /* malformed, or above a limit; read no further */
};

/* Returns the state at the start of a body of `length` bytes, at most BODY_DATA. */
struct body body_sized(uint64_t length);

struct body body_chunked(void);

static inline bool
body_ended(const struct body *bd)
{
	return bd->bd_state == 0;
}

/*
 * Reads the next `len` bytes received.  Sets *used to the number of these bytes that belong to the
 * body.  How the bytes are split over calls does not change the result.
 */
enum body_status body_skip(
    struct body *, const char *buf, size_t len, size_t *used);

#endif
