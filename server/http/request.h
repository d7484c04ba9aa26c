/*
 * request: what a request's head asks for, whatever protocol it came by.  HTTP/1's is taken apart by
 * http-parser; HTTP/2 sets the fields one by one.  The table in request.c has the fields that are
 * used.  Pure.
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
 * What the log has of a request's head: slices of it; those of absent fields have no pointer.  A text
 * that is added here and to the table in request.c goes through all that keeps or copies them.
 */
struct request_texts {
	struct str qt_line;
	struct str qt_host;
	struct str qt_agent;
	struct str qt_referer;
};

#define REQUEST_TEXTS (sizeof(struct request_texts) / sizeof(struct str))

/* Returns the text with this number; qt_line is the first. */
static inline struct str *
request_text(struct request_texts *qt, size_t i)
{
	return (struct str *)(void *)((char *)qt + i * sizeof(struct str));
}

/* Slices point into the connection's input and into rq_joined. */
struct request {
	enum method rq_method;
	bool rq_keepalive; /* the client would keep the connection */
	bool rq_http10;	   /* so keep-alive has to be said */
	bool rq_framed;	   /* HTTP/2: its frames say where the answer ends */
	uint64_t rq_body;  /* bytes of body that follow the head */
	bool rq_chunked;   /* a body in chunks follows; rq_body is 0 */
	struct request_texts rq_texts;
	struct str rq_target;
	struct str rq_range;
	struct str rq_accept;
	struct str rq_origin;
	struct str rq_accept_encoding;
	struct str rq_want_digest;     /* Want-Repr-Digest */
	struct str rq_x_forwarded_for; /* this and the next: see forwarded.h */
	struct str rq_forwarded;
	struct str rq_authorization; /* wiped when the exchange ends */
	struct str rq_preflight;     /* Access-Control-Request-Method */
	struct str rq_expect; /* present: it may wait before it sends a body */
	struct conditional rq_pre;
	struct buf rq_joined; /* lists that came in more than one field */
};

/*
 * head is what head_check accepted, without leading blank lines.  Returns 0 or
 * a status to refuse it with: 400, 413 for a body over max_body, 501 for an
 * unknown method.  Other methods than the three are METHOD_OTHER, and 405 with
 * such a body.
 */
int request_parse(
    struct request *, struct str head, uint64_t max_body, struct buf_list *);

/* Returns the number of a field that is used, below 256, or 0.  Case does not matter. */
unsigned request_field(struct str name);

/*
 * Sets a field to a value without white space around it, which stays where it is.  head_size: bytes
 * of the head.  Returns -1 if lists that came in several fields are longer than such a head allows,
 * or if memory is short.
 */
int request_set(struct request *, unsigned field, struct str value,
    size_t head_size, struct buf_list *);

/* Returns 0, or 501 for an unknown method, which is METHOD_OTHER as those are that files do not have. */
int request_method(struct str name, enum method *);

/* Returns 0, or the status for a body over max_body: 413, or 405 with METHOD_OTHER. */
int request_check_body(const struct request *, uint64_t max_body);

#endif
