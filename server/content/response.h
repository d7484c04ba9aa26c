/*
 * response: an answer on its way out: a head, and bytes from memory or from one
 * or more ranges of a file.  Belongs to an exchange.
 */
#ifndef SERVER_CONTENT_RESPONSE_H
#define SERVER_CONTENT_RESPONSE_H

#include "lib/pagewise.h"

#include "server/http/head_write.h"
#include "server/http/range.h"
#include "server/util/buf.h"
#include "server/util/str.h"

struct exchange;
struct cached_response;
struct settings;
struct autoindex_stream;
struct text;

/*
 * After answers, or parts of one, of more than this many bytes in one turn the
 * others come first.
 */
#define RESPONSE_SLICE ((uint64_t)64 << 10)

struct response {
	int rs_status;
	bool rs_close;	      /* the connection ends after this */
	struct buf rs_head;   /* head and a small body, or a part's head */
	size_t rs_head_len;   /* of the head proper, for the log */
	struct str rs_body;   /* in memory, of one of the next two */
	struct text *rs_text; /* one reference, or NULL */
	struct cached_response *rs_ready;   /* the same */
	struct autoindex_stream *rs_stream; /* its next blocks, or NULL */
	struct pw_file *rs_file;	    /* one reference, or NULL */
	const struct settings *rs_settings; /* how rs_file is sent */
	const char *rs_type;		    /* of a multipart's parts */
	uint64_t rs_boundary;
	struct range rs_one;
	struct range *rs_ranges; /* &rs_one, or malloc'ed for a multipart */
	size_t rs_nranges;
	size_t rs_piece; /* of it: what rs_send is sending */
	struct pw_send rs_send;
	uint64_t rs_sent; /* bytes of the pieces before */
};

/* Writes lines of rules, and the fields that depend on the request beside them. */
void response_rules(const struct exchange *, struct head_writer,
    const struct settings *, struct str lines);

/* Each makes the answer of the exchange's request ready to be sent. */
void response_error(struct exchange *, int status);
/* 429; when to come again. */
void response_too_many(struct exchange *, unsigned seconds);
void response_redirect(struct exchange *, int status, struct str location);
void response_options(struct exchange *);
/* A plain text that nobody may keep; it is copied. */
void response_text(struct exchange *, int status, struct str text);
/* Takes over the reference; name is for the media type and messages. */
void response_file(struct exchange *, struct pw_file *, const char *name,
    const struct settings *);
/* The ready part, and its bytes sent so far. */
void response_ready(struct exchange *, struct cached_response *, size_t sent);
/* True: by its conditions the request for the listing is answered without it, 304 or 412. */
bool response_condition(struct exchange *);
/* Takes over the reference. */
void response_listing(struct exchange *, struct text *);
/* Takes it over, with its first block; NULL: the body is not wanted (HEAD). */
void response_stream(struct exchange *, struct autoindex_stream *);

/*
 * With ex_head_apart: the first rs_head_len bytes of rs_head were sent by the owner.  Until then
 * they are no part of what response_step sends, nor counted.
 */
void response_head_given(struct exchange *);

/* As pw_send_step, for the answer as a whole. */
enum pw_send_status response_step(struct exchange *);

/*
 * After PW_SEND_ERROR: true if nothing had been sent yet and another answer,
 * that says so, has taken its place.  Logs what is the server's fault.
 */
bool response_replaced(struct exchange *);

/* Bytes handed to the kernel. */
static inline uint64_t
response_sent(const struct response *rs)
{
	return rs->rs_sent + rs->rs_send.snd_sent;
}

/* Frees what it holds.  Nothing may be pending. */
void response_finish(struct exchange *);

#endif
