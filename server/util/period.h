/*
 * period: lets one of many threads do some work once per period.  Any thread may call it.
 */
#ifndef SERVER_UTIL_PERIOD_H
#define SERVER_UTIL_PERIOD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Returns true to one of the threads that call it at or after *next, and sets *next to one period
 * after now.  Times are in microseconds.
 */
static inline bool
period_begins(_Atomic uint64_t *next, uint64_t now, uint64_t period)
{
	uint64_t due = atomic_load(next);

	return now >= due &&
	       atomic_compare_exchange_strong(next, &due, now + period);
}

#endif
