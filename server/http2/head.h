/*
 * head: between the heads of HTTP/2 and those of HTTP/1, which the rest of the server reads and
 * writes: a request is checked and taken apart as one of HTTP/1, an answer's head is written as one
 * of HTTP/1, and what only HTTP/1 has is left out.  RFC 9113, 8.2 and 8.3.
 */
#ifndef SERVER_HTTP2_HEAD_H
#define SERVER_HTTP2_HEAD_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/util/buf.h"
#include "server/util/str.h"

#define H2_HEAD_VERSION "HTTP/2.0" /* as long as HTTP/1.1: in the log */

/* A request's head while its fields come.  All zero: a new one. */
struct h2_head {
	struct buf hh_text; /* its head as HTTP/1 has it */
	struct buf hh_raw;  /* of the pseudo-fields, in the order of these */
	size_t hh_method;
	size_t hh_path;
	size_t hh_authority;
	bool hh_https;	   /* :scheme */
	bool hh_begun;	   /* its first line stands in the text */
	bool hh_over;	   /* longer than allowed: the rest is missing */
	bool hh_priority;  /* the client has said how urgent it is */
	bool hh_two_hosts; /* Host and :authority name two origins */
};

/* One more field; most: bytes of the text.  Names are in lower case. */
void h2_head_add(struct h2_head *, struct buf_list *, struct str name,
    struct str value, size_t most);

/* There are no more.  False: no memory. */
bool h2_head_end(struct h2_head *, struct buf_list *);

/* In the first line: what the log shows. */
void h2_head_mark(struct h2_head *, size_t line);

void h2_head_release(struct h2_head *, struct buf_list *);

/*
 * The fields of an answer's head; they point into its text, whose names become lower case.  Returns how
 * many there are: if that is more than max, some were left out.
 */
size_t h2_head_fields(char *text, size_t len, nghttp2_nv *, size_t max);

#endif
