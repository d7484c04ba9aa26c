/*
 * session: HTTP/2 on one connection (RFC 9113), with its streams.  Each stream has its own
 * exchange.  A session does not use the socket: the caller passes received bytes to the session,
 * and fetches the bytes to send.  libnghttp2 handles frames, HPACK, windows and the order of
 * streams (RFC 9218).  Runs on the worker's thread.
 *
 * The caller calls:
 *
 *	h2_create
 *	h2_begin_slice, and h2_receive after it has received bytes
 *	h2_run, then h2_gather until it returns 0, in each time slice that ho_wake requests
 *	h2_is_over, which returns true when all frames were sent
 *	h2_stop, and then h2_destroy as soon as h2_waits returns false
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
#include "server/http2/frame_buffer.h"
#include "server/http2/walk.h"
#include "server/worker/sched.h"

struct h2;
struct h2_stream;
struct sockaddr;
struct tls;
struct token_bucket;
struct worker;

/* Bytes of a DATA frame.  Head and payload together fill one TLS record. */
#define H2_FRAME_HEAD 9
#define H2_FRAME      16384
#define H2_DATA	      (H2_FRAME - H2_FRAME_HEAD)

/*
 * Limits of a connection's memory, in bytes.  H2_LIGHT bytes per stream do not count.  Beyond
 * these, H2_HEADS limits the request heads of all streams until their responses are chosen, and
 * H2_KEPT limits the texts for the log.  H2_QUEUED limits the response heads that wait for the
 * socket.  H2_HEADS and H2_QUEUED may be exceeded by one head.  Large listings and responses of
 * many ranges use H2_MORE together; a response that needs more than is free waits, or ignores
 * Range.
 */
#define H2_LIGHT  1024
#define H2_HEADS  8192
#define H2_KEPT	  8192
#define H2_QUEUED 12288
#define H2_MORE	  409600 /* enough for 4 listings */

/* requests read in one time slice; a request that waited for the slice is not counted */
#define H2_REQUESTS 32

/* Minimum size of the buffer for h2_gather, in bytes: enough for each frame. */
#define H2_ROOM ((size_t)2 * H2_FRAME)

/* A session's connection, which outlives the session. */
struct h2_owner {
	void (*ho_wake)(void *);  /* requests a time slice for the session */
	void (*ho_evict)(void *); /* closes the connection: sched_ops.evict */
	void *ho_arg;
	struct worker *ho_worker;
	const struct sockaddr *ho_peer;
	const struct tls *ho_tls; /* NULL without TLS */
	struct token_bucket *ho_bucket;
	int ho_fd;	 /* socket; used only to query its state */
	bool ho_proxied; /* true if the peer may state the client's address */
};

TAILQ_HEAD(h2_streams, h2_stream);

struct h2 {
	struct h2_owner h2_owner;
	nghttp2_session *h2_session;
	struct h2_frame_buffer h2_frame_buffer;
	struct h2_streams h2_all;
	struct h2_streams h2_due; /* streams to run in the next time slice */
	unsigned h2_count;	  /* streams in h2_all */
	unsigned h2_open;	  /* streams not closed by both sides */
	unsigned h2_bodies;	  /* of these, streams with sm_responded */
	unsigned h2_pending;	  /* streams that wait for a completion */
	unsigned h2_requests;	  /* number of requests since the start */
	struct h2_stream *h2_heading; /* stream with a partial head */
	unsigned h2_slice;	      /* requests begun in this time slice */
	size_t h2_fields;	      /* decoded bytes of the field section */
	size_t h2_heads;	      /* head bytes above H2_LIGHT */
	size_t h2_more;		      /* used bytes of H2_MORE */
	size_t h2_kept;	  /* bytes kept for the log above H2_LIGHT */
	size_t h2_queued; /* bytes of heads queued since the queue was empty */
	size_t h2_ahead;  /* input bytes that only h2_walk has read */
	struct h2_walk h2_walk;
	struct h2_flood h2_flood;
	int32_t h2_last;	      /* last stream that the client started */
	uint64_t h2_sent;	      /* total bytes of DATA sent */
	bool h2_tore;		      /* true if the server reset a stream */
	bool h2_draining;	      /* true if a drain sent a GOAWAY */
	bool h2_refuses;	      /* true if new streams are refused */
	bool h2_stopped;	      /* true if the connection has closed */
	bool h2_broken;		      /* true if nothing more can be sent */
	bool h2_failed;		      /* true if nothing more can be received */
	struct known_header h2_known; /* header of the last request */
	uint64_t h2_rate;	      /* last stream's throughput, bytes/s */

	/*
	 * h2_out is the output buffer during h2_gather, else NULL, with h2_room bytes, of which
	 * h2_len are used.
	 */
	char *h2_out;
	size_t h2_len;
	size_t h2_room;
	const uint8_t *h2_held; /* frame too long for h2_out, or NULL */
	size_t h2_held_len;
};

/* Creates a session, and submits its SETTINGS.  Returns NULL if memory is short. */
struct h2 *h2_create(const struct h2_owner *);

/* Closes all streams, and cancels their pending exchanges. */
void h2_stop(struct h2 *);
void h2_destroy(struct h2 **);

/*
 * Processes received bytes.  Sets *taken to less than `len` before a request that h2_is_sated
 * forbids to read; call again with the rest when h2_is_sated returns false.  Returns false if the
 * session has failed; h2_gather then returns a GOAWAY with the reason.
 */
bool h2_receive(struct h2 *, const char *, size_t len, size_t *taken);

/*
 * Returns true if the session reads no further request until responses free the heads of earlier
 * requests.
 */
static inline bool
h2_is_laden(const struct h2 *h2)
{
	return h2->h2_heads > H2_HEADS;
}

/*
 * Starts a time slice, which reads about H2_REQUESTS requests.  Without this limit the server
 * would read 200 requests with their resets, 0.7 ms of work, before other clients get a slice.
 */
static inline void
h2_begin_slice(struct h2 *h2)
{
	h2->h2_slice = 0;
}

/* Returns true if the session reads no further request in this time slice. */
static inline bool
h2_is_sated(const struct h2 *h2)
{
	return h2_is_laden(h2) || h2->h2_slice >= H2_REQUESTS;
}

/* Runs the streams on h2_due.  Returns true if more streams need a time slice. */
bool h2_run(struct h2 *);

/*
 * Lets streams use the resources that they waited for, but starts no response.  Call instead of
 * h2_run while the socket is full.
 */
void h2_look(struct h2 *);

/*
 * Writes the next frames into a buffer of `room` bytes, at least H2_ROOM.  Returns the number of
 * bytes written, or 0 if there are no frames.
 */
size_t h2_gather(struct h2 *, char *, size_t room);

/* Returns true if h2_gather has something to write. */
bool h2_wants_room(const struct h2 *);

/* Returns unused memory of an idle session to the kernel.  Does nothing for other sessions. */
void h2_settle(struct h2 *);

/* Returns true if the session has nothing more to receive or send. */
bool h2_is_over(const struct h2 *);

/*
 * Announces the close (RFC 9113, 6.8).  If a stream is open, sends a GOAWAY with the highest
 * possible stream number, so that requests in flight get responses; h2_refuse later sends the
 * number of the last stream.  If no stream is open, sends that number at once, because some clients
 * (httpx) treat the highest number as a refusal of their next request.
 */
void h2_drain(struct h2 *);

/* Sends a GOAWAY with the number of the last stream, and refuses later streams. */
void h2_refuse(struct h2 *);

/* Closes the session and all its streams with this error code (RFC 9113, 7). */
void h2_fail(struct h2 *, uint32_t error);

/*
 * Marks the session as broken, because memory is short.  No function of libnghttp2 may be called
 * for this session afterwards.
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

/* Returns true if a stream other than h2_heading has no complete response yet. */
static inline bool
h2_is_responding(const struct h2 *h2)
{
	return h2->h2_open - h2->h2_bodies > (h2->h2_heading != NULL ? 1U : 0U);
}

/* Returns true if streams are open, and each has only the rest of its request to receive. */
static inline bool
h2_awaits_bodies(const struct h2 *h2)
{
	return h2->h2_open > 0 && h2->h2_open == h2->h2_bodies;
}

static inline bool
h2_waits(const struct h2 *h2)
{
	return h2->h2_pending > 0;
}

#ifdef PW_DEBUG
void h2_check(const struct h2 *);
#endif

#endif
