/*
 * timespec: compares times of files.
 */
#ifndef LIB_UTIL_TIMESPEC_H
#define LIB_UTIL_TIMESPEC_H

#include <stdbool.h>
#include <time.h>

static inline bool
timespec_same(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static inline bool
timespec_is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec ||
	       (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

#endif
