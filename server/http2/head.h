/*
 * head: reads request heads and writes response heads of HTTP/2 (RFC 9113, 8.2 and 8.3).  Checks
 * each request field when it arrives, by the rules of HTTP/1 (server/http/head.h and request.h),
 * and stores the fields that the server uses.  h2_head_fields converts a response head, written as
 * HTTP/1 text, to fields.
 */
#ifndef SERVER_HTTP2_HEAD_H
#define SERVER_HTTP2_HEAD_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/http/head.h"
#include "server/http/request.h"
#include "server/util/buf.h"
#include "server/util/str.h"

/* Text after the target in the first line of hh_text, for the log. */
#define H2_HEAD_VERSION " HTTP/2.0\r\n"

enum h2_pseudo { H2_METHOD, H2_PATH, H2_AUTHORITY, H2_PSEUDOS };

/* Part of hh_raw: offset and length in bytes. */
struct h2_part {
	uint32_t pt_at;
	uint32_t pt_len;
};

/*
 * A request head, filled while its fields arrive.  All zero at the start.  hh_text has the request
 * line and then the fields that the server uses.  A field is stored as its number (request_field),
 * the length of its value, and the value.
 */
struct h2_head {
	struct buf hh_text;
	struct buf hh_raw; /* values of the pseudo-header fields */
	struct h2_part hh_pseudo[H2_PSEUDOS];
	size_t hh_size;	    /* bytes that the head has in HTTP/1 */
	uint32_t hh_line;   /* bytes of the first line without CRLF */
	uint32_t hh_method; /* bytes of the method in the line */
	uint32_t hh_target; /* bytes of the target in the line */
	uint32_t hh_fields; /* number of fields so far */
	int hh_status;	    /* 0, 431 above a limit, or 400 for two hosts */
	bool hh_https;	    /* true if :scheme is https */
	bool hh_begun;	    /* true if hh_text has the first line */
	bool hh_priority;   /* true if the client sent a priority */
};

/* Adds a field.  libnghttp2 has already checked name and value; names are in lower case. */
void h2_head_add(struct h2_head *, struct buf_list *, struct str name,
    struct str value, const struct head_limits *);

/* Ends the head.  Returns false if memory is short. */
bool h2_head_end(
    struct h2_head *, struct buf_list *, const struct head_limits *);

/*
 * Fills the request; its slices point into the head.  Returns 0, or the status to refuse the
 * request with, as request_parse does.  If the status is not 0, 405 or 413, only the line, the
 * method, the target and Host may be used; a malformed target or Host is then absent.
 */
int h2_head_request(const struct h2_head *, const struct head_limits *,
    struct request *, uint64_t max_body, struct buf_list *);

void h2_head_release(struct h2_head *, struct buf_list *);

/*
 * Converts the text of a response head to fields.  The fields point into the text; their names are
 * changed to lower case there.  Returns the number of fields, and stores at most `max` of them.
 */
size_t h2_head_fields(char *text, size_t len, nghttp2_nv *, size_t max);

#endif
