/*
 * sched: a worker's run queue and timers.  Their items are embedded in larger objects, such as
 * connections.  Runs on the worker's thread.
 *
 * The worker uses an item only through its struct sched_ops.  A function that receives the item
 * without const may free it; drain and close free no other item.  Times are microseconds.
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

	/* Handles the expiry of the item's timer, which is stopped already. */
	void (*timeout)(struct sched_item *, enum timer);

	/* Starts the drain.  The item may accept one more request within TIMER_GRACE. */
	void (*drain)(struct sched_item *);
	void (*close)(struct sched_item *);

	/*
	 * Returns the bytes that the server has sent and the client has not acknowledged, or
	 * UINT64_MAX if the client has sent bytes that the server has not read.
	 */
	uint64_t (*unacked)(const struct sched_item *);

	/* Returns which part of a handshake or request the client has sent. */
	enum hoard_progress (*progress)(const struct sched_item *);
	const struct sockaddr *(*peer)(const struct sched_item *);

	/* Closes an idle item, to free its slot. */
	void (*reclaim)(struct sched_item *);

	/* Resets an item that has not sent a complete request, to free its slot. */
	void (*reset)(struct sched_item *);

	/*
	 * Returns the number of responses in flight of the item's connection, or 0 if the
	 * connection is closed.
	 */
	unsigned (*responses)(const struct sched_item *);

	/*
	 * Returns the microseconds since the item's connection last sent data, or 0 if that time is
	 * unknown.
	 */
	uint64_t (*sent_ago)(const struct sched_item *);

	/* Evicts the item's connection, whose client reads nothing, because memory is short. */
	void (*evict)(struct sched_item *);
#ifdef PW_DEBUG
	/* Aborts if the item breaks a rule. */
	void (*check)(const struct sched_item *);
#endif
};

struct sched_item {
	const struct sched_ops *it_ops;
	enum phase it_phase; /* phase in which the statistics count the item */
	enum timer it_timer;
	bool it_queued;	      /* true if on the run queue */
	uint64_t it_deadline; /* time when it_timer expires */
	TAILQ_ENTRY(sched_item) it_all;
	TAILQ_ENTRY(sched_item) it_run_entry;
	TAILQ_ENTRY(sched_item) it_timed;
};

TAILQ_HEAD(sched_list, sched_item);

#define SCHED_TICK_US 4096 /* length of a tick, us */
#define SCHED_TICKS   512  /* ticks of the longest pause */

struct sched {
	struct event sc_again; /* pending if an item is ready or timed out */
	struct sched_list sc_run_queue;
	unsigned sc_runnable; /* items on the run queue */
	struct sched_item
	    *sc_running; /* item of the run queue that runs, or NULL */
	/*
	 * Items with a timer.  An item is in at most one list.  All timers of a list have one
	 * length, so the list is in the order of the deadlines, and setting a timer takes O(1).
	 */
	struct sched_list sc_timers[TIMERS];
	uint64_t sc_timeouts[TIMERS]; /* length of each timer */
	struct sched_item *sc_cursor; /* next item of stalled_evict, or NULL */
	/*
	 * Paused items (TIMER_PAUSE), in a list for each tick in which a pause may end, since
	 * pauses differ in length.  sc_pause fires with each tick while an item is paused.
	 */
	struct event sc_pause;
	struct sched_list sc_paused[SCHED_TICKS];
	unsigned sc_npaused; /* items with TIMER_PAUSE */
	uint64_t sc_ticked;  /* last tick that was handled */
	struct sched_list sc_all;
	unsigned sc_count;	    /* connections in sc_all */
	unsigned sc_most;	    /* highest sc_count since the last tick */
	struct sched_list sc_parts; /* parts of items: streams of connections */
};

/* Initialises the lists.  The worker sets sc_again and sc_timeouts. */
void sched_init(struct sched *);

void sched_add(struct sched *, struct sched_item *);
void sched_remove(struct sched *, struct sched_item *);

/*
 * Adds an item that has time slices and timers but is not a connection.  Only its ops run, timeout
 * and check are called.
 */
void sched_add_part(struct sched *, struct sched_item *);
void sched_remove_part(struct sched *, struct sched_item *);

/* Makes sc_again fire in the next event-loop iteration. */
void sched_arm(struct sched *);

/* Queues the item behind all items that are ready now. */
void sched_again(struct sched *, struct sched_item *);

/* Removes and returns the next item of the run queue, or NULL if it is empty. */
struct sched_item *sched_next(struct sched *);

/* Replaces the item's timer.  TIMER_NONE stops the timer. */
void sched_timer(struct sched *, struct sched_item *, enum timer);

/*
 * Replaces the item's timer by a pause, after which the item is queued.  The pause ends at
 * until_us, or after SCHED_TICKS (2.1 s) if that is sooner.
 */
void sched_pause(struct sched *, struct sched_item *, uint64_t until_us);

/* Queues the items whose pauses have ended.  Call when sc_pause has fired. */
void sched_go_on(struct sched *, uint64_t now_us);

/*
 * Stops an expired timer, stores the kind of timer, and returns the item.  Returns NULL if no timer
 * has expired.
 */
struct sched_item *sched_expired(struct sched *, uint64_t now_us, enum timer *);

/* sched_drain calls the drain function of each connection; sched_close calls the close function. */
void sched_drain(struct sched *);
void sched_close(struct sched *);

#ifdef PW_DEBUG
/*
 * Checks the rules of this file and of each item.  If a rule is broken, prints the rule and aborts.
 */
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
