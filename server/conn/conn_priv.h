/*
 * conn_priv: declarations that the files of a connection share; for server/conn/ only.
 */
#ifndef SERVER_CONN_CONN_PRIV_H
#define SERVER_CONN_CONN_PRIV_H

#include "server/conn/conn.h"

#define LINGER_READS 8 /* maximum reads of BUF_SIZE in one time slice */

enum next {
	NEXT_GO,    /* run the next step, because the state has changed */
	NEXT_WAIT,  /* wait for an event, a timer or a completion */
	NEXT_AGAIN, /* wait until other connections have had a time slice */
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
	if (timer == TIMER_NONE)
		c->cn_spared = false;
	sched_timer(&c->cn_worker->wk_sched, &c->cn_item, timer);
}

/* Returns the connection's TLS data for the log, or NULL without TLS. */
static inline const struct log_tls *
conn_log_tls(const struct conn *c)
{
	return c->cn_secure ? &c->cn_transport.tr_tls->tl_log : NULL;
}

/* Applies the worker's memory level to the connection's socket.  Call before sending. */
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

/* Starts this timer, or the shorter TIMER_GRACE if the worker drains. */
void conn_patience(struct conn *, enum timer);

/* Sets cn_proxied.  Requires cn_peer. */
void conn_know_peer(struct conn *);

/* Creates the exchange of the request at the front of cn_in.  Returns false if memory is short. */
bool conn_begin(struct conn *);

/* Shuts our side of the connection down, and waits for the client to close. */
enum next conn_linger(struct conn *);

/* Starts TIMER_DISK, and calls exchange_wait.  Does not block. */
void conn_await_disk(struct conn *);

/*
 * Returns NEXT_AGAIN if the connection has used up its time slice and may have more input, else
 * NEXT_GO.  Call when a response has been sent.
 */
enum next conn_ended(const struct conn *);

/*
 * Returns true if the socket has unread bytes.  Does not count an incomplete ClientHello or PROXY
 * header before TLS: both stay in the socket until complete.  Does not count a part of a TLS record
 * that the session has read.
 */
bool conn_has_news(const struct conn *);

/* ------------------------------------------------------------ handshake.c */

/*
 * Enters CONN_TLS or CONN_READ.  Call at the start of a connection, or after the PROXY header.
 * Returns false if memory is short.
 */
bool conn_open(struct conn *);

/* Returns true if a TLS handshake has begun. */
bool conn_shakes(const struct conn *);

/*
 * Runs a step in CONN_TLS.  If a handshaker thread runs the step, the worker's loop calls `done`
 * afterwards, and tl_owner points to the connection.
 */
enum next conn_handshake(struct conn *, void (*done)(struct pw_waiter *));

/*
 * Ends the wait for a handshaker thread if its step has ended without a completion.  Call when the
 * socket has an event or the connection closes.
 */
void conn_handshake_take_back(struct conn *);

/* ---------------------------------------------------------------- proxy.c */

enum next conn_proxy(struct conn *);

/* ----------------------------------------------------------- read.c */

/*
 * Returns true if memory is too short for another request, and then counts the request as refused.
 */
bool conn_lacks_memory(struct conn *);

/*
 * Receives at most `room` bytes, and stores their number in *got.  Returns NEXT_GO if *got is above
 * 0, NEXT_WAIT if no bytes are pending, or NEXT_CLOSE after the client's close or an error.
 */
enum next conn_receive(struct conn *, char *to, size_t room, size_t *got);

/* conn_read runs a step in CONN_READ, conn_look in CONN_LOOKUP, and conn_skip in CONN_SKIP. */
enum next conn_read(struct conn *);
enum next conn_look(struct conn *);
enum next conn_skip(struct conn *);

/* Receives and discards input, at most LINGER_READS buffers in one time slice. */
enum next conn_discard(struct conn *);

/*
 * Sends an error response to an incomplete or malformed head.  The connection closes after the
 * response.
 */
enum next conn_refuse_head(struct conn *, int status);

/* ------------------------------------------------------------ send.c */

enum next conn_send(struct conn *);

/* ------------------------------------------------------------ abort.c */

/*
 * Closes a connection with a pending completion, and discards the result.  The completion later
 * frees the memory of the connection.
 */
void conn_abort(struct conn *);

/*
 * If the client has closed its side, lets other clients go first.  Returns false if the client has reset the
 * connection; the caller must then close.  Call on input or a close, while the exchange is pending.
 */
bool conn_client_stays(struct conn *);

/*
 * Handles the expiry of TIMER_DISK or TIMER_CLOSED: aborts the request, with 503 if possible, unless the disk
 * gets more time.
 */
void conn_give_up(struct conn *, enum timer);

/* ----------------------------------------------------------- min_rate.c */

/*
 * Starts TIMER_SEND.  Call when the socket is full.  Returns false if the client was slower than
 * min_send_rate while the socket was full for send_timeout in total; the caller must then close.
 */
bool min_rate_full(struct conn *);

/*
 * Stops TIMER_SEND when the socket has space.  Waiting for a time slice does not count against the
 * client.
 */
void min_rate_room(struct conn *);

/*
 * Handles the expiry of TIMER_SEND.  Returns false if the client was too slow; the caller must then
 * close.  Restarts the timer, and returns true, if the client has accepted enough, the socket has
 * space, or the kernel waits for a disk.
 */
bool min_rate_late(struct conn *);

/*
 * Returns the timer for an idle client, TIMER_REST or TIMER_IDLE.  Call when a response has been
 * sent.
 */
enum timer min_rate_ended(struct conn *);

/* State of the data of the last response that the client has not acknowledged. */
enum rest {
	REST_NONE, /* no data is left, or only our FIN */
	REST_SOME, /* the client acknowledges the data fast enough */
	REST_LOST, /* the client is too slow; the caller must close */
};

/*
 * Checks how fast the client acknowledges the last response.  Call when TIMER_REST, TIMER_IDLE or
 * TIMER_LINGER has expired.
 */
enum rest min_rate_rest(struct conn *);

#endif
