/*
 * conn: a connection, from accept to close.
 *
 * Only conn.c frees a connection.  If a connection closes while a completion is pending
 * (conn_waits, conn_http2_waits), the close only shuts the socket down and makes the connection
 * dying.  The memory and the file of the connection stay until the completion frees them.
 *
 *   state   has            waits for: timer                      next state
 *   PROXY   cn_in, if any  the PROXY header: HEAD                TLS, READ, LINGER
 *   TLS     tr_tls         the client's handshake: HEAD          READ, HTTP2, SEND (400), LINGER
 *           cn_shaking     a handshaker thread: HEAD             as above; dying
 *   READ    cn_in, if any  the rest of a head: HEAD              LOOKUP, SEND, HTTP2
 *           nothing        the first byte of a head: IDLE        as above; LINGER
 *           nothing        acks of the last response: REST       READ with IDLE
 *   LOOKUP  cn_ex          disk, password (ex_pending): DISK     SEND; dying (503)
 *   SEND    cn_ex          space in the socket: SEND             READ, SKIP, LINGER
 *           cn_ex          the rate limit: PAUSE                 SEND
 *           cn_ex          a disk (ex_pending): DISK             SEND; dying
 *   SKIP    cn_body        the rest of a body: HEAD              READ, LINGER
 *   LINGER  nothing        the client's close: LINGER            closed
 *           cn_ending      space for close_notify: LINGER        as above
 *   HTTP2   cn_h2          frames: HEAD, IDLE, REST              LINGER
 *           cn_h2          space in the socket: SEND             LINGER
 *           streams        disk, pause, window: streams' timers  LINGER; dying
 *   dying   as before      a completion: no timer                freed
 *
 * While the worker drains, the timer is GRACE in PROXY, HTTP2 and LINGER, in TLS before the
 * ClientHello, and in READ before the first byte.
 *
 * A connection that waits for nothing is on sc_run_queue, behind the other connections that can
 * continue.  So each connection has a timer, is on sc_run_queue, is dying, or has streams (HTTP/2:
 * see stream.h).  In each state, the connection closes if the socket has an error, a timer expires
 * or the server shuts down.  If the client has closed its side, the connection closes when it next
 * receives, so that the response in progress is still sent.  If a completion is pending, the
 * connection becomes dying first.
 *
 * wk_sched owns struct conn.  The connection owns cn_ex with its file, texts, buffers and slices of
 * cn_in.  The connection also owns its event until it is dying.  The library owns the result of a
 * completion until the callback.
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
	CONN_READ,   /* waits for the head of the next request */
	CONN_LOOKUP, /* finds the file of the request */
	CONN_SEND,   /* sends the response */
	CONN_SKIP,   /* discards the rest of the request's body */
	CONN_LINGER, /* has shut down its side; waits for the client to close */
	CONN_PROXY,  /* waits for a PROXY header */
	CONN_TLS,    /* runs a TLS handshake */
	CONN_HTTP2,  /* uses HTTP/2 until the close */
};

struct conn_http2;

struct conn_ops {
	struct exchange_ops co_exchange;
	void (*co_wake)(void *);  /* requests a time slice: see ho_wake */
	void (*co_evict)(void *); /* closes the connection: see ho_evict */
};

struct conn {
	struct sched_item cn_item; /* must be first: see conn_of */
	enum conn_state cn_state;
	struct transport cn_transport;
	bool cn_readable; /* true if the socket may have input */
	bool cn_writable; /* true if the socket may have space */
	bool cn_drained;  /* true if the last recv emptied the socket */
	/* true if a timer for input started again since the last request */
	bool cn_spared;
	bool cn_hup;	 /* true if the client has closed or reset */
	bool cn_dying;	 /* true if closed while a completion is pending */
	bool cn_proxied; /* true if the peer may state the client's address */
	bool cn_secure;	 /* true if the connection uses TLS */
	/*
	 * true from the start of a handshake step on a thread to its completion, or until
	 * conn_handshake_take_back finds that the step has ended
	 */
	bool cn_shaking;
	bool cn_ending; /* true if the socket had no space for close_notify */
	enum tcp_level cn_level; /* level last applied to the socket */
	struct unacked_item cn_unacked;
	unsigned cn_requests; /* number of requests so far */
	struct worker *cn_worker;
	struct event cn_event;
	union sockaddr_any cn_peer;
	struct body cn_body; /* state of the body that is discarded */

	/* Next request, stored here because an idle connection has no exchange. */
	struct buf cn_in; /* input from the request's first byte on */
	struct head cn_head;
	uint64_t cn_slice_sent; /* bytes of the time slice's responses */
	struct known_header cn_known_header; /* header of the last request */
	uint64_t cn_unseen;		     /* bytes sent since cn_since */
	uint64_t cn_left;  /* unacked bytes at cn_since; 0 if not checked */
	uint64_t cn_since; /* time of the last check, microseconds */
	struct token_bucket cn_bucket; /* bucket of the rate limit: pace.h */
	uint64_t cn_rate; /* client's throughput, bytes/s; 0 if unknown */
	struct client *cn_client; /* client's count; NULL if not counted */

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
 * Creates a connection for a socket that the listener accepted and listener_enter admitted.  Takes
 * ownership of the descriptor and the client's count, even if memory is short.
 */
void conn_create(
    struct listening *, int fd, const struct sockaddr *, struct client *);

void conn_close(struct conn *);

/*
 * Returns the number of further requests that may get a response; UINT_MAX if max_requests sets no
 * limit.
 */
unsigned conn_requests_left(const struct conn *);

#ifdef PW_DEBUG
/* Checks the rules above.  If a rule is broken, prints the rule and aborts. */
void conn_check(const struct conn *);
#else
static inline void
conn_check(const struct conn *c)
{
	(void)c;
}
#endif

#endif
