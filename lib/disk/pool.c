/*
 * pool: see pool.h.  If no thread of the device is idle for a job that is queued, and the quota permits
 * another, the pool's starter starts one, since pthread_create waits for the lock of the memory map, which
 * other threads may hold for long.  Threads run until the pool is destroyed, or dismisses
 * them (pool_dismiss), because a device that was needed once will be needed again.
 */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/disk/admission.h"
#include "lib/disk/completion.h"
#include "lib/disk/pins.h"
#include "lib/disk/pool_priv.h"
#include "lib/disk/reclaim.h"
#include "lib/os/meter.h"
#include "lib/util/clock.h"

#define POOL_THREADS 16
#define POOL_QUEUE   4096
#define POOL_STACK   ((size_t)256 << 10)
#define POOL_RETRY   100000 /* time after a failed start of a thread, us */
#define POOL_ROOM    3	    /* 1/POOL_ROOM of memory is the budget */
#define POOL_PINS    8	    /* 1/POOL_PINS of memory is for pins */
#define POOL_LONG    ((size_t)16 << 20) /* bytes of JOB_LONG jobs in flight */

_Static_assert(sizeof(struct shares_common) == PW_POOL_SHARED, "pw_pool_share");

static struct pw_device *
pool_device_create(struct pw_pool *pl, dev_t id, enum pool_queue kind)
{
	struct pw_device *dv;
	size_t i;

	dv = cacheline_calloc(sizeof(*dv));
	if (dv == NULL)
		return NULL;
	budget_part_init(&dv->dv_room);
	pthread_mutex_init(&dv->dv_lock, NULL);
	sem_init(&dv->dv_work, 0, 0);
	for (i = 0; i < POOL_GATES; i++)
		gate_init(&dv->dv_gates[i]);
	for (i = 0; i < DROP_LOCKS; i++)
		drop_lock_init(&dv->dv_drops[i]);
	dv->dv_pool = pl;
	dv->dv_id = id;
	dv->dv_kind = kind;
	shares_init(&dv->dv_shares);
	if (pl->pl_common != NULL)
		shares_share(&dv->dv_shares, pl->pl_common, pl->pl_process,
		    id * POOL_QUEUES + kind);
	return dv;
}

/* Returns the next job of the kind, or NULL.  The device's lock is held. */
static struct job *
pool_first(struct pw_device *dv, enum job_kind kind)
{
	struct job *job = NULL;

	if (kind == JOB_LONG && dv->dv_sweep != NULL)
		job = sweep_first(dv->dv_sweep, &dv->dv_shares);
	return job != NULL ? job : shares_first(&dv->dv_shares, kind);
}

/*
 * Wakes a sleeping thread by a semaphore.  The signal of a condition variable may wait for threads that
 * were woken before and have not run yet (glibc before 2.41).  The device's lock is held, as in
 * pool_sleep_until_woken.
 */
static void
pool_wake_one(struct pw_device *dv)
{
	if (dv->dv_sleepers == 0)
		return;
	dv->dv_sleepers--;
	sem_post(&dv->dv_work);
}

static void
pool_device_destroy(struct pw_device *dv)
{
	size_t i;

	for (i = 0; i < POOL_GATES; i++)
		gate_destroy(&dv->dv_gates[i]);
	for (i = 0; i < DROP_LOCKS; i++)
		drop_lock_destroy(&dv->dv_drops[i]);
	sem_destroy(&dv->dv_work);
	pthread_mutex_destroy(&dv->dv_lock);
	free(dv->dv_sweep);
	free(dv);
}

/* Skips slot 0, which devices share if the table is full or memory is short. */
static struct pw_device *
pool_device_find(struct pw_pool *pl, dev_t id, enum pool_queue kind)
{
	size_t i;

	for (i = 1; i < pl->pl_ndevices; i++)
		if (pl->pl_devices[i]->dv_id == id &&
		    pl->pl_devices[i]->dv_kind == kind)
			return pl->pl_devices[i];
	return NULL;
}

struct pw_device *
pool_device(struct pw_pool *pl, dev_t id, enum pool_queue kind)
{
	struct pw_device *dv;

	meter_lock(&pl->pl_lock);
	dv = pool_device_find(pl, id, kind);
	if (dv == NULL && pl->pl_ndevices < POOL_DEVICES) {
		dv = pool_device_create(pl, id, kind);
		if (dv != NULL)
			pl->pl_devices[pl->pl_ndevices++] = dv;
	}
	if (dv == NULL)
		dv = pl->pl_devices[0];
	pthread_mutex_unlock(&pl->pl_lock);
	return dv;
}

static void
pool_free(struct pw_pool *pl)
{
	size_t i;

	for (i = 0; i < pl->pl_ndevices; i++)
		pool_device_destroy(pl->pl_devices[i]);
	admission_destroy(&pl->pl_popular);
	reclaim_destroy(&pl->pl_reclaim);
	budget_destroy(&pl->pl_room);
	if (pl->pl_tiered != NULL)
		pl->pl_tier_destroy(&pl->pl_tiered);
	pins_destroy(&pl->pl_pins);
	if (pl->pl_sink >= 0)
		close(pl->pl_sink);
	if (pl->pl_pagemap >= 0)
		close(pl->pl_pagemap);
	free(pl);
}

int
pw_pool_create(const struct pw_pool_conf *conf, struct pw_pool **out)
{
	struct pw_pool *pl;
	struct os_memory om;
	int error = -ENOMEM;
	unsigned pipes;
	size_t pins;

	pl = cacheline_calloc(sizeof(*pl));
	if (pl == NULL)
		return error;
	os_learn();
	os_memory(&om);
	pl->pl_sockets = om.om_sockets;
	pl->pl_pagemap = -1;
	pl->pl_cold.co_most = os_native_reads() / 2;
	pl->pl_sink = os_sink_open();
	if (pl->pl_sink < 0) {
		error = pl->pl_sink;
		goto fail;
	}
	pl->pl_devices[0] = pool_device_create(pl, 0, POOL_FILES);
	if (pl->pl_devices[0] == NULL)
		goto fail;
	pl->pl_ndevices = 1;
	pl->pl_popular = admission_create(om.om_bytes / 4 * 3);
	pl->pl_room = budget_create((size_t)(om.om_bytes / POOL_ROOM));
	pl->pl_reclaim = reclaim_create(om.om_bytes);
	pins = (size_t)(om.om_bytes / POOL_PINS);
	pipes = os_folio_pipes(pins);
	pl->pl_pagemap = os_pagemap_open();
	pl->pl_pins = pins_create(pins, pl->pl_pagemap >= 0 ? pipes : 0);
	if (pl->pl_popular == NULL || pl->pl_room == NULL ||
	    pl->pl_reclaim == NULL || pl->pl_pins == NULL)
		goto fail;
	if (conf != NULL)
		pl->pl_conf = *conf;
	if (pl->pl_conf.ppc_threads == 0)
		pl->pl_conf.ppc_threads = POOL_THREADS;
	if (pl->pl_conf.ppc_queue == 0)
		pl->pl_conf.ppc_queue = POOL_QUEUE;
	pthread_mutex_init(&pl->pl_lock, NULL);
	clock_cond_init(&pl->pl_ended);
	sem_init(&pl->pl_start, 0, 0);
	*out = pl;
	return 0;

fail:
	pool_free(pl);
	return error;
}

void
pw_pool_share(struct pw_pool *pl, void *memory, unsigned process)
{
	pl->pl_common = memory;
	pl->pl_process = process;
}

static void
pool_stop_threads(struct pw_pool *pl)
{
	struct pw_device *dv;
	size_t i;

	for (i = 0; i < pl->pl_ndevices; i++) {
		dv = pl->pl_devices[i];
		meter_lock(&dv->dv_lock);
		dv->dv_stop = true;
		while (dv->dv_sleepers > 0)
			pool_wake_one(dv);
		pthread_mutex_unlock(&dv->dv_lock);
	}
	meter_lock(&pl->pl_lock);
	pl->pl_stop = true;
	pthread_mutex_unlock(&pl->pl_lock);
	sem_post(&pl->pl_start);
}

void
pool_dismiss(struct pw_pool *pl)
{
	struct pw_device *dv;
	size_t i, n = device_count(pl);

	for (i = 0; i < n; i++) {
		dv = pl->pl_devices[i];
		meter_lock(&dv->dv_lock);
		dv->dv_dismissed += dv->dv_sleepers;
		while (dv->dv_sleepers > 0)
			pool_wake_one(dv);
		pthread_mutex_unlock(&dv->dv_lock);
	}
}

/* Returns true if no job is queued or running, so that no loop waits for a disk. */
static bool
pool_is_idle(struct pw_pool *pl)
{
	struct pw_device *dv;
	bool idle = true;
	size_t i;

	for (i = 0; i < pl->pl_ndevices; i++) {
		dv = pl->pl_devices[i];
		meter_lock(&dv->dv_lock);
		idle =
		    idle && dv->dv_queued == 0 && dv->dv_idle == dv->dv_threads;
		pthread_mutex_unlock(&dv->dv_lock);
	}
	return idle;
}

int
pw_pool_destroy(struct pw_pool **plp, uint64_t timeout_us)
{
	struct pw_pool *pl = *plp;
	struct timespec end = clock_timespec(clock_now() + timeout_us);
	int error = 0;

	if (pl == NULL)
		return 0;
	if (atomic_load(&pl->pl_loops) > 0 && pool_is_idle(pl))
		return -EINVAL;
	*plp = NULL;
	pool_stop_threads(pl);
	meter_lock(&pl->pl_lock);
	while (pl->pl_running > 0 && error == 0)
		error =
		    pthread_cond_timedwait(&pl->pl_ended, &pl->pl_lock, &end);
	if (pl->pl_running > 0 || atomic_load(&pl->pl_loops) > 0) {
		pthread_mutex_unlock(&pl->pl_lock);
		return -EBUSY;
	}
	pthread_mutex_unlock(&pl->pl_lock);
	sem_destroy(&pl->pl_start);
	pthread_cond_destroy(&pl->pl_ended);
	pthread_mutex_destroy(&pl->pl_lock);
	pool_free(pl);
	return 0;
}

void
pool_loop_begin(struct pw_pool *pl)
{
	atomic_fetch_add(&pl->pl_loops, 1);
}

void
pool_loop_end(struct pw_pool *pl)
{
	atomic_fetch_sub(&pl->pl_loops, 1);
}

void
pool_dropped(struct pw_pool *pl, size_t len)
{
	atomic_fetch_add(&pl->pl_dropped, len);
}

struct admission *
pool_admission(struct pw_pool *pl)
{
	return pl->pl_popular;
}

bool
pool_sockets(const struct pw_pool *pl)
{
	return pl->pl_sockets;
}

int
pool_sink(const struct pw_pool *pl)
{
	return pl->pl_sink;
}

struct cold *
pool_cold(struct pw_pool *pl)
{
	return &pl->pl_cold;
}

struct pins *
pool_pins(struct pw_pool *pl)
{
	return pl->pl_pins;
}

struct reclaim *
pool_reclaim(struct pw_pool *pl)
{
	return pl->pl_reclaim;
}

uint64_t
pw_pool_refused(const struct pw_pool *pl)
{
	return atomic_load(&pl->pl_refused);
}

static bool
pool_is_lookup(enum job_kind kind)
{
	return kind == JOB_OPEN || kind == JOB_AGAIN;
}

/*
 * Returns the number of threads that jobs of this kind may occupy together with all other jobs.
 * Lookups have one or two threads more: on FreeBSD each lookup is a job, and a cached file would
 * otherwise wait for the reads of other files.  A quota of 1 is not raised, so one thread runs all
 * jobs.  Tasks of clients, whose queue has threads of its own, have a quarter, since their reads delay
 * those of files.
 * The device's lock is held, as in pool_shows_progress.
 */
static unsigned
pool_quota(const struct pw_device *dv, enum job_kind kind)
{
	const unsigned most = dv->dv_pool->pl_conf.ppc_threads;
	unsigned threads = most;

	if (dv->dv_kind == POOL_TASKS && kind != JOB_LONG &&
	    !pool_is_lookup(kind))
		threads = (most + 3) / 4;
	if (most > 1 && pool_is_lookup(kind))
		threads += kind == JOB_AGAIN ? 2 : 1;
	return threads;
}

/*
 * Returns true if the end of a running job shows that the disk works.  A lookup on a thread above
 * the quota may need no disk, so its end must not hide from the readiness check that all other
 * threads hang.
 */
static bool
pool_shows_progress(const struct pw_device *dv, enum job_kind kind)
{
	return !pool_is_lookup(kind) ||
	       dv->dv_threads - dv->dv_idle <= pool_quota(dv, JOB_SHORT);
}

/*
 * Ends the job, so that no transmission joins it, and returns its waiters.  The time that a crowd waits is
 * not the device's latency.
 */
static struct pw_waiter *
pool_job_finish(struct pw_device *dv, struct job *job, int error)
{
	uint64_t now = clock_now();
	struct pw_waiter *w;

	meter_lock(&dv->dv_lock);
	if (job->job_done != NULL)
		job->job_done(job, error,
		    now - (shares_is_crowd(job->job_kind) ? job->job_began
							  : job->job_since));
	if (!job->job_left)
		pw_histogram_add(&dv->dv_wait, now - job->job_since);
	shares_end(&dv->dv_shares, job, now);
	if (job->job_kind == JOB_LONG)
		dv->dv_long -= job->job_len;
	if (dv->dv_sweep != NULL)
		sweep_end(dv->dv_sweep, job, now);
	if (dv->dv_queued > 0)
		pool_wake_one(dv);
	w = job->job_waiters;
	dv->dv_ended +=
	    !job->job_left && pool_shows_progress(dv, job->job_kind);
	dv->dv_idle++;
	pthread_mutex_unlock(&dv->dv_lock);
	return w;
}

/* Returns true if the job has waiters, and pool_leave, or also pool_defer, was called for all of them. */
static bool
pool_job_is(const struct job *job, unsigned least)
{
	const struct pw_waiter *w = job->job_waiters;

	while (w != NULL &&
	       __atomic_load_n(&w->wt_client, __ATOMIC_RELAXED) >= least)
		w = w->wt_next;
	return w == NULL && job->job_waiters != NULL;
}

static bool
pool_job_was_left(const struct job *job)
{
	return !job->job_stays && pool_job_is(job, POOL_LEFT);
}

/*
 * Returns true if a job of the kind may begin: one is queued, fewer threads are busy than the quota of the
 * kind, and fewer run jobs of the crowd than it may occupy, unless all waiters of the job left or the pool
 * ends.  The device's lock is held, as in the functions below.
 */
static bool
pool_has_next(struct pw_device *dv, enum job_kind kind, uint64_t now)
{
	const struct job *job = pool_first(dv, kind);
	unsigned quota = pool_quota(dv, kind);

	if (job == NULL || dv->dv_threads - dv->dv_idle >= quota)
		return false;
	return !shares_is_crowd(kind) || pool_job_was_left(job) ||
	       dv->dv_stop || shares_crowd_may(&dv->dv_shares, quota, now);
}

/*
 * Returns true if the bytes of running JOB_LONG jobs permit another, since these delay short jobs.  On a
 * slow disk they also wait for a late JOB_NEW, as long as JOB_NEW jobs had less of the disk.
 */
static bool
pool_has_next_long(struct pw_device *dv, uint64_t now)
{
	const struct job *job;
	size_t most = POOL_LONG;

	if (!pool_has_next(dv, JOB_LONG, now))
		return false;
	job = pool_first(dv, JOB_LONG);
	if (device_seeks(dv))
		most = sweep_long(dv->dv_sweep,
		    !shares_before(&dv->dv_shares, JOB_LONG, JOB_NEW));
	return most > 0 &&
	       (dv->dv_long == 0 || dv->dv_long + job->job_len <= most);
}

/* Returns the next job, or NULL if no job may begin. */
static struct job *
pool_choose(struct pw_device *dv, uint64_t now)
{
	/* The first of kinds that used the same time begins. */
	static const enum job_kind order[] = {JOB_AGAIN, JOB_OPEN, JOB_SHORT,
	    JOB_NEW, JOB_LONG, JOB_CROWD_NEW, JOB_CROWD_OPEN};
	enum job_kind best = JOB_KINDS;
	size_t i;

	for (i = 0; i < JOB_KINDS; i++)
		if ((best == JOB_KINDS ||
			shares_before(&dv->dv_shares, order[i], best)) &&
		    (order[i] == JOB_LONG ? pool_has_next_long(dv, now)
					  : pool_has_next(dv, order[i], now)))
			best = order[i];
	return best == JOB_KINDS ? NULL : pool_first(dv, best);
}

/* Has the job end without running.  No transmission joins it from now on. */
static void
pool_job_cancel(struct job *job)
{
	job->job_left = true;
	if (job->job_done != NULL)
		job->job_done(job, -ECANCELED, 0);
	job->job_done = NULL;
}

/* Returns true if all clients that wait for the queued job closed their side, and it may still move. */
static bool
pool_job_is_last(const struct job *job)
{
	return job->job_queued && job->job_client != POOL_LAST &&
	       pool_job_is(job, POOL_LAST) && !pool_job_is(job, POOL_LEFT);
}

/*
 * Returns the next job, after it has moved jobs behind those of others for which pool_defer was called.  Each
 * job moves once.  Thousands of clients may leave at once, so the thread releases the device's lock now and
 * then, for which loops wait.
 */
static struct job *
pool_choose_wanted(struct pw_device *dv, uint64_t now)
{
	unsigned moved = 0;
	struct job *job;

	while ((job = pool_choose(dv, now)) != NULL && pool_job_is_last(job) &&
	       shares_defer(&dv->dv_shares, job, now))
		if (++moved % SHARES_DEFERS == 0) {
			pthread_mutex_unlock(&dv->dv_lock);
			sched_yield();
			meter_lock(&dv->dv_lock);
		}
	return job;
}

/* Removes the next job from its queue and begins it.  Returns NULL if no job may begin. */
static struct job *
pool_job_next(struct pw_device *dv, uint64_t now)
{
	struct job *job = pool_choose_wanted(dv, now);

	if (job == NULL)
		return NULL;
	dv->dv_queued--;
	if (job->job_queued)
		shares_take(&dv->dv_shares, job);
	shares_begin(&dv->dv_shares, job, now);
	if (job->job_ref != NULL)
		*job->job_ref = NULL;
	if (pool_job_was_left(job))
		pool_job_cancel(job);
	if (dv->dv_sweep != NULL)
		sweep_begin(dv->dv_sweep, job, now);
	if (job->job_kind == JOB_LONG)
		dv->dv_long += job->job_len;
	return job;
}

/*
 * Sleeps until pool_wake_one wakes a thread.  While a JOB_LONG is queued on a disk that seeks, sleeps for at
 * most a second, since no other thread ends the hold when SWEEP_STUCK has passed (sweep_long), and while the
 * crowd pauses, until it may go on.  `now` is the time at which no job was found.
 */
static void
pool_sleep_until_woken(struct pw_device *dv, uint64_t now)
{
	uint64_t most = shares_crowd_pause(
	    &dv->dv_shares, pool_quota(dv, JOB_CROWD_NEW), now);
	int n;

	if (most == 0 && device_seeks(dv) && pool_first(dv, JOB_LONG) != NULL)
		most = SWEEP_STUCK;
	dv->dv_sleepers++;
	pthread_mutex_unlock(&dv->dv_lock);
	if (most > 0)
		n = os_sem_wait(&dv->dv_work, most);
	else
		while ((n = sem_wait(&dv->dv_work)) == -1 && errno == EINTR)
			;
	pthread_mutex_lock(&dv->dv_lock);
	/* After a timeout dv_sleepers counts this thread, unless a post is left that no other thread received. */
	if (n != 0 && sem_trywait(&dv->dv_work) == -1)
		dv->dv_sleepers--;
}

/* Returns NULL if the thread must end.  Then it is no longer counted, or the quota would count it as busy. */
static struct job *
pool_job_take(struct pw_device *dv)
{
	uint64_t now;
	struct job *job;

	meter_lock(&dv->dv_lock);
	while ((job = pool_job_next(dv, now = clock_now())) == NULL &&
	       !dv->dv_stop && (dv->dv_dismissed == 0 || dv->dv_queued > 0))
		pool_sleep_until_woken(dv, now);
	dv->dv_idle--;
	if (job == NULL) {
		dv->dv_threads--;
		dv->dv_dismissed -= dv->dv_dismissed > 0;
	}
	/* The end of one job may permit several others (sweep_long, shares_crowd_may). */
	if (dv->dv_sleepers > 0 && pool_choose(dv, clock_now()) != NULL)
		pool_wake_one(dv);
	pthread_mutex_unlock(&dv->dv_lock);
	return job;
}

/* Wakes the starter, too, which ends last. */
static void
pool_thread_end(struct pw_pool *pl)
{
	meter_lock(&pl->pl_lock);
	pl->pl_running--;
	pthread_cond_broadcast(&pl->pl_ended);
	sem_post(&pl->pl_start);
	pthread_mutex_unlock(&pl->pl_lock);
}

static void *
pool_thread_main(void *arg)
{
	struct pw_device *dv = arg;
	struct pw_pool *pl = dv->dv_pool;
	struct pw_waiter *w, *next;
	struct job *job;
	int error;

	os_thread_fetcher();
	while ((job = pool_job_take(dv)) != NULL) {
		error = job->job_left ? -ECANCELED : job->job_run(job);
		for (w = pool_job_finish(dv, job, error); w != NULL; w = next) {
			next = w->wt_next;
			completion_deliver(w, error);
		}
		free(job);
	}
	pool_thread_end(pl);
	return NULL;
}

/* Starts a thread with all signals blocked, as signals belong to the program's own threads. */
static int
pool_thread_start(void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, POOL_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -error;
}

/*
 * Starts the threads that the device waits for.  Returns false if it has no thread and none can be started
 * now.  If it has another, the next job tries again.
 */
static bool
pool_start_threads(struct pw_device *dv)
{
	bool started = true, has = true;

	meter_lock(&dv->dv_lock);
	while (dv->dv_starting > 0 && has) {
		pthread_mutex_unlock(&dv->dv_lock);
		started = pool_thread_start(pool_thread_main, dv) == 0;
		meter_lock(&dv->dv_lock);
		has = started || dv->dv_threads > dv->dv_starting;
		dv->dv_starting -= has;
		if (has && !started) {
			dv->dv_threads--;
			dv->dv_idle--;
			pool_thread_end(dv->dv_pool);
		}
	}
	pthread_mutex_unlock(&dv->dv_lock);
	return has;
}

/* Starts the threads of all devices.  Returns false if a device has none. */
static bool
pool_start_all(struct pw_pool *pl)
{
	size_t i, n = device_count(pl);
	bool all = true;

	for (i = 0; i < n; i++)
		all = pool_start_threads(pl->pl_devices[i]) && all;
	return all;
}

/* Returns true if the pool ends, and only the starter is left. */
static bool
pool_is_over(struct pw_pool *pl)
{
	bool over;

	meter_lock(&pl->pl_lock);
	over = pl->pl_stop && pl->pl_running == 1;
	pthread_mutex_unlock(&pl->pl_lock);
	return over;
}

static void *
pool_starter_main(void *arg)
{
	struct pw_pool *pl = arg;
	bool all = true;

	os_thread_name("pw-start");
	while (!pool_is_over(pl)) {
		if (!all)
			(void)os_sem_wait(&pl->pl_start, POOL_RETRY);
		else
			while (sem_wait(&pl->pl_start) == -1 && errno == EINTR)
				;
		all = pool_start_all(pl);
	}
	pool_thread_end(pl);
	return NULL;
}

int
pw_pool_start(struct pw_pool *pl)
{
	int error = 0;

	meter_lock(&pl->pl_lock);
	if (!pl->pl_started) {
		error = pool_thread_start(pool_starter_main, pl);
		pl->pl_started = error == 0;
		pl->pl_running += error == 0;
	}
	pthread_mutex_unlock(&pl->pl_lock);
	return error;
}

/*
 * Has the starter start a thread if no thread is idle for another job.  A thread that is not started yet
 * counts as idle.  Returns false if the pool has no starter.  dv_lock is held.
 */
static bool
pool_have_thread(struct pw_device *dv, enum job_kind kind)
{
	struct pw_pool *pl = dv->dv_pool;

	if (dv->dv_idle > dv->dv_queued ||
	    dv->dv_threads >= pool_quota(dv, kind))
		return true;
	if (pw_pool_start(pl) != 0)
		return false;
	dv->dv_threads++;
	dv->dv_idle++;
	dv->dv_starting++;
	meter_lock(&pl->pl_lock);
	pl->pl_running++;
	pthread_mutex_unlock(&pl->pl_lock);
	sem_post(&pl->pl_start);
	return true;
}

void
pool_await(struct job *job, struct pw_loop *lp, struct pw_waiter *w)
{
	w->wt_client = pool_client(w);
	w->wt_loop = lp;
	w->wt_next = job->job_waiters;
	job->job_waiters = w;
	lp->lp_pending++;
}

void
pool_leave(struct pw_waiter *w)
{
	__atomic_store_n(&w->wt_client, POOL_LEFT, __ATOMIC_RELAXED);
}

void
pool_defer(struct pw_waiter *w)
{
	__atomic_store_n(&w->wt_client, POOL_LAST, __ATOMIC_RELAXED);
}

unsigned
pool_client(const struct pw_waiter *w)
{
	unsigned client = __atomic_load_n(&w->wt_client, __ATOMIC_RELAXED);

	return client < POOL_LAST ? client : 0;
}

void
pool_join(struct pw_device *dv, struct job **ref, struct pw_waiter *w,
    unsigned client)
{
	meter_lock(&dv->dv_lock);
	if (*ref != NULL) {
		__atomic_store_n(&w->wt_client, client, __ATOMIC_RELAXED);
		shares_join(&dv->dv_shares, *ref, (*ref)->job_plain, client,
		    clock_now());
	}
	pthread_mutex_unlock(&dv->dv_lock);
}

int
pool_enqueue(struct pw_device *dv, struct job *job, enum admit admit)
{
	struct pw_pool *pl = dv->dv_pool;
	unsigned most = admit == ADMIT_BEGUN ? UINT_MAX : pl->pl_conf.ppc_queue;
	int error = -EAGAIN;

	job->job_since = clock_now();
	if (dv->dv_queued - dv->dv_shares.sh_last < most &&
	    pool_have_thread(dv, job->job_kind))
		error =
		    shares_add(&dv->dv_shares, job, most / SHARES_QUEUE + 1);
	if (error != 0) {
		pl->pl_refused += admit < ADMIT_HINT;
		dv->dv_refused += admit < ADMIT_HINT;
		return error;
	}
	dv->dv_queued++;
	pool_wake_one(dv);
	return 0;
}

int
pool_submit(struct pw_device *dv, struct job *job, enum admit admit,
    struct pw_loop *lp, struct pw_waiter *w)
{
	int error;

	job->job_waiters = NULL;
	job->job_client = w == NULL ? 0 : pool_client(w);
	meter_lock(&dv->dv_lock);
	error = pool_enqueue(dv, job, admit);
	if (error == 0 && w != NULL)
		pool_await(job, lp, w);
	pthread_mutex_unlock(&dv->dv_lock);
	return error;
}
