/*
 * stats: what a worker counts, since the start.  Written by its thread alone, read
 * by any: each figure is right, but they need not be of one moment.  With counter_add
 * and counter_get.
 */
#ifndef SERVER_UTIL_STATS_H
#define SERVER_UTIL_STATS_H

#include <stdint.h>

#include "lib/pagewise.h"
#include "lib/util/counter.h"

/* Timers of a connection. */
enum timer {
	TIMER_NONE,
	TIMER_HEAD,   /* a request head must be complete */
	TIMER_IDLE,   /* the next request must begin */
	TIMER_REST,   /* it must take what the kernel has of the last answer */
	TIMER_SEND,   /* the client must take something */
	TIMER_DISK,   /* the disk must answer */
	TIMER_LINGER, /* the client must close */
	TIMER_PAUSE,  /* it may send more: sched_pause */
	TIMER_GRACE,  /* the server ends: a last request may be under way */
	TIMERS
};

/* Phases of a connection. */
enum phase {
	PHASE_IDLE,   /* nothing, between two requests */
	PHASE_HEAD,   /* a request head is being received */
	PHASE_TLS,    /* the handshake, from its first byte on */
	PHASE_DISK,   /* a disk is waited for */
	PHASE_SEND,   /* an answer is being sent */
	PHASE_BODY,   /* a request body is received and discarded */
	PHASE_LINGER, /* the client has not closed yet */
	PHASES
};

/* The limits that concern clients, by the names of their keys. */
enum cap {
	CAP_TOTAL,	/* max_connections: times that accepting paused */
	CAP_ADDRESS,	/* max_connections_per_address: connections refused */
	CAP_RATE,	/* min_send_rate: connections closed */
	CAP_REQUESTS,	/* connections closed after max_requests */
	CAP_FRAMES,	/* HTTP/2: connections ended for a flood of frames */
	CAP_TCP_MEMORY, /* tcp_memory: times that there was more */
	CAP_MEMORY,	/* of the control group, that sockets hold: the same */
	CAP_HEAP,	/* requests and handshakes refused: heap_limit.h */
	CAP_STALLED,	/* connections ended: stalled.h */
	CAPS
};

/* Handshakes of TLS, by how they ended. */
enum handshake_end {
	HANDSHAKE_FULL,
	HANDSHAKE_RESUMED,
	HANDSHAKE_ALERT,   /* the client refused: our certificate, say */
	HANDSHAKE_NOTHING, /* no version, cipher, group or protocol is shared */
	HANDSHAKE_VERIFY,  /* the client's certificate was refused */
	HANDSHAKE_CLOSED,  /* the client has gone */
	HANDSHAKE_BROKEN,  /* no TLS, or damaged */
	HANDSHAKE_INTERNAL, /* no memory, or a fault */
	HANDSHAKE_PLAIN,    /* plain HTTP */
	HANDSHAKE_TIMEOUT,
	HANDSHAKE_BUSY, /* too many waited */
	HANDSHAKES
};

#define STATS_STATUS   100 /* the least number of a status */
#define STATS_STATUSES 500

struct stats {
	_Atomic uint64_t sta_status[STATS_STATUSES]; /* answers of each */
	_Atomic uint64_t sta_cached; /* of them, from the hot set */
	_Atomic uint64_t sta_h2_connections;
	_Atomic uint64_t
	    sta_h2_streams; /* of these: requests that have begun */
	_Atomic uint64_t sta_cached_bytes; /* as of the last tick */
	_Atomic uint64_t sta_sent;	   /* bytes handed to the kernel */
	_Atomic uint64_t sta_unacked;	/* bytes that sockets hold: unacked.h */
	_Atomic uint64_t sta_disk_wait; /* microseconds, of all requests */
	_Atomic uint64_t sta_phase[PHASES]; /* connections, now */
	_Atomic uint64_t sta_accepted;
	_Atomic uint64_t sta_accept_failed;
	_Atomic uint64_t sta_reclaimed; /* idle ones, for others */
	_Atomic uint64_t sta_evicted;	/* without a request, for others */
	_Atomic uint64_t sta_passwords_refused; /* too many waited */
	_Atomic uint64_t sta_siblings_unused;	/* there, and not sent */
	_Atomic uint64_t sta_timeout[TIMERS];
	_Atomic uint64_t sta_capped[CAPS];
	_Atomic uint64_t sta_handshakes[HANDSHAKES];
	struct pw_histogram sta_handshake_time; /* of those that opened */

	struct pw_histogram sta_iteration; /* length of the loop's turns */
	_Atomic uint64_t sta_longest;	   /* of them, microseconds */
	_Atomic uint64_t sta_stalls;	   /* that took stall_log or more */
};

#endif
