/*
 * request: the parsed head of an HTTP/1 or HTTP/2 request.  http-parser parses an HTTP/1 head; the
 * HTTP/2 code sets each field itself.  The table in request.c lists the fields that the server
 * uses.  Pure.
 */
#ifndef SERVER_HTTP_REQUEST_H
#define SERVER_HTTP_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "server/http/conditional.h"
#include "server/http/target.h"
#include "server/util/buf.h"
#include "server/util/str.h"

enum method { METHOD_GET, METHOD_HEAD, METHOD_OPTIONS, METHOD_OTHER };

/*
 * Parts of a request head that the log uses, as slices of the head.  s_ptr is NULL if a field is
 * absent.  A part added here and to the table in request.c passes through all code that copies
 * these parts.
 */
struct request_texts {
	struct str qt_line;
	struct str qt_host;
	struct str qt_agent;
	struct str qt_referer;
};

#define REQUEST_TEXTS (sizeof(struct request_texts) / sizeof(struct str))

/* Returns part number `i`; qt_line has number 0. */
static inline struct str *
request_text(struct request_texts *qt, size_t i)
{
	return (struct str *)(void *)((char *)qt + i * sizeof(struct str));
}

/* A parsed head.  Slices point into the input of the connection or into rq_joined. */
struct request {
	enum method rq_method;
	bool rq_keepalive; /* true if the client allows keep-alive */
	bool rq_http10;	   /* true for HTTP/1.0: see head_write_end */
	bool rq_framed;	   /* true if frames delimit the response (HTTP/2) */
	uint64_t rq_body;  /* bytes of the body after the head */
	bool rq_chunked;   /* true if the body is chunked; rq_body is 0 */
	struct request_texts rq_texts;
	struct str rq_target;
	struct str rq_range;
	struct str rq_accept;
	struct str rq_origin;
	struct str rq_accept_encoding;
	struct str rq_want_digest;     /* Want-Repr-Digest */
	struct str rq_x_forwarded_for; /* X-Forwarded-For: see forwarded.h */
	struct str rq_forwarded;
	/* credentials, wiped at the end of the exchange */
	struct str rq_authorization;
	struct str rq_preflight; /* Access-Control-Request-Method */
	struct str rq_trace;	 /* Pagewise-Trace: see trace.h */
	struct str rq_expect;	 /* Expect; the client may delay the body */
	struct conditional rq_pre;
	struct buf rq_joined; /* joined values of repeated fields */
};

/*
 * Parses a head that head_check accepted, without leading blank lines.  Returns 0, or the status to
 * refuse the request with: 400, 413 for a body above `max_body`, 501 for an unknown method.
 * Methods other than GET, HEAD and OPTIONS become METHOD_OTHER; with a body above `max_body` such a
 * method gets 405.
 */
int request_parse(
    struct request *, struct str head, uint64_t max_body, struct buf_list *);

/*
 * Returns the number of a field that the server uses, at most 255, for request_set.  Returns 0 for
 * any other field.  Ignores the case of the name.
 */
unsigned request_field(struct str name);

/*
 * Sets a field to a value without surrounding white space; borrows the value.  `head_size` is the
 * number of bytes of the head.  Returns -1 if memory is short, or if the joined values of a list
 * are too long for a head of this size.
 */
int request_set(struct request *, unsigned field, struct str value,
    size_t head_size, struct buf_list *);

/*
 * Stores the method with this name.  Stores METHOD_OTHER for methods other than GET, HEAD and
 * OPTIONS.  Returns 0, or 501 for an unknown method.
 */
int request_method(struct str name, enum method *);

/* Returns 0, or the status for a body above `max_body`: 405 with METHOD_OTHER, else 413. */
int request_check_body(const struct request *, uint64_t max_body);

#endif
