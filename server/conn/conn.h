/*
 * conn: a connection, from accept to close.
 *
 * Only conn.c frees a connection.  While a completion is pending for it (ex_pending), its memory,
 * socket and file stay: closing the connection then only shuts the socket down, and the completion
 * frees it.
 *
 *   state   what it has           what it waits for: the timer            then
 *   PROXY   cn_in, if any came    a proxy's header: HEAD                  TLS, READ
 *   TLS     nothing               the client's handshake: HEAD            READ; SEND (400), LINGER
 *           cn_shaking            a thread of the handshaker: HEAD        the same; dying
 *   READ    cn_in, if any came    a head: HEAD; its first byte: IDLE      LOOKUP, SEND; 408: SEND
 *           nothing               the client, for the last response: REST the same, with IDLE
 *   LOOKUP  cn_ex                 a disk (ex_pending): DISK               SEND; 503 and dying
 *   SEND    cn_ex                 the client: SEND                        READ, SKIP, LINGER
 *           cn_ex                 a disk (ex_pending): DISK               SEND; dying
 *   SKIP    cn_body               the rest of a body: HEAD                READ; LINGER
 *   LINGER  nothing               the client's close: LINGER              closed
 *           cn_ending             room for close_notify (TLS) as well     the same
 *   HTTP2   cn_h2                 frames: IDLE, HEAD; room: SEND          LINGER
 *           its streams           disks, pauses, windows: their own       the same; dying
 *   while the worker drains, the timer is GRACE in PROXY and READ before a first byte, HTTP2, LINGER
 *   dying   cn_ex                 a completion (ex_pending): no timer     freed
 *
 * A connection that waits for nothing is on sc_run_queue: it continues after the time slices of the
 * other connections.  So each connection has a timer, is on sc_run_queue, is dying, or has streams
 * (HTTP/2: see stream.h), and none is forgotten.  A close by the client, a socket error, a timer
 * that ends and the shutdown of the server lead from each state to the close, or to dying where
 * ex_pending.
 *
 * wk_sched owns struct conn.  The connection owns cn_ex and what cn_ex holds (file, texts, buffers,
 * the request's slices of cn_in), and the event until the connection is dying.  The library owns
 * the result of a completion until the callback.
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
	CONN_LOOKUP, /* the request's file is being found */
	CONN_SEND,   /* the response is being sent */
	CONN_SKIP,   /* the request's body is being discarded */
	CONN_LINGER, /* our end is shut down; the client has yet to close */
	CONN_PROXY,  /* a PROXY header is being received */
	CONN_TLS,    /* a TLS handshake runs */
	CONN_HTTP2,  /* HTTP/2, until the connection closes */
};

struct conn_http2;

/* Callbacks from an exchange or an HTTP/2 session to its connection. */
struct conn_ops {
	struct exchange_ops co_exchange;
	void (*co_wake)(void *);  /* callback of the session: see ho_wake */
	void (*co_evict)(void *); /* callback of the session: see ho_evict */
};

struct conn {
	struct sched_item cn_item; /* must be first: see conn_of */
	enum conn_state cn_state;
	struct transport cn_transport;
	bool cn_readable; /* true from an edge until the socket is empty */
	bool cn_writable; /* true from an edge until the socket is full */
	bool cn_drained;  /* true if the last recv emptied the socket */
	bool cn_hup;	  /* true once the client has closed its end */
	bool cn_dying;	  /* true if closed; the pending completion frees it */
	bool cn_proxied;  /* true if the peer is trusted to name clients */
	bool cn_secure;	  /* true if the connection uses TLS */
	bool cn_shaking;  /* true while a thread runs a handshake step */
	bool cn_ending;	  /* true while the socket is too full to shut down */
	enum tcp_level cn_level; /* memory level that was set for the socket */
	struct unacked_item cn_unacked;
	unsigned cn_requests; /* requests whose response has begun */
	struct worker *cn_worker;
	struct event cn_event;
	union sockaddr_any cn_peer;
	struct body cn_body; /* the rest of the request's body, to discard */

	/* cn_in and cn_head are for the next request.  An idle connection has no exchange. */
	struct buf cn_in; /* input from the request's first byte on */
	struct head cn_head;
	uint64_t cn_slice_sent; /* bytes of responses ended in this slice */
	struct known_header cn_known_header; /* fields of the last request */
	uint64_t cn_unseen; /* bytes sent since the last check (see cn_left) */
	uint64_t cn_left;   /* unacked bytes at the last check; 0 if none */
	uint64_t cn_since;  /* time of the last check, microseconds */
	struct token_bucket cn_bucket; /* bucket of the key rate: pace.h */
	uint64_t cn_rate; /* client's throughput, bytes/s, or 0: see pw_send */
	struct client *cn_client; /* NULL if not counted: connection_limits.h */

	struct exchange *cn_ex; /* NULL between two requests */
	const struct conn_ops *cn_ops;
	struct conn_http2 *cn_h2; /* NULL with HTTP/1 */
};

/* Returns true if a completion is pending for the connection. */
static inline bool
conn_waits(const struct conn *c)
{
	return c->cn_shaking || (c->cn_ex != NULL && c->cn_ex->ex_pending);
}

/*
 * Creates a connection for a socket that this listener accepted and listener_enter admitted.  Takes
 * ownership of the descriptor and of the client's count, also if memory is short.
 */
void conn_create(
    struct listening *, int fd, const struct sockaddr *, struct client *);

void conn_close(struct conn *);

/* Returns how many more requests may get a response, or UINT_MAX if there is no limit. */
unsigned conn_requests_left(const struct conn *);

#ifdef PW_DEBUG
/* Prints the rule and aborts if one of the rules above is broken. */
void conn_check(const struct conn *);
#else
static inline void
conn_check(const struct conn *c)
{
	(void)c;
}
#endif

#endif
