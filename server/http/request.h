/*
 * request: the parsed head of an HTTP/1 or HTTP/2 request.  http-parser parses an HTTP/1 head;
 * HTTP/2 sets the fields one by one.  The table in request.c lists the fields that are used.  Pure.
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
 * Parts of a request head that the log uses, as slices of the head; s_ptr is NULL if the field is
 * absent.  A text added here and to the table in request.c passes through all code that stores or
 * copies these texts.
 */
struct request_texts {
	struct str qt_line;
	struct str qt_host;
	struct str qt_agent;
	struct str qt_referer;
};

#define REQUEST_TEXTS (sizeof(struct request_texts) / sizeof(struct str))

/* Returns text number `i`; qt_line is number 0. */
static inline struct str *
request_text(struct request_texts *qt, size_t i)
{
	return (struct str *)(void *)((char *)qt + i * sizeof(struct str));
}

/* The parsed head.  Slices point into the connection's input and into rq_joined. */
struct request {
	enum method rq_method;
	bool rq_keepalive; /* true if the client allows keep-alive */
	bool rq_http10;	   /* true for HTTP/1.0: see head_write_end */
	bool rq_framed;	   /* true if frames end the response (HTTP/2) */
	uint64_t rq_body;  /* bytes of body after the head */
	bool rq_chunked;   /* true if the body is chunked; rq_body is then 0 */
	struct request_texts rq_texts;
	struct str rq_target;
	struct str rq_range;
	struct str rq_accept;
	struct str rq_origin;
	struct str rq_accept_encoding;
	struct str rq_want_digest;     /* Want-Repr-Digest */
	struct str rq_x_forwarded_for; /* X-Forwarded-For: see forwarded.h */
	struct str rq_forwarded;
	struct str rq_authorization; /* wiped when the exchange ends */
	struct str rq_preflight;     /* Access-Control-Request-Method */
	struct str rq_trace;	     /* Pagewise-Trace: see trace.h */
	struct str rq_expect; /* if present, the client may delay its body */
	struct conditional rq_pre;
	struct buf rq_joined; /* values joined from repeated fields */
};

/*
 * Parses a head that head_check accepted, without leading blank lines.  Returns 0 or a status to
 * refuse the request with: 400, 413 for a body over `max_body`, 501 for an unknown method.  Methods
 * other than GET, HEAD and OPTIONS become METHOD_OTHER; with a body over `max_body` they get 405.
 */
int request_parse(
    struct request *, struct str head, uint64_t max_body, struct buf_list *);

/*
 * Returns the number of a field that the server uses, or 0 for any other field.  Numbers are below
 * 256.  Case does not matter.
 */
unsigned request_field(struct str name);

/*
 * Sets a field to a value without surrounding white space; borrows the value.  `head_size` is the
 * size of the head in bytes.  Returns -1 if the joined values of a list are longer than a head of
 * that size allows, or if memory is short.
 */
int request_set(struct request *, unsigned field, struct str value,
    size_t head_size, struct buf_list *);

/*
 * Looks up a method by its name.  Returns 0, or 501 for an unknown method.  Sets METHOD_OTHER for
 * unknown methods and for those that files do not support.
 */
int request_method(struct str name, enum method *);

/* Returns 0, or the status for a body over `max_body`: 405 with METHOD_OTHER, else 413. */
int request_check_body(const struct request *, uint64_t max_body);

#endif
