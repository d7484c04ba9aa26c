/*
 * head: the heads of HTTP/2.  The fields of a request are checked by the rules of HTTP/1
 * (server/http/head.h and request.h) as they arrive, and those that the server uses are stored.
 * The head of a response is written as HTTP/1 text, from which h2_head_fields makes fields.  RFC
 * 9113, 8.2 and 8.3.
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

/* Text after the target in the first line of hh_text, as shown in the log. */
#define H2_HEAD_VERSION " HTTP/2.0\r\n"

enum h2_pseudo { H2_METHOD, H2_PATH, H2_AUTHORITY, H2_PSEUDOS };

/* A part of hh_raw: its offset and length in bytes. */
struct h2_part {
	uint32_t pt_at;
	uint32_t pt_len;
};

/*
 * A request head while its fields arrive.  All zero means a new one.  hh_text begins with the
 * request line; then follow the fields that the server uses, each as its number (request_field),
 * the length of its value, and the value.
 */
struct h2_head {
	struct buf hh_text;
	struct buf hh_raw; /* values of the pseudo-header fields */
	struct h2_part hh_pseudo[H2_PSEUDOS];
	size_t hh_size;	    /* bytes of the head in HTTP/1 */
	uint32_t hh_line;   /* bytes of the first line without CRLF */
	uint32_t hh_method; /* bytes of the method in the line */
	uint32_t hh_target; /* bytes of the target in the line */
	uint32_t hh_fields; /* number of fields so far */
	int hh_status;	    /* 0, 431 above a limit, or 400 for two hosts */
	bool hh_https;	    /* true if :scheme is https */
	bool hh_begun;	    /* true once hh_text has the first line */
	bool hh_priority;   /* true if the client sent a priority */
};

/* Adds a field.  libnghttp2 has checked name and value; names are in lower case. */
void h2_head_add(struct h2_head *, struct buf_list *, struct str name,
    struct str value, const struct head_limits *);

/* Ends the head.  Returns false if memory is short. */
bool h2_head_end(
    struct h2_head *, struct buf_list *, const struct head_limits *);

/*
 * Fills the request, whose slices point into the head.  Returns 0 or the status to refuse the
 * request with, as request_parse does.  With statuses other than 0, 405 and 413 the caller may use
 * only the line, the method, the target and Host; a malformed target or Host is not set.
 */
int h2_head_request(const struct h2_head *, const struct head_limits *,
    struct request *, uint64_t max_body, struct buf_list *);

void h2_head_release(struct h2_head *, struct buf_list *);

/*
 * Makes fields from the text of a response head.  The fields point into the text, in which names
 * become lower case.  Returns the number of fields, of which at most `max` were stored.
 */
size_t h2_head_fields(char *text, size_t len, nghttp2_nv *, size_t max);

#endif
