/*
 * conn_priv: declarations that the files of a connection share; for server/conn/ only.
 */
#ifndef SERVER_CONN_CONN_PRIV_H
#define SERVER_CONN_CONN_PRIV_H

#include "server/conn/conn.h"

#define LINGER_READS 8 /* maximum reads of BUF_SIZE in one time slice */

/* The result of a step of the connection. */
enum next {
	NEXT_GO,    /* the state has changed: run the next step */
	NEXT_WAIT,  /* wait for an event, a timer or a completion */
	NEXT_AGAIN, /* continue after the other connections */
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

/* Returns the connection's TLS data for the log, or NULL without TLS. */
static inline const struct log_tls *
conn_log_tls(const struct conn *c)
{
	return c->cn_secure ? &c->cn_transport.tr_tls->tl_log : NULL;
}

/* Applies the worker's memory level to the connection's socket.  Call before the connection sends. */
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

/* Starts this timer, or the short TIMER_GRACE if the worker drains. */
void conn_patience(struct conn *, enum timer);

/* Sets cn_proxied for the peer.  Call when cn_peer is set. */
void conn_know_peer(struct conn *);

/* Creates the exchange of the request at the front of cn_in.  Returns false if memory is short. */
bool conn_begin(struct conn *);

/* Shuts our end down, and waits for the client to close. */
enum next conn_linger(struct conn *);

/* Starts TIMER_DISK, and waits for the completion. */
void conn_await_disk(struct conn *);

/*
 * Returns NEXT_AGAIN if the connection has used up its time slice and may have input, else NEXT_GO.
 * Call when a response has ended.
 */
enum next conn_ended(const struct conn *);

/*
 * Returns true if the socket has bytes that the server has not read.  Part of a ClientHello, or of a
 * PROXY header before TLS, stays in the socket until the rest arrives, and does not count.
 */
bool conn_has_news(const struct conn *);

/* ------------------------------------------------------------ handshake.c */

/*
 * Enters CONN_TLS or CONN_READ: the first state, or the state after CONN_PROXY.  Returns false if
 * memory is short.
 */
bool conn_open(struct conn *);

/* Returns true if the client has begun a handshake. */
bool conn_shakes(const struct conn *);

/*
 * Runs a step in CONN_TLS.  A step on a handshaker thread calls `done` when it has ended; tl_owner
 * is then the connection.
 */
enum next conn_handshake(struct conn *, void (*done)(struct pw_waiter *));

/* ---------------------------------------------------------------- proxy.c */

/* Runs a step in CONN_PROXY. */
enum next conn_proxy(struct conn *);

/* ----------------------------------------------------------- read.c */

/* Returns true, and counts the refusal, if memory is too short for another request. */
bool conn_lacks_memory(struct conn *);

/*
 * Receives at most `room` bytes.  Returns NEXT_GO with *got bytes received, NEXT_WAIT if none are
 * pending, or NEXT_CLOSE at the client's end and on errors.
 */
enum next conn_receive(struct conn *, char *to, size_t room, size_t *got);

/* conn_read runs a step in CONN_READ, conn_look in CONN_LOOKUP, and conn_skip in CONN_SKIP. */
enum next conn_read(struct conn *);
enum next conn_look(struct conn *);
enum next conn_skip(struct conn *);

/* Receives and discards input, at most LINGER_READS buffers in one time slice. */
enum next conn_discard(struct conn *);

/* Responds to an incomplete or malformed head with an error, and closes the connection after it. */
enum next conn_refuse_head(struct conn *, int status);

/* ------------------------------------------------------------ send.c */

/* Runs a step in CONN_SEND. */
enum next conn_send(struct conn *);

/* ------------------------------------------------------------ abort.c */

/*
 * Closes a connection with a pending completion.  Discards the result; the memory of the connection
 * stays until the completion, which frees it.
 */
void conn_abort(struct conn *);

/*
 * Puts a password that waits to be verified last in the queue if the client has closed its end.
 * Call if exchange_verifies is true when the client has sent something or closed its end.  Returns
 * false if the client has reset the connection, which the caller must then close.
 */
bool conn_client_stays(struct conn *);

/* Handles a disk timeout: aborts the request, with 503 if possible, unless the wait is extended. */
void conn_give_up(struct conn *);

/* ----------------------------------------------------------- min_rate.c */

/*
 * Starts TIMER_SEND.  Call when the socket is full.  Returns false if the client has accepted less
 * than min_send_rate over a send_timeout of time with a full socket; the caller must then close the
 * connection.
 */
bool min_rate_full(struct conn *);

/* Stops TIMER_SEND when the socket has space, because the wait for a time slice does not count. */
void min_rate_room(struct conn *);

/*
 * Call when TIMER_SEND has ended.  Returns true, and restarts the timer, if the client has accepted
 * enough meanwhile, its socket has space, or its data waits for a disk.  Returns false if the
 * caller must close the connection.
 */
bool min_rate_late(struct conn *);

/* Call when a response has ended.  Returns the timer for an idle client: TIMER_REST or TIMER_IDLE. */
enum timer min_rate_ended(struct conn *);

/* The part of the last response that the client has not acknowledged. */
enum rest {
	REST_NONE, /* no data, or only our FIN */
	REST_SOME, /* data that the client accepts fast enough */
	REST_LOST, /* data that the client accepts too slowly: close */
};

/* Checks the rest of the last response.  Call when TIMER_REST, TIMER_IDLE or TIMER_LINGER has ended. */
enum rest min_rate_rest(struct conn *);

#endif
