/*
 * stats: a worker's counters since the start.  Only the worker's thread writes them; any thread may
 * read them.  Each counter is right, but two counters may be from different moments.  Use
 * counter_add and counter_get.
 */
#ifndef SERVER_UTIL_STATS_H
#define SERVER_UTIL_STATS_H

#include <stdint.h>

#include "lib/pagewise.h"
#include "lib/util/counter.h"

/* Timers of a connection, each with the event that it waits for. */
enum timer {
	TIMER_NONE,
	TIMER_HEAD,   /* until a request head is complete */
	TIMER_IDLE,   /* until the next request begins */
	TIMER_REST,   /* until the client receives the rest of the response */
	TIMER_SEND,   /* until the client receives some of the response */
	TIMER_DISK,   /* until a disk read completes */
	TIMER_CLOSED, /* the same, if the client has closed its side */
	TIMER_LINGER, /* until the client closes */
	TIMER_PAUSE,  /* until the rate limit allows more (sched_pause) */
	TIMER_GRACE,  /* during a drain, instead of another timer */
	TIMERS
};

/* Phases of a connection. */
enum phase {
	PHASE_IDLE,   /* between two requests */
	PHASE_HEAD,   /* receiving a request head */
	PHASE_TLS,    /* TLS handshake, from its first byte on */
	PHASE_DISK,   /* waiting for a disk */
	PHASE_SEND,   /* sending a response */
	PHASE_BODY,   /* receiving and discarding a request body */
	PHASE_LINGER, /* waiting for the client to close */
	PHASES
};

/* Limits on clients, each with the events that sta_capped counts. */
enum cap {
	CAP_TOTAL,	/* max_connections: pauses of accepting */
	CAP_ADDRESS,	/* max_connections_per_address: connections refused */
	CAP_RATE,	/* min_send_rate: connections closed */
	CAP_REQUESTS,	/* max_requests: connections closed */
	CAP_FRAMES,	/* HTTP/2: connections closed for a flood */
	CAP_TCP_MEMORY, /* tcp_memory: times that the limit was exceeded */
	CAP_MEMORY,	/* control group: times that sockets held too much */
	CAP_HEAP,	/* heap_limit.h: requests and handshakes refused */
	CAP_STALLED,	/* stalled.h: connections evicted */
	CAPS
};

/* Results of TLS handshakes. */
enum handshake_end {
	HANDSHAKE_FULL,
	HANDSHAKE_RESUMED,
	HANDSHAKE_ALERT,    /* alert from the client, e.g. bad certificate */
	HANDSHAKE_NOTHING,  /* no common version, cipher, group or protocol */
	HANDSHAKE_VERIFY,   /* client certificate refused */
	HANDSHAKE_CLOSED,   /* closed by the client */
	HANDSHAKE_BROKEN,   /* client sent no TLS, or damaged TLS */
	HANDSHAKE_INTERNAL, /* memory was short, or an internal error */
	HANDSHAKE_PLAIN,    /* client sent plain HTTP */
	HANDSHAKE_TIMEOUT,
	HANDSHAKE_BUSY, /* refused: too many were pending */
	HANDSHAKES
};

#define STATS_STATUS   100 /* first status of sta_status */
#define STATS_STATUSES 500

struct stats {
	_Atomic uint64_t sta_status[STATS_STATUSES]; /* responses by status */
	_Atomic uint64_t sta_cached; /* responses from the response cache */
	_Atomic uint64_t sta_h2_connections;
	_Atomic uint64_t sta_h2_streams;   /* HTTP/2 requests begun */
	_Atomic uint64_t sta_cached_bytes; /* bytes cached at the last tick */
	_Atomic uint64_t sta_sent;	   /* bytes handed to the kernel */
	_Atomic uint64_t sta_unacked; /* bytes held by sockets: unacked.h */
	/* time that requests waited for disks, us */
	_Atomic uint64_t sta_disk_wait;
	_Atomic uint64_t sta_phase[PHASES]; /* open connections by phase */
	_Atomic uint64_t sta_accepted;
	_Atomic uint64_t sta_accept_failed;
	_Atomic uint64_t sta_reclaimed; /* idle connections evicted */
	/* connections evicted before a complete request */
	_Atomic uint64_t sta_evicted;
	_Atomic uint64_t sta_passwords_refused; /* requests refused with 503 */
	/* siblings that could not be sent */
	_Atomic uint64_t sta_siblings_unused;
	_Atomic uint64_t sta_changed;	      /* responses whose file changed */
	_Atomic uint64_t sta_timeout[TIMERS]; /* timers that expired */
	_Atomic uint64_t sta_capped[CAPS];
	_Atomic uint64_t sta_handshakes[HANDSHAKES];
	struct pw_histogram sta_handshake_time; /* successful handshakes */

	struct pw_histogram sta_iteration; /* duration of loop iterations */
	_Atomic uint64_t sta_longest;	   /* longest iteration, microseconds */
	_Atomic uint64_t sta_stalls;	   /* iterations of stall_log or more */
};

#endif
