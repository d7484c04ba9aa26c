/*
 * session: HTTP/2 on one connection (RFC 9113): frames in, frames out, and its streams, each with
 * an exchange of its own.  A session has no socket: the caller passes received bytes in, and
 * fetches bytes to send.  libnghttp2 handles the frames, HPACK, the windows and the order of
 * streams (RFC 9218).  Runs on the worker's thread.
 *
 *	h2_create
 *	h2_receive, when bytes were received
 *	h2_run, then h2_gather until it returns 0, in each time slice that ho_wake requests
 *	h2_is_over: true once everything was sent
 *	h2_stop, and h2_destroy once h2_waits is false
 */
#ifndef SERVER_HTTP2_SESSION_H
#define SERVER_HTTP2_SESSION_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "server/content/header_cache.h"
#include "server/http2/flood.h"
#include "server/http2/walk.h"
#include "server/worker/sched.h"

struct h2;
struct h2_stream;
struct sockaddr;
struct tls;
struct token_bucket;
struct worker;

/* Bytes of DATA in a frame.  Frame head and DATA together fill one TLS record. */
#define H2_FRAME_HEAD 9
#define H2_FRAME      16384
#define H2_DATA	      (H2_FRAME - H2_FRAME_HEAD)

/*
 * Limits of a connection's memory, in bytes.  Each stream may hold H2_LIGHT bytes of its request
 * uncounted.  Above that, all streams together may hold H2_HEADS and one head until their responses
 * are chosen, then H2_KEPT for the log.  Response heads that wait for the socket may use H2_QUEUED
 * and one head.  Large listings and responses of many ranges share H2_MORE; a response that needs
 * more than is left waits, or is sent as a whole.
 */
#define H2_LIGHT  1024
#define H2_HEADS  8192
#define H2_KEPT	  8192
#define H2_QUEUED 12288
#define H2_MORE	  409600 /* 4 listings */

/* Minimum bytes of the buffer of h2_gather, enough for any frame. */
#define H2_ROOM ((size_t)2 * H2_FRAME)

/* A session's view of its connection, which outlives the session. */
struct h2_owner {
	void (*ho_wake)(void *);  /* requests a time slice; never runs it */
	void (*ho_evict)(void *); /* closes the connection: sched_ops.evict */
	void *ho_arg;
	struct worker *ho_worker;
	const struct sockaddr *ho_peer;
	const struct tls *ho_tls; /* NULL without TLS */
	struct token_bucket *ho_bucket;
	int ho_fd;	 /* socket, to query its state only */
	bool ho_proxied; /* true if the peer is trusted to name clients */
};

TAILQ_HEAD(h2_streams, h2_stream);

struct h2 {
	struct h2_owner h2_owner;
	nghttp2_session *h2_session;
	struct h2_streams h2_all;
	struct h2_streams h2_due; /* streams to run in the next time slice */
	unsigned h2_count;	  /* streams in h2_all */
	unsigned h2_open;	  /* streams that neither side has closed */
	unsigned h2_pending;	  /* streams that await a completion */
	unsigned h2_requests;	  /* requests since the start */
	struct h2_stream *h2_heading; /* stream whose head arrives, or NULL */
	size_t h2_fields;	      /* decoded bytes of the arriving fields */
	size_t h2_heads;	      /* head bytes above H2_LIGHT per stream */
	size_t h2_more;		      /* bytes of H2_MORE in use */
	size_t h2_kept;	  /* bytes for the log, above H2_LIGHT per stream */
	size_t h2_queued; /* response head bytes since the queue was empty */
	size_t h2_ahead;  /* input bytes that h2_walk has read already */
	struct h2_walk h2_walk;
	struct h2_flood h2_flood;
	int32_t h2_last;	      /* last stream that the client began */
	uint64_t h2_sent;	      /* bytes of DATA sent */
	bool h2_tore;		      /* true once the server reset a stream */
	bool h2_draining;	      /* true once the close is announced */
	bool h2_refuses;	      /* true once later streams are refused */
	bool h2_stopped;	      /* true once the connection has closed */
	bool h2_broken;		      /* true if nothing more can be sent */
	bool h2_failed;		      /* true if nothing more can be received */
	struct known_header h2_known; /* known fields of the last request */
	uint64_t h2_rate;	      /* bytes/s of the last stream (pw_send) */

	/*
	 * h2_out is the output buffer during h2_gather, else NULL.  Of its h2_room bytes, h2_len
	 * are used.
	 */
	char *h2_out;
	size_t h2_len;
	size_t h2_room;
	const uint8_t *h2_held; /* a frame that did not fit into h2_out */
	size_t h2_held_len;
};

/* Creates a session, and submits its SETTINGS.  Returns NULL if memory is short. */
struct h2 *h2_create(const struct h2_owner *);

/* Closes all streams and cancels their pending exchanges. */
void h2_stop(struct h2 *);
void h2_destroy(struct h2 **);

/*
 * Reads bytes from the client.  Sets *taken to less than `len` if the streams hold too many heads;
 * call again with the rest when h2_is_laden is false.  Returns false if the connection cannot go
 * on; h2_gather then has the GOAWAY with the reason.
 */
bool h2_receive(struct h2 *, const char *, size_t len, size_t *taken);

/* Returns true if no further request is read until responses to earlier ones free their heads. */
static inline bool
h2_is_laden(const struct h2 *h2)
{
	return h2->h2_heads > H2_HEADS;
}

/* Runs streams that are due.  Returns true if streams remain for another time slice. */
bool h2_run(struct h2 *);

/*
 * Call in place of h2_run while the socket is full.  Lets due streams use the resources that they
 * waited for, but starts no response.
 */
void h2_look(struct h2 *);

/*
 * Writes the next frames into the buffer, of at least H2_ROOM bytes.  Returns their number of
 * bytes, or 0 if there are no frames.
 */
size_t h2_gather(struct h2 *, char *, size_t room);

/* Returns true if h2_gather has something to write. */
bool h2_wants_room(const struct h2 *);

/* Returns true if nothing more will be received or sent. */
bool h2_is_over(const struct h2 *);

/*
 * Announces the close (RFC 9113, 6.8).  While streams are open, sends a GOAWAY with the highest
 * number, so that requests in flight get responses; h2_refuse sends the last stream's number later.
 * Without an open stream sends the last stream's number at once, because some clients (httpx) read
 * the highest number as a refusal of the request that they send next.
 */
void h2_drain(struct h2 *);

/* Sends the last stream's number and refuses later streams. */
void h2_refuse(struct h2 *);

/* Closes the session and all its streams with an error code of RFC 9113, 7. */
void h2_fail(struct h2 *, uint32_t error);

/*
 * Marks the session as broken after a lack of memory: libnghttp2 must not be called for it any
 * more.
 */
static inline void
h2_break(struct h2 *h2)
{
	h2->h2_failed = h2->h2_broken = true;
}

/* Resets a stream.  Breaks the session if memory is short. */
static inline void
h2_reset(struct h2 *h2, int32_t id, uint32_t error)
{
	h2->h2_tore = true;
	if (nghttp2_submit_rst_stream(
		h2->h2_session, NGHTTP2_FLAG_NONE, id, error) != 0)
		h2_break(h2);
}

static inline bool
h2_is_idle(const struct h2 *h2)
{
	return h2->h2_open == 0;
}

/* Returns true if a stream is open besides one whose head is still arriving. */
static inline bool
h2_is_responding(const struct h2 *h2)
{
	return h2->h2_open > (h2->h2_heading != NULL ? 1U : 0U);
}

/* Returns true if a completion is pending. */
static inline bool
h2_waits(const struct h2 *h2)
{
	return h2->h2_pending > 0;
}

#ifdef PW_DEBUG
/* Aborts if an invariant is violated. */
void h2_check(const struct h2 *);
#endif

#endif
