/*
 * stream: one stream of a session, with its request and its exchange.  For server/http2/ only.
 *
 *   state   owns       waits for: timer of the stream
 *   HEAD    sm_head    the rest of the request head
 *   NEW     sm_head    a time slice
 *   LOOKUP  sm_ex      a disk or a password check: TIMER_DISK; memory (H2_MORE): TIMER_SEND
 *   FIRST   sm_ex      the first bytes of the response body: TIMER_DISK, TIMER_PAUSE
 *   BODY    sm_ex      a time slice; the client's windows: TIMER_SEND; as in FIRST
 *   READY   sm_ready   a time slice; the client's windows: TIMER_SEND
 *   LATE    sm_rest    the client's windows, for a 503 after a disk timeout: TIMER_SEND
 *   DONE    nothing    the rest of the request's body: TIMER_SEND
 *
 * sm_ex points into sm_head until BODY.  In BODY the exchange may be settled (exchange.h), which
 * frees sm_head.  A stream that closes while sm_ex is pending stays until the completion arrives,
 * and discards the result.
 */
#ifndef SERVER_HTTP2_STREAM_H
#define SERVER_HTTP2_STREAM_H

#include "lib/pagewise.h"

#include "server/content/exchange.h"
#include "server/http2/head.h"
#include "server/http2/session.h"

enum h2_state {
	H2_HEAD,
	H2_NEW,
	H2_LOOKUP,
	H2_FIRST,
	H2_BODY,
	H2_READY,
	H2_LATE,
	H2_DONE,
};

/* A response from the response cache: ready.c. */
struct h2_ready {
	struct cached_response *rd_response; /* NULL if not from the cache */
	size_t rd_at;			     /* bytes of the body sent */
	uint64_t rd_since;		     /* start time, microseconds */
	time_t rd_time;
	struct request_texts rd_texts; /* texts for the log, in sm_head */
};

struct h2_stream {
	struct sched_item sm_item; /* must be first; has the timer */
	struct pw_sink sm_sink;
	struct h2 *sm_session;
	struct exchange *sm_ex; /* NULL before lookup and after response */
	struct h2_head sm_head;
	struct h2_ready sm_ready;
	size_t sm_heavy;    /* bytes counted in h2_heads */
	size_t sm_kept;	    /* bytes counted in h2_kept */
	size_t sm_more;	    /* bytes counted in h2_more */
	struct buf sm_rest; /* body of a 503 after a disk timeout */
	size_t sm_rest_at;
	int32_t sm_id;
	enum h2_state sm_state;
	bool sm_due; /* true if the stream is on h2_due */
	/* true if h2_stream_look ran since the disk wait */
	bool sm_looked;
	/* true if the response was sent before the request ended */
	bool sm_responded;
	bool sm_closed;	      /* true if both sides have closed the stream */
	bool sm_ours;	      /* true if the server reset the stream */
	bool sm_failed;	      /* true if the response cannot continue */
	uint64_t sm_body;     /* received bytes of the request's body */
	uint64_t sm_sent;     /* sent bytes of the response's body */
	uint64_t sm_then;     /* sm_sent when TIMER_SEND was set */
	uint64_t sm_all_then; /* h2_sent when TIMER_SEND was set */

	/*
	 * sm_to is the space for body bytes during h2_stream_read, else NULL.  sm_room bytes are
	 * free there; the current call of h2_stream_read has written sm_taken bytes.
	 */
	char *sm_to;
	size_t sm_room;
	size_t sm_taken;

	TAILQ_ENTRY(h2_stream) sm_all;
	TAILQ_ENTRY(h2_stream) sm_due_entry;
};

/* Creates the stream of a new request.  Returns NULL if memory is short. */
struct h2_stream *h2_stream_create(struct h2 *, int32_t id);

/* Ends the head, and puts the stream on h2_due. */
void h2_stream_begin(struct h2_stream *);

void h2_stream_run(struct h2_stream *);

/* Returns true if h2_stream_look would use or release a resource of a stream on h2_due. */
static inline bool
h2_stream_may_look(const struct h2_stream *sm)
{
	return (sm->sm_state == H2_FIRST || sm->sm_state == H2_BODY) &&
	       !sm->sm_looked;
}

/*
 * Lets the stream use the resource that it waited for, such as budget for a window (budget.h),
 * because other streams may wait for this resource.  Call while the socket is full.  The stream
 * stays on h2_due.
 */
void h2_stream_look(struct h2_stream *);

/*
 * Works as an nghttp2_data_source_read_callback, but writes the payload into h2_out, after h2_len
 * bytes and space for a frame head.
 */
ssize_t h2_stream_read(struct h2_stream *, size_t len, uint32_t *flags);

/*
 * These functions send a response from the response cache.  h2_ready_begin returns the `n` fields
 * of the response head if the request head is known and the cache has the response, else NULL.
 * *body is then true if the response has a body.  h2_ready_read works as h2_stream_read.
 * h2_ready_end counts and logs the response with the bytes sent so far.
 */
const nghttp2_nv *h2_ready_begin(struct h2_stream *, size_t *n, bool *body);
ssize_t h2_ready_read(struct h2_stream *, uint32_t *flags);
void h2_ready_end(struct h2_stream *);

/* Counts and discards bytes of the request's body. */
void h2_stream_discard(struct h2_stream *, size_t len);

/*
 * Starts TIMER_SEND for the rest of the request's body.  Call if the response was sent before the
 * request ended.
 */
void h2_stream_responded(struct h2_stream *);

/* Handles the close of the stream by both sides.  May free the stream. */
void h2_stream_closed(struct h2_stream *);

#endif
