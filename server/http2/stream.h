/*
 * stream: one of a session: a request, its exchange, and what it waits for.  For server/http2/
 * only.
 *
 *   state   what it has          what it waits for
 *   HEAD    sm_head              the rest of its head
 *   NEW     sm_head              its turn
 *   LOOKUP  sm_ex                a disk: TIMER_DISK; memory that other streams have: TIMER_SEND
 *   FIRST   sm_ex                the first bytes of its body: TIMER_DISK, TIMER_PAUSE
 *   BODY    sm_ex                a turn; room in the client's windows: TIMER_SEND; the same as FIRST
 *   READY   sm_ready             a turn; room in the client's windows: TIMER_SEND
 *   LATE    sm_rest              the disk has not answered: the rest of the 503
 *   DONE    nothing              the rest of the request's body: TIMER_SEND
 *
 * sm_ex points into sm_head until BODY; then it is settled (exchange.h), and there is no sm_head.
 * While sm_ex is pending and the stream has ended, it stays until the completion, for nobody.
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

/* An answer that is ready in memory: ready.c. */
struct h2_ready {
	struct cached_response *rd_response; /* NULL: none */
	size_t rd_at;	   /* bytes of its body that were sent */
	uint64_t rd_since; /* microseconds */
	time_t rd_time;
	struct request_texts rd_texts; /* in sm_head, for the log; or absent */
};

struct h2_stream {
	struct sched_item sm_item; /* first: its timers */
	struct pw_sink sm_sink;
	struct h2 *sm_session;
	struct exchange *sm_ex; /* NULL: none, or it has ended */
	struct h2_head sm_head;
	struct h2_ready sm_ready;
	size_t sm_heavy;    /* its part of h2_heads */
	size_t sm_kept;	    /* of h2_kept */
	size_t sm_more;	    /* of h2_more */
	struct buf sm_rest; /* what is sent without an exchange */
	size_t sm_rest_at;
	int32_t sm_id;
	enum h2_state sm_state;
	bool sm_due;	      /* on h2_due */
	bool sm_looked;	      /* h2_stream_look was called since it waited */
	bool sm_closed;	      /* neither side has it any more */
	bool sm_ours;	      /* reset by us */
	bool sm_failed;	      /* no more can be sent */
	uint64_t sm_body;     /* bytes of the request's body that have come */
	uint64_t sm_sent;     /* bytes of its body ... */
	uint64_t sm_then;     /* ... when TIMER_SEND was set */
	uint64_t sm_all_then; /* and of the session */

	/* Where its bytes go, in h2_gather. */
	char *sm_to;
	size_t sm_room;
	size_t sm_taken;

	TAILQ_ENTRY(h2_stream) sm_all;
	TAILQ_ENTRY(h2_stream) sm_due_entry;
};

/* A request begins.  NULL: no memory. */
struct h2_stream *h2_stream_create(struct h2 *, int32_t id);

/* Its head is complete: it is due. */
void h2_stream_begin(struct h2_stream *);

/* It is due: goes on with it. */
void h2_stream_run(struct h2_stream *);

/* Returns true if a stream that is due holds what h2_stream_look would use or give back. */
static inline bool
h2_stream_may_look(const struct h2_stream *sm)
{
	return (sm->sm_state == H2_FIRST || sm->sm_state == H2_BODY) &&
	       !sm->sm_looked;
}

/*
 * Nothing can be sent.  Has what the stream waited for used, such as room for a window (budget.h):
 * others would wait for it.  The stream stays due.
 */
void h2_stream_look(struct h2_stream *);

/* As nghttp2_data_source_read_callback, without the copy: there is room behind h2_len. */
ssize_t h2_stream_read(struct h2_stream *, size_t len, uint32_t *flags);

/*
 * ready.c.  Its head is complete and known, and so is its answer, whose fields are to be submitted;
 * NULL: they are not.  Then as h2_stream_read; and it is counted and logged, as far as it was
 * sent.
 */
const nghttp2_nv *h2_ready_begin(struct h2_stream *, size_t *n, bool *body);
ssize_t h2_ready_read(struct h2_stream *, uint32_t *flags);
void h2_ready_end(struct h2_stream *);

/* A part of the request's body has come. */
void h2_stream_discard(struct h2_stream *, size_t len);

/* All of its answer is on the way, and the client has not ended the request. */
void h2_stream_responded(struct h2_stream *);

/* Neither side has it any more.  It may be gone then. */
void h2_stream_closed(struct h2_stream *);

#endif
