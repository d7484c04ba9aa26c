/*
 * loop: one event-loop thread's end of the library.
 */
#ifndef LIB_LOOP_H
#define LIB_LOOP_H

#include <pthread.h>
#include <stdalign.h>

#include "line.h"
#include "pagewise.h"
#include "popular.h"
#include "stats.h"

struct async;
struct file_cache;
struct drops;
struct pipes;

struct pw_loop {
	struct pw_pool *lp_pool;
	struct pw_loop_conf lp_conf;
	int lp_wake[2];
	unsigned lp_pending; /* waits that are to be delivered */
	struct pw_waiter *lp_later;
	struct file_cache *lp_files;
	struct drops *lp_drops;
	struct pipes *lp_pipes;
	struct async *lp_async; /* made when it is first needed */
	uint64_t lp_rate;	/* bytes/s: median of what clients take */
	char *lp_copy;		/* buffer of the path copy, or NULL */
	struct noted lp_noted;	/* requests that popular.h is to be told of */
	_Atomic uint64_t lp_stats[COUNTED];

	/* for the inbox, which other threads write; never held over I/O */
	alignas(CACHE_LINE) pthread_mutex_t lp_lock;
	struct pw_waiter *lp_inbox;
	struct pw_waiter **lp_inbox_end;
};

/* Hands a finished wait to its loop.  Any thread. */
void loop_deliver(struct pw_waiter *, int error);

/* At the next tick, with 0.  Loop's thread. */
void loop_later(struct pw_loop *, struct pw_waiter *);

uint64_t loop_now(void); /* CLOCK_MONOTONIC in microseconds */
struct timespec loop_timespec(uint64_t us);
void loop_cond_init(pthread_cond_t *); /* its timed waits go by that clock */

#endif
