/*
 * completion: what a loop keeps, and how a wait that is over comes to its loop's thread.
 * The loop itself is made, drained and ended in lib/loop.c.
 */
#ifndef LIB_DISK_COMPLETION_H
#define LIB_DISK_COMPLETION_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "lib/disk/admission.h"
#include "lib/os/meter.h"
#include "lib/pagewise.h"
#include "lib/util/cacheline.h"

enum counted {
	COUNTED_RESIDENT, /* each as in struct pw_loop_stats */
	COUNTED_MISSED,
	COUNTED_AHEAD,
	COUNTED_EVICTED,
	COUNTED_HELD,
	COUNTED,
};

struct async;
struct file_cache;
struct drops;
struct pipes;
struct verified;

struct pw_loop {
	struct pw_pool *lp_pool;
	struct pw_loop_conf lp_conf;
	int lp_wake[2];
	unsigned lp_pending; /* waits that are to be delivered */
	bool lp_draining;    /* they are being delivered */
	struct pw_waiter *lp_later;
	struct file_cache *lp_files;
	struct drops *lp_drops;
	struct pipes *lp_pipes;
	struct verified *lp_verified;
	struct async *lp_async; /* made when it is first needed */
	uint64_t lp_rate;	/* bytes/s: median of what clients take */
	uint64_t lp_iteration; /* counted by pw_loop_rest; 0: nobody calls it */
	_Atomic size_t lp_bound; /* see pw_loop_bound; pool threads read it */
	struct noted lp_noted;	 /* requests that admission.h has not counted */
	_Atomic uint64_t lp_stats[COUNTED];
	struct meter lp_meter;

	/*
	 * For the inbox, which other threads write.  It is held for some instructions: a signal
	 * under it would have the loop run, on the same core, only to wait for it.
	 */
	alignas(CACHE_LINE) pthread_mutex_t lp_lock;
	atomic_uint lp_signals; /* being sent, without the lock */
	struct pw_waiter *lp_inbox;
	struct pw_waiter **lp_inbox_end;
};

/* Hands a finished wait to its loop.  Any thread. */
void completion_deliver(struct pw_waiter *, int error);

/* At the next tick, with 0.  Loop's thread. */
void completion_later(struct pw_loop *, struct pw_waiter *);

/* All that is to come at the next tick.  Loop's thread, as in the next one. */
void completion_deliver_later(struct pw_loop *);

/* Ends the waits that were delivered: wt_done of each. */
void completion_take(struct pw_loop *);

/* Before the loop is freed: no thread uses it any more.  Waits for at most a signal. */
void completion_end(struct pw_loop *);

void completion_count(struct pw_loop *, enum counted);

#endif
