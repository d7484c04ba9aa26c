/*
 * clock: see clock.h.
 */
#include "lib/util/clock.h"

/* Returns the time of a clock in microseconds. */
static inline uint64_t
clock_read(clockid_t id)
{
	struct timespec ts = {0};

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t
clock_now(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

uint64_t
clock_thread(void)
{
	return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

struct timespec
clock_timespec(uint64_t us)
{
	return (struct timespec){
	    (time_t)(us / 1000000), (long)(us % 1000000) * 1000};
}

void
clock_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}
