/*
 * clock: CLOCK_MONOTONIC (clock_gettime(2)), in microseconds.  Any thread; does not wait.
 */
#ifndef LIB_UTIL_CLOCK_H
#define LIB_UTIL_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

uint64_t clock_now(void);

/* Returns the CPU time of the calling thread, in microseconds.  A system call. */
uint64_t clock_thread(void);
struct timespec clock_timespec(uint64_t us);
void clock_cond_init(pthread_cond_t *); /* timed waits use CLOCK_MONOTONIC */

#endif
