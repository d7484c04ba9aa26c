/*
 * thread: a thread whose end can be waited for with a limit.  POSIX has no such
 * join; pthread_clockjoin_np(3) is unknown to BSD and to the thread sanitizer,
 * and pthread_timedjoin_np(3) goes by a clock that can be set: it only looks.
 */
#ifndef SERVER_UTIL_THREAD_H
#define SERVER_UTIL_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Its memory must stay until thread_join has said true. */
struct thread {
	pthread_t th_id;
	pthread_mutex_t th_lock;
	pthread_cond_t th_cond;
	bool th_ended;	/* under the lock */
	bool th_joined; /* the starter's own */
	void (*th_run)(void *);
	void *th_arg;
};

/* 0 or -errno; then nothing is left of it. */
int thread_start(struct thread *, void (*run)(void *), void *arg);

/*
 * True once it has ended, waiting for at most timeout_us.  By one thread, and
 * only after a successful thread_start; may be asked again.
 */
bool thread_join(struct thread *, uint64_t timeout_us);

/* It will not be joined; it keeps its memory. */
void thread_abandon(struct thread *);

#endif
