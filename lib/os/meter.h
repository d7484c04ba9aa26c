/*
 * meter: how often and how long the thread of a loop sleeps outside its wait for
 * events, and in which call.
 *
 * The kernel counts how often a thread has given up its processor; that another process
 * took the processor away is counted apart.  Reading that count takes 0.3 us, so it is read
 * before the first call of an iteration that could sleep, and again only after a call
 * that took METER_LOOKS by the clock (25 ns): the call has computed, or was preempted,
 * or has slept.  It is also read after each wait for a lock, so that a short one, which
 * is not counted, is not blamed on a later call that computes for long.
 *
 * Loop's thread only: the calls of other threads find no meter, and their sleep is no fault.
 */
#ifndef LIB_OS_METER_H
#define LIB_OS_METER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/os/os.h"
#include "lib/pagewise.h"

#define METER_LOOKS 50	 /* microseconds: what is shorter is not looked at */
#define METER_LONG  1000 /* the same, without any of these calls */

/* Named as in the manual; several names of one system are another's one. */
enum meter_call {
	METER_ELSEWHERE, /* none of those below */
	METER_FAULT,	 /* a page fault that read a disk, in any call */
	METER_LOCK,	 /* one that another thread has */
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
	METER_PTHREAD_CREATE,
	METER_SEND,
	METER_SENDFILE,
	METER_SPLICE,
	METER_CALLS
};

struct meter {
	enum meter_call mt_call; /* what the thread is at ... */
	uint64_t mt_since;	 /* ... since then, microseconds */
	uint64_t mt_begin;	 /* of the iteration */
	bool mt_known;		 /* mt_base was read in this thread ... */
	bool mt_based;		 /* ... and in this iteration */
	struct os_switches mt_base;
	_Atomic uint64_t mt_times[METER_CALLS]; /* any thread reads these two */
	_Atomic uint64_t mt_us[METER_CALLS];
};

/* Of the loop with an iteration on this thread, or NULL. */
extern _Thread_local struct meter *meter_mine;

/* An iteration begins or ends; begin again: only the call changes. */
void meter_begin(struct meter *, uint64_t now_us);
void meter_end(struct meter *, uint64_t now_us);

void meter_change(struct meter *, enum meter_call);

/* As pw_loop_sleeps.  Any thread. */
size_t meter_sleeps(const struct meter *, struct pw_sleep list[PW_SLEEPS]);

/* Before each call that may sleep.  All time up to the next call counts as that call. */
static inline void
meter_call(enum meter_call call)
{
	struct meter *mt = meter_mine;

	if (mt != NULL && mt->mt_call != call)
		meter_change(mt, call);
}

/* In place of pthread_mutex_lock: to wait for a lock is to sleep as well. */
static inline void
meter_lock(pthread_mutex_t *lock)
{
	if (pthread_mutex_trylock(lock) == 0)
		return;
	meter_call(METER_LOCK);
	pthread_mutex_lock(lock);
}

#endif
