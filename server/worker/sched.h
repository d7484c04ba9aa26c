/*
 * sched: a run queue and timers of a worker over items that are part of something
 * larger, a connection for example.  The worker's thread.
 *
 * The worker knows an item only by its struct sched_ops.  Each call may free the item; drain and
 * close free no other item.  Times are microseconds.
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
	/* Runs the item for a time slice. */
	void (*run)(struct sched_item *);

	/* Handles the end of the item's timer, which is stopped. */
	void (*timeout)(struct sched_item *, enum timer);

	/* Starts the drain: the item may have one more request, if it comes soon. */
	void (*drain)(struct sched_item *);
	void (*close)(struct sched_item *);

	/*
	 * Returns the bytes that were given to the client and are not acknowledged yet, or UINT64_MAX
	 * if the client has sent bytes that were not read.
	 */
	uint64_t (*unacked)(const struct sched_item *);

	/* Returns how far the client has come towards a request. */
	enum hoard_progress (*progress)(const struct sched_item *);
	const struct sockaddr *(*peer)(const struct sched_item *);

	/* Closes an idle item, to free its slot. */
	void (*reclaim)(struct sched_item *);

	/* Resets an item that has not sent a complete request, to free its slot. */
	void (*reset)(struct sched_item *);

	/* Returns the responses that its connection has in flight, or 0 if the connection is closed. */
	unsigned (*responses)(const struct sched_item *);

	/* Returns the microseconds since its connection last sent data, or 0 if they are unknown. */
	uint64_t (*sent_ago)(const struct sched_item *);

	/* Evicts its connection: memory is short, and the client takes nothing. */
	void (*evict)(struct sched_item *);
#ifdef PW_DEBUG
	/* Aborts if a rule is broken. */
	void (*check)(const struct sched_item *);
#endif
};

struct sched_item {
	const struct sched_ops *it_ops;
	enum phase it_phase; /* phase in which the statistics count the item */
	enum timer it_timer;
	bool it_queued; /* on the run queue */
	uint64_t it_deadline;
	TAILQ_ENTRY(sched_item) it_all;
	TAILQ_ENTRY(sched_item) it_run_entry;
	TAILQ_ENTRY(sched_item) it_timed;
};

TAILQ_HEAD(sched_list, sched_item);

#define SCHED_TICK_US 4096
#define SCHED_TICKS   512 /* longest pause: a longer one ends early */

struct sched {
	struct event sc_again; /* pending if an item is ready or timed out */
	struct sched_list sc_run_queue;
	unsigned sc_runnable;
	/*
	 * Items with a timer.  An item is in at most one list.  All timers of a list have one length,
	 * so the list is in the order of the deadlines, and a timer costs O(1).
	 */
	struct sched_list sc_timers[TIMERS];
	uint64_t sc_timeouts[TIMERS];
	struct sched_item *sc_cursor; /* next of a walk in parts, or NULL */
	/*
	 * Items with TIMER_PAUSE, whose lengths differ, by the tick in which they end.  sc_pause fires
	 * with each tick while there are any.
	 */
	struct event sc_pause;
	struct sched_list sc_paused[SCHED_TICKS];
	unsigned sc_npaused;
	uint64_t sc_ticked; /* last tick that was handled */
	struct sched_list sc_all;
	unsigned sc_count;
	unsigned sc_most;	    /* highest sc_count since the last tick */
	struct sched_list sc_parts; /* parts of items: streams of connections */
};

/* Initialises the lists.  The worker sets sc_again and sc_timeouts. */
void sched_init(struct sched *);

void sched_add(struct sched *, struct sched_item *);
void sched_remove(struct sched *, struct sched_item *);

/*
 * Adds an item that has time slices and timers but is no client: of its ops only run, timeout and
 * check are called.
 */
void sched_add_part(struct sched *, struct sched_item *);
void sched_remove_part(struct sched *, struct sched_item *);

/* Makes sc_again fire in the next event-loop iteration. */
void sched_arm(struct sched *);

/* Queues the item behind all items that are ready now. */
void sched_again(struct sched *, struct sched_item *);

/* Removes and returns the next item of the run queue, or NULL if it is empty. */
struct sched_item *sched_next(struct sched *);

/* Replaces the item's timer.  TIMER_NONE stops it. */
void sched_timer(struct sched *, struct sched_item *, enum timer);

/*
 * Replaces the item's timer by a pause: queues the item at until_us, or after some 2 s if that is
 * sooner.
 */
void sched_pause(struct sched *, struct sched_item *, uint64_t until_us);

/* Queues the items whose pauses have ended.  Call when sc_pause has fired. */
void sched_go_on(struct sched *, uint64_t now_us);

/* Returns an item whose timer has ended, with that timer, which is stopped; or NULL. */
struct sched_item *sched_expired(struct sched *, uint64_t now_us, enum timer *);

/* Call drain, or close, of all items. */
void sched_drain(struct sched *);
void sched_close(struct sched *);

#ifdef PW_DEBUG
/* Prints the rule and aborts if a rule of this file or of an item is broken. */
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
