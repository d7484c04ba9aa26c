/*
 * meter: measures how often and how long the thread of a loop sleeps outside its wait for
 * events, and in which call.
 *
 * The kernel counts a thread's voluntary context switches separately from preemptions.  Reading the
 * count takes 0.3 us, and reading the clock 25 ns.  So the meter reads the count before the first
 * call of an iteration that could sleep, and again only after a call that took at least
 * METER_LOOKS, since such a call computed, was preempted, or slept.  The meter also reads the count
 * after each wait for a lock, so that a short wait is not attributed to a later call that computes
 * for a long time.
 *
 * Only the thread of a loop has a meter; other threads may sleep.
 */
#ifndef LIB_OS_METER_H
#define LIB_OS_METER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/os/os.h"
#include "lib/pagewise.h"
#include "lib/util/counter.h"

/* Minimum duration of a call that is examined, microseconds. */
#define METER_LOOKS 50
/* Minimum duration of an iteration without meter_call that is examined, microseconds. */
#define METER_LONG  1000

/* Calls that may sleep, named as in the manual.  Each system makes only some of them. */
enum meter_call {
	METER_ELSEWHERE, /* none of the calls below */
	METER_FAULT,	 /* a page fault that read a disk, in any call */
	METER_LOCK,	 /* a lock that another thread holds */
	METER_CACHESTAT,
	METER_FSTAT,
	METER_FSTATFS,
	METER_IO_URING_ENTER,
	METER_MINCORE,
	METER_MMAP,
	METER_MUNMAP,
	METER_OPENAT,
	METER_OPENAT2,
	METER_PREAD,
	METER_PREADV2,
	METER_SEND,
	METER_SENDFILE,
	METER_SPLICE,
	METER_VMSPLICE,
	METER_CALLS
};

struct meter {
	enum meter_call mt_call; /* call that the thread is in */
	uint64_t mt_since;	 /* start time of mt_call, microseconds */
	uint64_t mt_begin;	 /* start time of the iteration, microseconds */
	bool mt_known;		 /* true if mt_base was read on this thread */
	bool mt_based;		 /* true if mt_base is from this iteration */
	struct os_switches mt_base;
	/* Number of sleeps in each call.  Any thread may read it. */
	_Atomic uint64_t mt_times[METER_CALLS];
	/* Time of the calls that slept, microseconds.  Any thread may read it. */
	_Atomic uint64_t mt_us[METER_CALLS];
};

/* The meter of the loop that runs an iteration on this thread, or NULL. */
extern _Thread_local struct meter *meter_mine;

/*
 * meter_begin starts the measurement of an iteration, and meter_end ends it.  A second meter_begin
 * before meter_end only ends the current call.
 */
void meter_begin(struct meter *, uint64_t now_us);
void meter_end(struct meter *, uint64_t now_us);

void meter_change(struct meter *, enum meter_call);

/* Returns how often the thread slept in calls that read pages of files. */
static inline uint64_t
meter_page_sleeps(const struct meter *mt)
{
	return counter_get(&mt->mt_times[METER_SENDFILE]) +
	       counter_get(&mt->mt_times[METER_SPLICE]) +
	       counter_get(&mt->mt_times[METER_PREADV2]);
}

/* Implements pw_loop_sleeps.  Any thread may call it. */
size_t meter_sleeps(const struct meter *, struct pw_sleep list[PW_SLEEPS]);

/* Attributes the time until the next meter_call to `call`.  Use it before each call that may sleep. */
static inline void
meter_call(enum meter_call call)
{
	struct meter *mt = meter_mine;

	if (mt != NULL && mt->mt_call != call)
		meter_change(mt, call);
}

/* Replaces pthread_mutex_lock, since a wait for a lock is a sleep too. */
static inline void
meter_lock(pthread_mutex_t *lock)
{
	if (pthread_mutex_trylock(lock) == 0)
		return;
	meter_call(METER_LOCK);
	pthread_mutex_lock(lock);
}

#endif
