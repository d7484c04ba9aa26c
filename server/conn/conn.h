/*
 * conn: a connection, from accept to close.
 *
 * Only conn.c frees one.  While something is pending for it (ex_pending) the
 * memory, the socket and the file stay: closing it then only shuts the
 * socket down, and the completion frees it.
 *
 *   state   what it has           what it waits for: the timer            then
 *   PROXY   cn_in, if any came    a proxy's header: HEAD                  TLS, READ
 *   TLS     nothing               the client's handshake: HEAD            READ; SEND (400), LINGER
 *           cn_shaking            a thread of the handshaker: HEAD        the same; dying
 *   READ    cn_in, if any came    a head: HEAD; its first byte: IDLE      LOOKUP, SEND; 408: SEND
 *           nothing               the client, for the last answer: REST   the same, with IDLE
 *   LOOKUP  cn_ex                 a disk (ex_pending): DISK               SEND; 503 and dying
 *   SEND    cn_ex                 the client: SEND                        READ, SKIP, LINGER
 *           cn_ex                 a disk (ex_pending): DISK               SEND; dying
 *   SKIP    cn_body               the rest of a body: HEAD                READ; LINGER
 *   LINGER  nothing               the client's end: LINGER                closed
 *           cn_ending             room for our end (TLS) as well          the same
 *   HTTP2   cn_h2                 frames: IDLE, HEAD; room: SEND          LINGER
 *           its streams           disks, pauses, windows: their own       the same; dying
 *   while the server ends: in PROXY and READ, before a first byte, in HTTP2 and LINGER the timer is GRACE
 *   dying   cn_ex                 a completion (ex_pending): no timer     freed
 *
 * One that waits for nothing is on sc_run_queue: it has more to do when the others have had
 * their turn.  So each has a timer, is on sc_run_queue, or is dying (one of HTTP/2: or has streams, see stream.h), and none is forgotten.  The
 * client's end, an error of the socket, a timer that ends and the end of the server lead
 * from each state to the close, or to dying where ex_pending.
 *
 * Owners: of struct conn wk_sched; of cn_ex and what it has (file, texts, buffers, the
 * request's slices of cn_in) the connection; of what a completion brings, the library
 * until it calls back; of the event the connection, until it is dying.
 */
#ifndef SERVER_CONN_CONN_H
#define SERVER_CONN_CONN_H

#include <event2/event_struct.h>
#include <netinet/in.h>

#include "server/conn/transport.h"
#include "server/content/exchange.h"
#include "server/content/header_cache.h"
#include "server/http/body.h"
#include "server/http/head.h"
#include "server/worker/worker.h"

enum conn_state {
	CONN_READ,   /* the next request's head is being received */
	CONN_LOOKUP, /* its file is being found */
	CONN_SEND,   /* its answer is being sent */
	CONN_SKIP,   /* its body is being discarded */
	CONN_LINGER, /* our end is closed, the client's is awaited */
	CONN_PROXY,  /* what a proxy sends first is being received */
	CONN_TLS,    /* the handshake */
	CONN_HTTP2,  /* HTTP/2 is spoken, until it ends */
};

struct conn_http2;

/* Calls to a connection. */
struct conn_ops {
	struct exchange_ops co_exchange;
	void (*co_wake)(void *);  /* of its session: see h2_owner ... */
	void (*co_evict)(void *); /* ... the same */
};

struct conn {
	struct sched_item cn_item; /* the first */
	enum conn_state cn_state;
	struct transport cn_transport;
	bool cn_readable; /* as far as we know: cleared by EAGAIN ... */
	bool cn_writable; /* ... set by an edge */
	bool cn_drained;  /* the last recv found less than it had room for */
	bool cn_hup;	  /* the client has closed its end */
	bool cn_dying;	  /* a completion is to come, and frees it */
	bool cn_proxied;  /* its peer is trusted to name clients */
	bool cn_secure;	  /* TLS is spoken on it */
	bool cn_shaking;  /* a step of its handshake is to come back */
	bool cn_ending;	  /* its end is not said yet: the socket was full */
	enum tcp_level cn_level; /* of its socket */
	struct unacked_item cn_unacked;
	unsigned cn_requests; /* with an answer that has begun */
	struct worker *cn_worker;
	struct event cn_event;
	union sockaddr_any cn_peer;
	struct body cn_body; /* the rest of the request's body, to discard */

	/* the request; what is idle holds no more than this: see exchange.h */
	struct buf cn_in; /* received, from the request's first byte on */
	struct head cn_head;
	uint64_t cn_slice_sent; /* bytes of answers that this turn has ended */
	struct known_header cn_known_header; /* the last fields */
	uint64_t cn_unseen; /* bytes sent since it was asked what is ... */
	uint64_t cn_left;   /* ... bytes unacknowledged, or 0 ... */
	uint64_t cn_since;  /* ... then, microseconds */
	struct token_bucket cn_bucket; /* see pace.h */
	uint64_t cn_rate; /* bytes/s that the client takes, or 0: see pw_send */
	struct client
	    *cn_client; /* its address, or NULL: see connection_limits.h */

	struct exchange *cn_ex; /* NULL between two requests */
	const struct conn_ops *cn_ops;
	struct conn_http2 *cn_h2; /* NULL: HTTP/1 */
};

/* Is a completion to come for it? */
static inline bool
conn_waits(const struct conn *c)
{
	return c->cn_shaking || (c->cn_ex != NULL && c->cn_ex->ex_pending);
}

/*
 * A connection that was accepted there and entered; both are taken over.
 */
void conn_create(
    struct listening *, int fd, const struct sockaddr *, struct client *);

void conn_close(struct conn *);

/* How many requests it may still have answered, UINT_MAX for all. */
unsigned conn_requests_left(const struct conn *);

#ifdef PW_DEBUG
/* Aborts, and says which, if one of these rules is broken. */
void conn_check(const struct conn *);
#else
static inline void
conn_check(const struct conn *c)
{
	(void)c;
}
#endif

#endif
