/*
 * completion: what a loop keeps, and how a wait that is over comes to its loop's thread.
 * The loop itself is made, drained and ended in lib/loop.c.
 */
#ifndef LIB_DISK_COMPLETION_H
#define LIB_DISK_COMPLETION_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "lib/disk/admission.h"
#include "lib/os/meter.h"
#include "lib/pagewise.h"
#include "lib/util/cacheline.h"

enum counted {
	COUNTED_RESIDENT, /* the counters of struct pw_loop_stats, in its order */
	COUNTED_MISSED,
	COUNTED_AHEAD,
	COUNTED_EVICTED,
	COUNTED_HELD,
	COUNTED,
};

struct async;
struct file_cache;
struct drops;
struct holder;
struct pipes;
struct verified;

struct pw_loop {
	struct pw_pool *lp_pool;
	struct pw_loop_conf lp_conf;
	int lp_wake[2];
	unsigned lp_pending; /* waits that are not delivered yet */
	bool lp_draining;    /* pw_loop_drain is running */
	struct pw_waiter *lp_later;
	struct file_cache *lp_files;
	struct drops *lp_drops;
	TAILQ_HEAD(, holder)
	lp_holders; /* holder.h; the one that stalls longest is first */
	struct pipes *lp_pipes;
	struct verified *lp_verified;
	struct async *lp_async; /* created at its first use */
	uint64_t lp_rate; /* bytes/s: estimate of the clients' median rate */
	uint64_t lp_iteration;	 /* calls of pw_loop_rest */
	_Atomic size_t lp_bound; /* bytes, or 0: pw_loop_bound */
	struct noted lp_noted;	 /* requests that admission.h has not counted */
	_Atomic uint64_t lp_stats[COUNTED];
	struct meter lp_meter;

	/*
	 * For the inbox, which other threads write.  It is held for some instructions: a signal
	 * under it would have the loop run, on the same core, only to wait for it.
	 */
	alignas(CACHE_LINE) pthread_mutex_t lp_lock;
	atomic_uint lp_signals; /* in flight, sent without lp_lock */
	struct pw_waiter *lp_inbox;
	struct pw_waiter **lp_inbox_end;
};

/* Hands a finished wait to its loop.  Any thread. */
void completion_deliver(struct pw_waiter *, int error);

/* Delivers the wait at the next tick, with error 0.  Loop's thread. */
void completion_later(struct pw_loop *, struct pw_waiter *);

/* Delivers all waits of completion_later.  Loop's thread, as in the next one. */
void completion_deliver_later(struct pw_loop *);

/* Calls wt_done of each delivered wait. */
void completion_take(struct pw_loop *);

/* Waits until no thread signals the loop, which takes at most one signal.  Call before the loop is freed. */
void completion_end(struct pw_loop *);

void completion_count(struct pw_loop *, enum counted);

#endif
