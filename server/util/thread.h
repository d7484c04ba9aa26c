/*
 * thread: a thread that can be joined with a timeout.  POSIX has no such join:
 * pthread_clockjoin_np(3) is unknown to BSD and to the thread sanitizer, and
 * pthread_timedjoin_np(3) measures its timeout by a clock that can be set.  So thread_join waits
 * for a condition variable, and uses pthread_timedjoin_np(3) only to poll.
 */
#ifndef SERVER_UTIL_THREAD_H
#define SERVER_UTIL_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The memory must stay valid until thread_join has returned true. */
struct thread {
	pthread_t th_id;
	pthread_mutex_t th_lock;
	pthread_cond_t th_cond;
	bool th_ended; /* guarded by th_lock */
	/* true after the join; used only by the starting thread */
	bool th_joined;
	void (*th_run)(void *);
	void *th_arg;
};

/*
 * Starts a thread that calls run(arg).  Returns 0 or -errno.  On failure nothing needs to be freed.
 */
int thread_start(struct thread *, void (*run)(void *), void *arg);

/*
 * Joins the thread.  Waits at most timeout_us.  Returns true if the thread has ended.  Call from
 * one thread, after a successful thread_start; may be called again.
 */
bool thread_join(struct thread *, uint64_t timeout_us);

/* Detaches the thread if it was not joined.  The struct must stay valid. */
void thread_abandon(struct thread *);

#endif
