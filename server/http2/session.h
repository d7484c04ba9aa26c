/*
 * session: HTTP/2 on one connection (RFC 9113): frames in, frames out, and its streams, each
 * with an exchange of its own.  It knows no socket: what was received is given to it, and
 * what it has to say is taken from it.  libnghttp2 has the frames, HPACK, the windows and the order
 * of streams (RFC 9218).  The worker's thread.
 *
 *	h2_create
 *	h2_receive, whenever something has come
 *	h2_run, then h2_gather until there is nothing: its turn; ho_wake asks for one
 *	h2_is_over: all was said
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

/*
 * Bytes of DATA in a frame: with the head of the frame they are one record of TLS.
 */
#define H2_FRAME_HEAD 9
#define H2_FRAME      16384
#define H2_DATA	      (H2_FRAME - H2_FRAME_HEAD)

/*
 * Bounds of a connection's memory, in bytes.  Each stream may hold H2_LIGHT of its request for
 * nothing.  What streams hold beyond it while their answers are looked for is H2_HEADS and one
 * head; what they keep of it for the log later is H2_KEPT; and the answers' heads that wait
 * for the socket are H2_QUEUED and one head.  Large listings and answers of many ranges have H2_MORE
 * together; what needs more than is left waits, or is sent as a whole.
 */
#define H2_LIGHT  1024
#define H2_HEADS  8192
#define H2_KEPT	  8192
#define H2_QUEUED 12288
#define H2_MORE	  409600 /* 4 listings */

/* Room that h2_gather needs: something comes of it, whatever is next. */
#define H2_ROOM ((size_t)2 * H2_FRAME)

/* What it knows of its connection, which outlives it. */
struct h2_owner {
	void (*ho_wake)(void *);  /* it has something to do; not at once */
	void (*ho_evict)(void *); /* ends it at once: see sched_ops.evict */
	void *ho_arg;
	struct worker *ho_worker;
	const struct sockaddr *ho_peer;
	const struct tls *ho_tls; /* NULL: none */
	struct token_bucket *ho_bucket;
	int ho_fd;	 /* for what asks the socket */
	bool ho_proxied; /* its peer is trusted to name clients */
};

TAILQ_HEAD(h2_streams, h2_stream);

struct h2 {
	struct h2_owner h2_owner;
	nghttp2_session *h2_session;
	struct h2_streams h2_all;
	struct h2_streams h2_due;     /* they may go on with the next turn */
	unsigned h2_count;	      /* of h2_all */
	unsigned h2_open;	      /* of them, not closed by either side */
	unsigned h2_pending;	      /* of them, a completion is to come */
	unsigned h2_requests;	      /* since the begin */
	struct h2_stream *h2_heading; /* its head is coming, or NULL */
	size_t
	    h2_fields; /* bytes of the last head or trailers, as RFC 9113, 6.5.2 counts */
	size_t
	    h2_heads; /* bytes of requests' heads that streams hold, beyond H2_LIGHT each */
	size_t h2_more; /* bytes of H2_MORE that are taken */
	size_t h2_kept; /* the same of what is kept for the log */
	size_t
	    h2_queued; /* bytes of answers' heads since the last time that all was sent */
	size_t
	    h2_ahead; /* bytes that h2_walk has seen of what is received next */
	struct h2_walk h2_walk;
	struct h2_flood h2_flood;
	int32_t h2_last;  /* the stream that the client has begun last */
	uint64_t h2_sent; /* bytes of DATA */
	bool h2_tore;	  /* we have reset one */
	bool h2_draining; /* the client knows that it will end */
	bool h2_refuses;  /* it has been told the last stream */
	bool h2_stopped;  /* its connection has gone */
	bool h2_broken;	  /* nothing more can be sent */
	bool h2_failed;	  /* nothing more can be received */
	struct known_header h2_known; /* the last fields */
	uint64_t
	    h2_rate; /* bytes/s that the last stream was taken with: see pw_send */

	/* where h2_gather puts what there is; NULL outside of it */
	char *h2_out;
	size_t h2_len;
	size_t h2_room;
	const uint8_t *h2_held; /* a frame for which there was no room */
	size_t h2_held_len;
};

/* NULL: no memory. */
struct h2 *h2_create(const struct h2_owner *);

/* Cancels all that is under way. */
void h2_stop(struct h2 *);
void h2_destroy(struct h2 **);

/*
 * Reads what the client has sent.  *taken is less than len if the streams hold heads enough: call
 * again with the rest when h2_is_laden is false.  Returns false if the connection cannot go on;
 * h2_gather has the reason.
 */
bool h2_receive(struct h2 *, const char *, size_t len, size_t *taken);

/* Returns true if no further request is read before others have their answers. */
static inline bool
h2_is_laden(const struct h2 *h2)
{
	return h2->h2_heads > H2_HEADS;
}

/* Goes on with streams that are due.  True: there are more of them, for another turn. */
bool h2_run(struct h2 *);

/* In place of h2_run while the socket is full: no answer begins. */
void h2_look(struct h2 *);

/* Bytes of the frames that are next; 0: there are none.  room: at least H2_ROOM. */
size_t h2_gather(struct h2 *, char *, size_t room);

/* Has it something for h2_gather? */
bool h2_wants_room(const struct h2 *);

/* No more will be received or sent. */
bool h2_is_over(const struct h2 *);

/*
 * Announces the end (RFC 9113, 6.8): by a GOAWAY with the highest number while streams are open, so
 * that requests on their way are answered, and h2_refuse sends the last stream's number later.
 * Without an open stream the last stream's number goes out at once: clients exist (httpx) that
 * take the highest number for the end of the request that they send next.
 */
void h2_drain(struct h2 *);

/* Sends the last stream's number: later streams are not looked at. */
void h2_refuse(struct h2 *);

/* It ends with this error of RFC 9113, 7: all streams do. */
void h2_fail(struct h2 *, uint32_t error);

/* There is no memory for it: its library must not be asked for anything more. */
static inline void
h2_break(struct h2 *h2)
{
	h2->h2_failed = h2->h2_broken = true;
}

/* Resets a stream; without memory for that the connection ends. */
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

/* Returns true if a stream is open besides one whose head is coming. */
static inline bool
h2_is_responding(const struct h2 *h2)
{
	return h2->h2_open > (h2->h2_heading != NULL ? 1U : 0U);
}

/* A completion is to come. */
static inline bool
h2_waits(const struct h2 *h2)
{
	return h2->h2_pending > 0;
}

#ifdef PW_DEBUG
/* Aborts if a rule is broken. */
void h2_check(const struct h2 *);
#endif

#endif
