/*
 * conn_priv: what the files of a connection share; for server/conn/ only.
 */
#ifndef SERVER_CONN_CONN_PRIV_H
#define SERVER_CONN_CONN_PRIV_H

#include "server/conn/conn.h"

#define LINGER_READS 8 /* of a buffer's size, in one turn */

/* The result of a step of the connection. */
enum next {
	NEXT_GO,    /* the state has changed: go on */
	NEXT_WAIT,  /* for an event, a timer or a completion */
	NEXT_AGAIN, /* more to do, after the other connections */
	NEXT_CLOSE,
};

static inline struct buf_list *
conn_bufs(struct conn *c)
{
	return &c->cn_worker->wk_service.svc_bufs;
}

static inline void
conn_timer(struct conn *c, enum timer timer)
{
	sched_timer(&c->cn_worker->wk_sched, &c->cn_item, timer);
}

/* NULL: no TLS. */
static inline const struct log_tls *
conn_log_tls(const struct conn *c)
{
	return c->cn_secure ? &c->cn_transport.tr_tls->tl_log : NULL;
}

/* Call before the connection sends: limits what its socket may hold. */
static inline void
conn_bound(struct conn *c)
{
	enum tcp_level level = worker_level(c->cn_worker);

	if (c->cn_level == level)
		return;
	c->cn_level = level;
	tcp_memory_apply(
	    c->cn_worker->wk_tcp_memory, level, c->cn_transport.tr_fd);
}

/* --------------------------------------------------------------- state.c */

/* Starts a timer, which is TIMER_GRACE at the end of the server. */
void conn_patience(struct conn *, enum timer);

/* Its peer is known: may it name the clients that it asks for? */
void conn_know_peer(struct conn *);

/* The request that is at the front of its input has an exchange.  False: no memory. */
bool conn_begin(struct conn *);

/* No more follows; then it waits for the client's end. */
enum next conn_linger(struct conn *);

/* Starts TIMER_DISK, and waits for the completion. */
void conn_await_disk(struct conn *);

/*
 * An answer has ended; a connection that has had its time slice yields before it continues.
 */
enum next conn_ended(const struct conn *);

/*
 * Returns true if the socket has bytes that the server did not look at.  Part of a ClientHello, or
 * of a PROXY header before TLS, stays in the socket until the rest arrives, and does not count.
 */
bool conn_has_news(const struct conn *);

/* ------------------------------------------------------------ handshake.c */

/* Its first state, but for CONN_PROXY: CONN_TLS or CONN_READ.  False: no memory. */
bool conn_open(struct conn *);

/* Has its client begun a handshake? */
bool conn_shakes(const struct conn *);

/* A step in CONN_TLS.  done: called when one on a thread has ended, tl_owner is the connection. */
enum next conn_handshake(struct conn *, void (*done)(struct pw_waiter *));

/* ---------------------------------------------------------------- proxy.c */

/* A step in CONN_PROXY. */
enum next conn_proxy(struct conn *);

/* ----------------------------------------------------------- read.c */

/* Counts and returns true if memory is too short for another request. */
bool conn_lacks_memory(struct conn *);

/* NEXT_GO: *got bytes have come; NEXT_WAIT: none now; NEXT_CLOSE: the client's end. */
enum next conn_receive(struct conn *, char *to, size_t room, size_t *got);

/* A step in CONN_READ, CONN_LOOKUP and CONN_SKIP. */
enum next conn_read(struct conn *);
enum next conn_look(struct conn *);
enum next conn_skip(struct conn *);

/* Receives and forgets. */
enum next conn_discard(struct conn *);

/* Answers what was received of a head with an error, and closes after it. */
enum next conn_refuse_head(struct conn *, int status);

/* ------------------------------------------------------------ send.c */

/* A step in CONN_SEND. */
enum next conn_send(struct conn *);

/* ------------------------------------------------------------ abort.c */

/*
 * The result of the disk wait is discarded; its memory stays until the completion,
 * which frees it.
 */
void conn_abort(struct conn *);

/*
 * Call when the client's end, or something that may be one, came while its password waits to be
 * verified (exchange_verifies).  Returns false if the client has reset the connection, which is then
 * to be closed.
 */
bool conn_client_stays(struct conn *);

/*
 * The disk has not answered in time: the client gets 503, unless the wait is extended.
 */
void conn_give_up(struct conn *);

/* ----------------------------------------------------------- min_rate.c */

/*
 * The socket is full, and the client has to take something: TIMER_SEND runs.  False: it has
 * taken less than min_send_rate for a send_timeout of such time, and is to be closed.
 */
bool min_rate_full(struct conn *);

/* Its socket has room, and it waits for its turn: the timer stops. */
void min_rate_room(struct conn *);

/* TIMER_SEND is over.  False: it is to be closed; true: it has taken something meanwhile. */
bool min_rate_late(struct conn *);

/* An answer has ended.  How long the client may do nothing: TIMER_REST or TIMER_IDLE. */
enum timer min_rate_ended(struct conn *);

/* The part of the last answer that the kernel still holds. */
enum rest {
	REST_NONE, /* nothing to speak of */
	REST_SOME, /* and the client takes it fast enough */
	REST_LOST, /* it does not, and is to be closed */
};

/* One of the timers REST, IDLE and LINGER is over. */
enum rest min_rate_rest(struct conn *);

#endif
