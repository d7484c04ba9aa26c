/*
 * stats: what a loop counts.  Written by the loop's thread alone, read by any.
 */
#ifndef LIB_STATS_H
#define LIB_STATS_H

#include "pagewise.h"

enum counted {
	COUNTED_RESIDENT, /* each as in struct pw_loop_stats */
	COUNTED_MISSED,
	COUNTED_AHEAD,
	COUNTED_EVICTED,
	COUNTED_HELD,
	COUNTED,
};

/* No locked instruction: there is one writer. */
static inline void
stat_add(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, now + n, memory_order_relaxed);
}

static inline uint64_t
stat_get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void loop_count(struct pw_loop *, enum counted);

#endif
