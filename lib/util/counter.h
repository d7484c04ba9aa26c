/*
 * counter: counters that one thread writes and any thread may read.
 */
#ifndef LIB_UTIL_COUNTER_H
#define LIB_UTIL_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

/* Adds without a locked instruction, since each counter has one writer. */
static inline void
counter_add(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, now + n, memory_order_relaxed);
}

static inline uint64_t
counter_get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
