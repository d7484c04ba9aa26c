/*
 * stream_priv: declarations that the files of a stream share: stream.c (request and response),
 * stream_frames.c, stream_time.c and, below these, stream_slice.c.
 */
#ifndef SERVER_HTTP2_STREAM_PRIV_H
#define SERVER_HTTP2_STREAM_PRIV_H

#include "server/http2/stream.h"
#include "server/worker/worker.h"

static inline struct worker *
h2_stream_worker(const struct h2_stream *sm)
{
	return sm->sm_session->h2_owner.ho_worker;
}

static inline struct buf_list *
h2_stream_bufs(const struct h2_stream *sm)
{
	return &h2_stream_worker(sm)->wk_service.svc_bufs;
}

/* ---------------------------------------------------------- stream_slice.c */

void h2_stream_timer(struct h2_stream *, enum timer);

/* Requests a time slice for the session, unless the session is stopped. */
void h2_stream_ask_slice(const struct h2_stream *);

/*
 * h2_stream_set_due adds the stream to h2_due and requests a time slice; h2_stream_unset_due
 * removes it.
 */
void h2_stream_set_due(struct h2_stream *);
void h2_stream_unset_due(struct h2_stream *);

/*
 * Marks the stream as waiting for a completion: counts it in h2_pending, starts TIMER_DISK and
 * calls exchange_wait.  Does not block.
 */
void h2_stream_await_disk(struct h2_stream *);

/* Returns false if the rate limit requires a pause, and starts that pause. */
bool h2_stream_may_go_on(struct h2_stream *);

/*
 * Starts TIMER_SEND unless a timer runs.  Otherwise a client could keep the stream's memory in use
 * by closing its window.
 */
void h2_stream_watch(struct h2_stream *);

/* Releases the stream's part of H2_MORE, and wakes a stream that waits for memory. */
void h2_stream_give_more_back(struct h2_stream *);

/* Frees an exchange whose response was passed to libnghttp2 completely. */
void h2_stream_end_exchange(struct h2_stream *);

/* Resets the stream, so that the client does not mistake a partial response for a whole one. */
void h2_stream_give_up(struct h2_stream *, uint32_t error);

/* -------------------------------------------------- tables of other files */

extern const struct pw_sink_ops h2_stream_sink_ops;
extern const struct sched_ops h2_stream_sched_ops;

#endif
