/*
 * response: a response that is being sent: a head, then bytes from memory or from ranges of a file.
 * Belongs to an exchange.
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
 * Length of a time slice in bytes.  When a connection has sent more, in one or several responses,
 * the other connections run first.
 */
#define RESPONSE_SLICE ((uint64_t)64 << 10)

struct response {
	int rs_status;
	bool rs_close; /* true if the connection must close */
	/* true if the file may have just been written to (rp_young) */
	bool rs_young;
	struct buf rs_head;   /* head and small body, or the head of a part */
	size_t rs_head_len;   /* bytes of the head, for the log */
	size_t rs_fields_len; /* bytes of the head before Connection */
	struct str rs_body;   /* body in rs_text, rs_ready or conf */
	struct text *rs_text; /* one reference, or NULL */
	struct cached_response *rs_ready;   /* one reference, or NULL */
	struct autoindex_stream *rs_stream; /* source of blocks, or NULL */
	struct pw_file *rs_file;	    /* one reference, or NULL */
	const struct settings *rs_settings; /* settings for this response */
	const char *rs_type;		    /* media type of the parts */
	uint64_t rs_boundary;
	struct range rs_one;
	struct range *rs_ranges; /* &rs_one, or malloc'ed for several ranges */
	size_t rs_nranges;
	size_t rs_piece; /* number of the current piece, from 0 */
	struct pw_send rs_send;
	uint64_t rs_sent; /* bytes sent of earlier pieces */
};

/* Writes `lines`, the configured fields, then the fields that depend on the request. */
void response_rules(const struct exchange *, struct head_writer,
    const struct settings *, struct str lines);

/* The following functions prepare the response of the exchange for response_step. */
void response_error(struct exchange *, int status);
/* Prepares a 429.  `seconds` is the value of Retry-After. */
void response_too_many(struct exchange *, unsigned seconds);
void response_redirect(struct exchange *, int status, struct str location);
void response_options(struct exchange *);
/* Prepares a copy of a plain text, with Cache-Control: no-store. */
void response_text(struct exchange *, int status, struct str text);
/*
 * Prepares a file.  Takes ownership of the reference to the file.  `name` determines the media type
 * and appears in messages.
 */
void response_file(struct exchange *, struct pw_file *, const char *name,
    const struct settings *);
/* Prepares a cached response of which `sent` bytes were already sent. */
void response_ready(struct exchange *, struct cached_response *, size_t sent);
/*
 * Evaluates the conditions of a request for a listing.  Returns true if the response is ready: 304
 * or 412.
 */
bool response_condition(struct exchange *);
/* Prepares a listing.  Takes ownership of the reference to its text. */
void response_listing(struct exchange *, struct text *);
/*
 * Prepares a streamed listing.  Takes ownership of the stream; its first block must be ready.  The
 * stream is NULL for HEAD.
 */
void response_stream(struct exchange *, struct autoindex_stream *);

/*
 * Counts the head as sent.  If ex_head_apart is set, call this when the owner has sent the head
 * (rs_head_len bytes); response_step never sends it.
 */
void response_head_given(struct exchange *);

/* Returns the number of the client whose exchange has this transmission, for plc_client. */
unsigned response_client(void *arg, const struct pw_send *);

/*
 * Sends the next bytes.  Returns as pw_send_step does, but PW_SEND_DONE only at the end of the
 * whole response.
 */
enum pw_send_status response_step(struct exchange *);

/*
 * Tries to replace a failed response by an error response.  Returns false if bytes were sent or
 * encrypted, if the client has left, or if the response is already a 5xx.  Logs the error, unless
 * the client has left or the device's queue is full (-EAGAIN).  Call after PW_SEND_ERROR.
 */
bool response_replaced(struct exchange *);

static inline uint64_t
response_sent(const struct response *rs)
{
	return rs->rs_sent + rs->rs_send.snd_sent;
}

/* Releases the memory and the references of the response.  No completion may be pending. */
void response_finish(struct exchange *);

#endif
