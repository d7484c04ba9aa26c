/*
 * stream: one stream of a session: a request, its exchange, and the event that the stream waits
 * for.  For server/http2/ only.
 *
 *   state   owns                 waits for
 *   HEAD    sm_head              the rest of its head
 *   NEW     sm_head              a time slice
 *   LOOKUP  sm_ex                a disk: TIMER_DISK; memory that other streams use: TIMER_SEND
 *   FIRST   sm_ex                the first bytes of its body: TIMER_DISK, TIMER_PAUSE
 *   BODY    sm_ex                a time slice; the client's windows: TIMER_SEND; as FIRST
 *   READY   sm_ready             a time slice; the client's windows: TIMER_SEND
 *   LATE    sm_rest              the rest of the 503, after a disk timeout
 *   DONE    nothing              the rest of the request's body: TIMER_SEND
 *
 * sm_ex points into sm_head until BODY; then it is settled (exchange.h), and sm_head is freed.  A
 * stream that closes while sm_ex is pending stays until the completion arrives; its result is
 * dropped.
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
	struct cached_response *rd_response; /* NULL if none */
	size_t rd_at;			     /* bytes of the body sent */
	uint64_t rd_since;		     /* start time, microseconds */
	time_t rd_time;
	struct request_texts rd_texts; /* in sm_head, for the log; or absent */
};

struct h2_stream {
	struct sched_item sm_item; /* must be first; has the timer */
	struct pw_sink sm_sink;
	struct h2 *sm_session;
	struct exchange *sm_ex; /* NULL before it starts and after it ends */
	struct h2_head sm_head;
	struct h2_ready sm_ready;
	size_t sm_heavy;    /* bytes counted in h2_heads */
	size_t sm_kept;	    /* bytes counted in h2_kept */
	size_t sm_more;	    /* bytes counted in h2_more */
	struct buf sm_rest; /* bytes that are sent without an exchange */
	size_t sm_rest_at;
	int32_t sm_id;
	enum h2_state sm_state;
	bool sm_due;	      /* true while on h2_due */
	bool sm_looked;	      /* true once h2_stream_look ran after a wait */
	bool sm_closed;	      /* true once both sides have closed */
	bool sm_ours;	      /* true if the server reset the stream */
	bool sm_failed;	      /* true if nothing more can be sent */
	uint64_t sm_body;     /* bytes received of the request's body */
	uint64_t sm_sent;     /* bytes sent of the response's body */
	uint64_t sm_then;     /* sm_sent when TIMER_SEND was set */
	uint64_t sm_all_then; /* h2_sent when TIMER_SEND was set */

	/*
	 * sm_to is the destination of body bytes during h2_gather, else NULL.  sm_room bytes are
	 * free there, and sm_taken bytes were written in this call of h2_stream_read.
	 */
	char *sm_to;
	size_t sm_room;
	size_t sm_taken;

	TAILQ_ENTRY(h2_stream) sm_all;
	TAILQ_ENTRY(h2_stream) sm_due_entry;
};

/* Creates the stream of a new request.  Returns NULL if memory is short. */
struct h2_stream *h2_stream_create(struct h2 *, int32_t id);

/* Ends the head, and makes the stream due. */
void h2_stream_begin(struct h2_stream *);

/* Runs a stream that is due. */
void h2_stream_run(struct h2_stream *);

/* Returns true if a due stream holds something that h2_stream_look would use or release. */
static inline bool
h2_stream_may_look(const struct h2_stream *sm)
{
	return (sm->sm_state == H2_FIRST || sm->sm_state == H2_BODY) &&
	       !sm->sm_looked;
}

/*
 * Call while nothing can be sent.  Lets the stream use the resource that it waited for, such as
 * budget for a window (budget.h), because other streams may wait for that.  The stream stays due.
 */
void h2_stream_look(struct h2_stream *);

/*
 * Works as nghttp2_data_source_read_callback, but writes the payload into h2_out, behind its first
 * h2_len bytes and a gap for the frame head.
 */
ssize_t h2_stream_read(struct h2_stream *, size_t len, uint32_t *flags);

/*
 * h2_ready_begin, h2_ready_read and h2_ready_end send a response from the response cache (ready.c).
 * h2_ready_begin returns the `n` fields to submit if the whole head is known and its response is
 * cached, else NULL.  h2_ready_read works as h2_stream_read.  h2_ready_end counts and logs the
 * response, as far as it was sent.
 */
const nghttp2_nv *h2_ready_begin(struct h2_stream *, size_t *n, bool *body);
ssize_t h2_ready_read(struct h2_stream *, uint32_t *flags);
void h2_ready_end(struct h2_stream *);

/* Counts and discards a part of the request's body. */
void h2_stream_discard(struct h2_stream *, size_t len);

/*
 * Starts TIMER_SEND for the rest of the request.  Call when the whole response was sent but the
 * client has not ended the request.
 */
void h2_stream_responded(struct h2_stream *);

/* Call when both sides have closed the stream.  May free it. */
void h2_stream_closed(struct h2_stream *);

#endif
