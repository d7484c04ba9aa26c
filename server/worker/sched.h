/*
 * sched: a run queue and timers of a worker over items that are part of something
 * larger, a connection for example.  The worker's thread.
 *
 * Of an item the worker knows no more than struct sched_ops.  Each call may free the item; drain
 * and close free no other one.  Times are microseconds.
 */
#ifndef SERVER_WORKER_SCHED_H
#define SERVER_WORKER_SCHED_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "server/util/stats.h"
#include "server/worker/hoard.h"

struct sched_item;
struct sockaddr;

struct sched_ops {
	/* Its turn has come. */
	void (*run)(struct sched_item *);

	/* This timer of its has ended, and runs no more. */
	void (*timeout)(struct sched_item *, enum timer);

	/* The server ends: one more request, if it comes soon. */
	void (*drain)(struct sched_item *);
	void (*close)(struct sched_item *);

	/*
	 * Bytes that were given to its client, and not acknowledged yet.  UINT64_MAX: the client
	 * has sent some that were not read.
	 */
	uint64_t (*unacked)(const struct sched_item *);

	/* How far its client has come towards a request. */
	enum hoard_progress (*progress)(const struct sched_item *);
	const struct sockaddr *(*peer)(const struct sched_item *);

	/* Others need its place: closes one that is idle ... */
	void (*reclaim)(struct sched_item *);

	/* ... or, by a reset, one that has not sent a complete request. */
	void (*reset)(struct sched_item *);

	/* Responses that its connection has in flight; 0: it has ended. */
	unsigned (*responses)(const struct sched_item *);

	/* Microseconds since its connection sent data last; 0: that is not known. */
	uint64_t (*sent_ago)(const struct sched_item *);

	/* Ends its connection: memory is short, and its client takes nothing. */
	void (*evict)(struct sched_item *);
#ifdef PW_DEBUG
	/* Aborts if a rule is broken. */
	void (*check)(const struct sched_item *);
#endif
};

struct sched_item {
	const struct sched_ops *it_ops;
	enum phase it_phase; /* as counted */
	enum timer it_timer;
	bool it_queued; /* has a turn */
	uint64_t it_deadline;
	TAILQ_ENTRY(sched_item) it_all;
	TAILQ_ENTRY(sched_item) it_run_entry;
	TAILQ_ENTRY(sched_item) it_timed;
};

TAILQ_HEAD(sched_list, sched_item);

#define SCHED_TICK_US 4096
#define SCHED_TICKS   512 /* a pause is no longer: it may end early */

struct sched {
	struct event sc_again; /* an item is ready, or its timer has ended */
	struct sched_list sc_run_queue;
	unsigned sc_runnable;
	/*
	 * An item is in at most one of these.  Each has one length for
	 * all, so it is in the order of the deadlines, and a timer costs O(1).
	 */
	struct sched_list sc_timers[TIMERS];
	uint64_t sc_timeouts[TIMERS];
	struct sched_item
	    *sc_cursor; /* of whoever walks one in parts, or NULL */
	/*
	 * Those of TIMER_PAUSE, whose lengths differ, by the tick in which they end; sc_pause comes
	 * with each tick while there are any.
	 */
	struct event sc_pause;
	struct sched_list sc_paused[SCHED_TICKS];
	unsigned sc_npaused;
	uint64_t sc_ticked; /* the last tick that was looked at */
	struct sched_list sc_all;
	unsigned sc_count;
	unsigned sc_most; /* of sc_count since the last tick */
	struct sched_list
	    sc_parts; /* of one of them: a stream of a connection */
};

/* Lists only; sc_again and sc_timeouts are the worker's to set. */
void sched_init(struct sched *);

void sched_add(struct sched *, struct sched_item *);
void sched_remove(struct sched *, struct sched_item *);

/* One that has turns and timers, and is no client: of its ops only run, timeout and check are called. */
void sched_add_part(struct sched *, struct sched_item *);
void sched_remove_part(struct sched *, struct sched_item *);

/* sc_again comes with the next event-loop iteration. */
void sched_arm(struct sched *);

/* Queues it again behind all items that are ready now. */
void sched_again(struct sched *, struct sched_item *);

/* Removes the next item from the run queue; NULL: it is empty. */
struct sched_item *sched_next(struct sched *);

/* Starts a timer, in place of the one that runs; TIMER_NONE stops it. */
void sched_timer(struct sched *, struct sched_item *, enum timer);

/* In place of the timer that runs: it has a turn once this time has come, or some 2 s are over. */
void sched_pause(struct sched *, struct sched_item *, uint64_t until_us);

/* sc_pause has come: those whose pauses have ended get their turns. */
void sched_go_on(struct sched *, uint64_t now_us);

/* One whose timer has ended, with that timer, which runs no more; or NULL. */
struct sched_item *sched_expired(struct sched *, uint64_t now_us, enum timer *);

/* Calls drain, or close, of all. */
void sched_drain(struct sched *);
void sched_close(struct sched *);

#ifdef PW_DEBUG
/* Aborts, and says which, if one of the rules of this file or of an item is broken. */
void sched_check(const struct sched *, const struct stats *);
#else
static inline void
sched_check(const struct sched *sc, const struct stats *sta)
{
	(void)sc;
	(void)sta;
}
#endif

#endif
