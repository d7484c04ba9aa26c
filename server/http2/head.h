/*
 * head: the heads of HTTP/2.  A request's fields are judged by the rules of HTTP/1 (server/http/head.h
 * and request.h) as they come, and those that the server uses are stored.  Of the head of a response,
 * which is written as text of HTTP/1, makes fields.  RFC 9113, 8.2 and 8.3.
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

/* What follows the target in the first line of hh_text, which the log shows. */
#define H2_HEAD_VERSION " HTTP/2.0\r\n"

enum h2_pseudo { H2_METHOD, H2_PATH, H2_AUTHORITY, H2_PSEUDOS };

/* Bytes of hh_raw. */
struct h2_part {
	uint32_t pt_at;
	uint32_t pt_len;
};

/*
 * A request's head while its fields come.  All zero: a new one.  hh_text begins with the request line;
 * then come, one after the other, the fields that the server uses, each as its number
 * (request_field), the length of its value, and this.
 */
struct h2_head {
	struct buf hh_text;
	struct buf hh_raw; /* values of the pseudo-fields */
	struct h2_part hh_pseudo[H2_PSEUDOS];
	size_t hh_size;	    /* bytes that the head has in HTTP/1 */
	uint32_t hh_line;   /* bytes of the first line, without CRLF */
	uint32_t hh_method; /* bytes of the method in it */
	uint32_t hh_target; /* bytes of the target in it */
	uint32_t hh_fields; /* fields so far */
	int hh_status;	    /* 431: above a limit; 400: two hosts; 0 */
	bool hh_https;	    /* :scheme */
	bool hh_begun;	    /* the first line stands in the text */
	bool hh_priority;   /* the client has said how urgent it is */
};

/* Adds a field.  libnghttp2 has checked name and value; names are in lower case. */
void h2_head_add(struct h2_head *, struct buf_list *, struct str name,
    struct str value, const struct head_limits *);

/* Ends the head.  Returns false if memory is short. */
bool h2_head_end(
    struct h2_head *, struct buf_list *, const struct head_limits *);

/*
 * Fills the request, whose slices point into the head.  Returns 0 or the status to refuse it with, as
 * request_parse.  With other statuses than 405 and 413 only the line, the method, the target and Host
 * are to be used; a malformed one is not set.
 */
int h2_head_request(const struct h2_head *, const struct head_limits *,
    struct request *, uint64_t max_body, struct buf_list *);

void h2_head_release(struct h2_head *, struct buf_list *);

/*
 * Makes the fields of a response's head; they point into its text, whose names become lower case.
 * Returns their number: if that is more than max, some were left out.
 */
size_t h2_head_fields(char *text, size_t len, nghttp2_nv *, size_t max);

#endif
