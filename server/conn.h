/*
 * conn: a connection, from accept to close.
 *
 * Only conn.c frees one.  While something is pending for it (cn_waiting) the
 * memory, the socket and the file stay: closing it then only shuts the
 * socket down, and the completion frees it.
 */
#ifndef SERVER_CONN_H
#define SERVER_CONN_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <sys/queue.h>

#include "exchange.h"
#include "head.h"
#include "worker.h"

/*
 * After answers, or parts of one, of more than this many bytes in one turn the
 * other connections come first.
 */
#define CONN_SHARE ((uint64_t)64 << 10)

enum conn_state {
	CONN_READ,   /* the next request's head is being received */
	CONN_LOOKUP, /* its file is being found */
	CONN_SEND,   /* its answer is being sent */
	CONN_SKIP,   /* its body is being discarded */
	CONN_LINGER, /* our end is closed, the client's is awaited */
};

struct conn {
	enum conn_state cn_state;
	int cn_fd;
	bool cn_readable;    /* as far as we know: cleared by EAGAIN ... */
	bool cn_writable;    /* ... set by an edge */
	bool cn_drained;     /* the last recv found less than it had room for */
	bool cn_hup;	     /* the client has closed its end */
	bool cn_waiting;     /* a completion is to come */
	bool cn_dying;	     /* it frees the connection */
	unsigned cn_looks;   /* at a disk that is slow: how often */
	bool cn_queued;	     /* on wk_turns */
	enum phase cn_phase; /* as counted */
	enum timer cn_timer;
	uint64_t cn_deadline;
	struct worker *cn_worker;
	struct event cn_event;
	TAILQ_ENTRY(conn) cn_all;
	TAILQ_ENTRY(conn) cn_turn;
	TAILQ_ENTRY(conn) cn_timed;
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} cn_peer;

	/* the request; what is idle holds no more than this: see exchange.h */
	struct buf cn_in; /* received, from the request's first byte on */
	struct head cn_head;
	uint64_t cn_skip;      /* bytes of its body still to discard */
	uint64_t cn_turn_sent; /* bytes of answers that this turn has ended */
	uint64_t cn_progress;  /* bytes sent when the send timer was set */
	const struct fields *cn_fields; /* the last ones, or NULL */
	uint64_t cn_rate; /* bytes/s that the client takes, or 0: see pw_send */

	struct exchange *cn_ex; /* NULL between two requests */
};

/* A connection that was accepted; fd is taken over. */
void conn_create(struct worker *, int fd, const struct sockaddr *, socklen_t);

/* Goes on as far as possible without waiting. */
void conn_run(struct conn *);

/*
 * The completion that cn_waiting announced has come.  False: the connection is
 * gone, what the caller holds of it included.
 */
bool conn_resumed(struct conn *);

void conn_timeout(struct conn *);
void conn_close(struct conn *);

/* The server ends: one more request, if it comes soon; see conn_last. */
void conn_drain(struct conn *);

/* Whether the answer to the request that it has is the connection's last one. */
bool conn_last(const struct conn *);

/* Between two requests, and nothing of the next one has come. */
bool conn_idle(const struct conn *);

#endif
