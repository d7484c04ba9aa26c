/*
 * thread: see thread.h.
 */
#include <time.h>

#include "lib/os/os.h"

#include "lib/util/clock.h"
#include "server/util/thread.h"

#define NAP_NS 1000000 /* time between two polls, nanoseconds */

static void *
thread_run(void *arg)
{
	struct thread *th = arg;

	th->th_run(th->th_arg);
	pthread_mutex_lock(&th->th_lock);
	th->th_ended = true;
	pthread_cond_signal(&th->th_cond);
	pthread_mutex_unlock(&th->th_lock);
	return NULL;
}

static void
thread_free(struct thread *th)
{
	pthread_cond_destroy(&th->th_cond);
	pthread_mutex_destroy(&th->th_lock);
}

int
thread_start(struct thread *th, void (*run)(void *), void *arg)
{
	int error;

	*th = (struct thread){.th_run = run, .th_arg = arg};
	pthread_mutex_init(&th->th_lock, NULL);
	clock_cond_init(&th->th_cond);
	error = pthread_create(&th->th_id, NULL, thread_run, th);
	if (error != 0)
		thread_free(th);
	return -error;
}

static bool
thread_await(struct thread *th, uint64_t end_us)
{
	struct timespec end = clock_timespec(end_us);
	int error = 0;
	bool ended;

	pthread_mutex_lock(&th->th_lock);
	while (!th->th_ended && error == 0)
		error =
		    pthread_cond_timedwait(&th->th_cond, &th->th_lock, &end);
	ended = th->th_ended;
	pthread_mutex_unlock(&th->th_lock);
	return ended;
}

/*
 * Joins the thread before the time `end`.  A thread that has returned may still hang in I/O of the
 * kernel.
 */
static bool
thread_reap(struct thread *th, uint64_t end)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};

	while (os_thread_reap(th->th_id) != 0) {
		if (clock_now() >= end)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

bool
thread_join(struct thread *th, uint64_t timeout_us)
{
	uint64_t end = clock_now() + timeout_us;

	if (th->th_joined)
		return true;
	if (!thread_await(th, end) || !thread_reap(th, end))
		return false;
	thread_free(th);
	th->th_joined = true;
	return true;
}

void
thread_abandon(struct thread *th)
{
	if (!th->th_joined)
		pthread_detach(th->th_id);
}
