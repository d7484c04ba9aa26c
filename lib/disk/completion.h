/*
 * completion: the state of a loop, and the delivery of finished waits to its thread.
 * lib/loop.c creates, drains and destroys loops.
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

/* Counters of a loop, in the order of struct pw_loop_stats. */
enum counted {
	COUNTED_RESIDENT,
	COUNTED_MISSED,
	COUNTED_AHEAD,
	COUNTED_EVICTED,
	COUNTED_HELD,
	COUNTED,
};

struct async;
struct cold_call;
struct file_cache;
struct drops;
struct holder;
struct verified;

struct pw_loop {
	struct pw_pool *lp_pool;
	struct pw_loop_conf lp_conf;
	int lp_wake[2];
	unsigned lp_pending; /* number of waits that are not delivered yet */
	bool lp_draining;    /* true while pw_loop_drain runs */
	struct file_cache *lp_files;
	struct drops *lp_drops;
	/* transmissions with a part of the budget (holder.h), the longest without progress first */
	TAILQ_HEAD(, holder) lp_holders;
	/* calls of sendfile(2) whose disk reads may be in flight (cold_calls.h) */
	TAILQ_HEAD(cold_head, cold_call) lp_cold;
	int lp_pipe
	    [2]; /* pipe of piped.h; lp_pipe[0] is -1 or PIPED_REFUSED if there is none */
	struct verified *lp_verified;
	uint64_t
	    lp_page_sleeps;	/* meter_page_sleeps at the last pw_loop_rest */
	struct async *lp_async; /* ring; NULL before the first operation */
	uint64_t lp_rate; /* estimate of the clients' median rate, bytes/s */
	uint64_t lp_iteration; /* number of calls of pw_loop_rest */
	_Atomic size_t
	    lp_bound; /* maximum bytes per call, or 0 (pw_loop_bound) */
	struct noted lp_noted; /* files with requests not counted yet */
	_Atomic uint64_t lp_stats[COUNTED];
	struct meter lp_meter;

	/*
	 * Guards the inbox, which other threads write.  A thread releases the lock before it signals the
	 * loop: otherwise the loop could wake on the same processor, only to wait for the lock.
	 */
	alignas(CACHE_LINE) pthread_mutex_t lp_lock;
	/* number of signals in flight, sent without lp_lock */
	atomic_uint lp_signals;
	struct pw_waiter *lp_inbox;
	struct pw_waiter **lp_inbox_end;
};

/* Queues a finished wait in the inbox of its loop, and wakes the loop.  Any thread. */
void completion_deliver(struct pw_waiter *, int error);

/* Ends a wait that pw_wait_end will not end.  Does not call wt_done.  Loop's thread. */
void completion_forget(struct pw_waiter *);

/* Calls wt_done of delivered waits, for a short time, as thousands may be; wakes the loop if some are left. */
void completion_take(struct pw_loop *);

/* Wakes the loop again if waits are delivered, since a signal may have failed.  Call in each tick. */
void completion_tick(struct pw_loop *);

/* Waits until no thread is about to signal the loop.  Call before the loop is freed. */
void completion_end(struct pw_loop *);

void completion_count(struct pw_loop *, enum counted);

#endif
