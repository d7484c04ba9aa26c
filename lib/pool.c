/*
 * pool: see pool.h.  A device's threads are started when a job finds none idle
 * and the quota allows it; they stay, because a device that was needed once
 * will be needed again.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "loop.h"
#include "pool_priv.h"
#include "popular.h"
#include "stats.h"

#define POOL_THREADS 16
#define POOL_QUEUE   4096
#define POOL_STACK   ((size_t)256 << 10)
#define POOL_ROOM    3 /* of memory: the budget for what is not sent yet */
#define POOL_NEW     4 /* windows of new transmissions before one of another */
#define POOL_LONG    ((size_t)16 << 20) /* bytes of downloads under way */

static struct pw_device *
device_create(struct pw_pool *pl, dev_t id)
{
	struct pw_device *dv;
	size_t i;

	dv = calloc(1, sizeof(*dv));
	if (dv == NULL)
		return NULL;
	room_part_init(&dv->dv_room);
	pthread_mutex_init(&dv->dv_lock, NULL);
	pthread_cond_init(&dv->dv_work, NULL);
	for (i = 0; i < POOL_TURNS; i++)
		turn_init(&dv->dv_turns[i]);
	dv->dv_pool = pl;
	dv->dv_id = id;
	for (i = 0; i < JOB_KINDS; i++)
		STAILQ_INIT(&dv->dv_queue[i]);
	return dv;
}

static void
device_destroy(struct pw_device *dv)
{
	size_t i;

	for (i = 0; i < POOL_TURNS; i++)
		turn_destroy(&dv->dv_turns[i]);
	pthread_cond_destroy(&dv->dv_work);
	pthread_mutex_destroy(&dv->dv_lock);
	free(dv);
}

/* Slot 0 is for the devices that find no memory or no place in the table. */
static struct pw_device *
device_find(struct pw_pool *pl, dev_t id)
{
	size_t i;

	for (i = 1; i < pl->pl_ndevices; i++)
		if (pl->pl_devices[i]->dv_id == id)
			return pl->pl_devices[i];
	return NULL;
}

struct pw_device *
pool_device(struct pw_pool *pl, dev_t id)
{
	struct pw_device *dv;

	pthread_mutex_lock(&pl->pl_lock);
	dv = device_find(pl, id);
	if (dv == NULL && pl->pl_ndevices < POOL_DEVICES) {
		dv = device_create(pl, id);
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
		device_destroy(pl->pl_devices[i]);
	popular_destroy(&pl->pl_popular);
	room_destroy(&pl->pl_room);
	if (pl->pl_sink >= 0)
		close(pl->pl_sink);
	free(pl);
}

int
pw_pool_create(const struct pw_pool_conf *conf, struct pw_pool **out)
{
	struct pw_pool *pl;
	uint64_t memory = os_memory();
	int error = -ENOMEM;

	pl = line_calloc(sizeof(*pl));
	if (pl == NULL)
		return error;
	pl->pl_sink = os_sink_open();
	if (pl->pl_sink < 0) {
		error = pl->pl_sink;
		goto fail;
	}
	pl->pl_devices[0] = device_create(pl, 0);
	if (pl->pl_devices[0] == NULL)
		goto fail;
	pl->pl_ndevices = 1;
	pl->pl_popular = popular_create(memory / 4 * 3);
	pl->pl_room = room_create((size_t)(memory / POOL_ROOM));
	if (pl->pl_popular == NULL || pl->pl_room == NULL)
		goto fail;
	pl->pl_conf = *conf;
	if (pl->pl_conf.ppc_threads == 0)
		pl->pl_conf.ppc_threads = POOL_THREADS;
	if (pl->pl_conf.ppc_queue == 0)
		pl->pl_conf.ppc_queue = POOL_QUEUE;
	pthread_mutex_init(&pl->pl_lock, NULL);
	loop_cond_init(&pl->pl_ended);
	*out = pl;
	return 0;

fail:
	pool_free(pl);
	return error;
}

static void
stop_threads(struct pw_pool *pl)
{
	struct pw_device *dv;
	size_t i;

	for (i = 0; i < pl->pl_ndevices; i++) {
		dv = pl->pl_devices[i];
		pthread_mutex_lock(&dv->dv_lock);
		dv->dv_stop = true;
		pthread_cond_broadcast(&dv->dv_work);
		pthread_mutex_unlock(&dv->dv_lock);
	}
}

int
pw_pool_destroy(struct pw_pool **plp, uint64_t timeout_us)
{
	struct pw_pool *pl = *plp;
	struct timespec end = loop_timespec(loop_now() + timeout_us);
	int error = 0;

	if (pl == NULL)
		return 0;
	*plp = NULL;
	stop_threads(pl);
	pthread_mutex_lock(&pl->pl_lock);
	while (pl->pl_running > 0 && error == 0)
		error =
		    pthread_cond_timedwait(&pl->pl_ended, &pl->pl_lock, &end);
	if (pl->pl_running > 0) {
		pthread_mutex_unlock(&pl->pl_lock);
		return -EBUSY;
	}
	pthread_mutex_unlock(&pl->pl_lock);
	pthread_cond_destroy(&pl->pl_ended);
	pthread_mutex_destroy(&pl->pl_lock);
	pool_free(pl);
	return 0;
}

void
pool_dropped(struct pw_pool *pl, size_t len)
{
	atomic_fetch_add(&pl->pl_dropped, len);
}

struct popular *
pool_popular(struct pw_pool *pl)
{
	return pl->pl_popular;
}

uint64_t
pw_pool_refused(const struct pw_pool *pl)
{
	return atomic_load(&pl->pl_refused);
}

void
pw_pool_stats(struct pw_pool *pl, struct pw_pool_stats *ps)
{
	ps->ps_refused = atomic_load(&pl->pl_refused);
	ps->ps_dropped = atomic_load(&pl->pl_dropped);
	ps->ps_unsent = room_used(pl->pl_room);
	ps->ps_unsent_max = room_max(pl->pl_room);
}

static void
device_stats(struct pw_device *dv, struct pw_device_stats *ds)
{
	pthread_mutex_lock(&dv->dv_lock);
	ds->ds_dev = dv->dv_id & ~(POOL_TASKS | FILE_CROSSING);
	ds->ds_queue = dv->dv_id & FILE_CROSSING ? "mounts"
		       : dv->dv_id & POOL_TASKS	 ? "tasks"
						 : "files";
	ds->ds_fsname = dv->dv_fsname;
	ds->ds_threads = dv->dv_threads;
	ds->ds_busy = dv->dv_threads - dv->dv_idle;
	ds->ds_queued = dv->dv_queued;
	ds->ds_jobs = dv->dv_ended;
	ds->ds_bytes = dv->dv_bytes;
	ds->ds_refused = dv->dv_refused;
	pw_histogram_copy(&ds->ds_wait, &dv->dv_wait);
	pthread_mutex_unlock(&dv->dv_lock);
}

size_t
pw_pool_devices(struct pw_pool *pl, struct pw_device_stats *ds, size_t max)
{
	size_t i, n;

	/* Not with the lock: a thread's start has the device's first. */
	pthread_mutex_lock(&pl->pl_lock);
	n = pl->pl_ndevices < max ? pl->pl_ndevices : max;
	pthread_mutex_unlock(&pl->pl_lock);
	for (i = 0; i < n; i++)
		device_stats(pl->pl_devices[i], &ds[i]);
	return n;
}

/* From here on nobody can join the job. */
static struct pw_waiter *
job_finish(struct pw_device *dv, struct job *job, int error)
{
	uint64_t took = loop_now() - job->job_since;
	struct pw_waiter *w;

	pthread_mutex_lock(&dv->dv_lock);
	pool_fetched(dv, job, error, took);
	if (job->job_kind == JOB_LONG)
		dv->dv_long -= job->job_len;
	if (dv->dv_queued > 0)
		pthread_cond_signal(&dv->dv_work);
	w = job->job_waiters;
	dv->dv_ended++;
	pw_histogram_add(&dv->dv_wait, took);
	pthread_mutex_unlock(&dv->dv_lock);
	return w;
}

/* Device's lock is held, as in the next two.  What is under way delays what comes. */
static bool
may_begin(const struct pw_device *dv)
{
	const struct job *job = STAILQ_FIRST(&dv->dv_queue[JOB_LONG]);

	return job != NULL &&
	       (dv->dv_long == 0 || dv->dv_long + job->job_len <= POOL_LONG);
}

/*
 * What is short goes first; then windows of what has sent nothing yet, of which
 * POOL_NEW in a row go before one that is the next of a download.
 */
static struct jobs *
next_queue(struct pw_device *dv)
{
	struct jobs *queue = dv->dv_queue;
	bool begins = may_begin(dv);

	if (!STAILQ_EMPTY(&queue[JOB_SHORT]))
		return &queue[JOB_SHORT];
	if (!STAILQ_EMPTY(&queue[JOB_NEW]) &&
	    (dv->dv_news < POOL_NEW || !begins)) {
		dv->dv_news++;
		return &queue[JOB_NEW];
	}
	dv->dv_news = 0;
	return begins ? &queue[JOB_LONG] : NULL;
}

/* NULL: there is none, or none that may begin. */
static struct job *
job_next(struct pw_device *dv)
{
	struct jobs *jobs = next_queue(dv);
	struct job *job;

	if (jobs == NULL)
		return NULL;
	job = STAILQ_FIRST(jobs);
	STAILQ_REMOVE_HEAD(jobs, job_next);
	dv->dv_queued--;
	if (job->job_kind == JOB_LONG)
		dv->dv_long += job->job_len;
	return job;
}

static struct job *
job_take(struct pw_device *dv)
{
	struct job *job;

	pthread_mutex_lock(&dv->dv_lock);
	dv->dv_idle++;
	while ((job = job_next(dv)) == NULL && !dv->dv_stop)
		pthread_cond_wait(&dv->dv_work, &dv->dv_lock);
	dv->dv_idle--;
	pthread_mutex_unlock(&dv->dv_lock);
	return job;
}

static void *
thread_main(void *arg)
{
	struct pw_device *dv = arg;
	struct pw_pool *pl = dv->dv_pool;
	struct pw_waiter *w, *next;
	struct job *job;
	int error;

	os_thread_fetcher();
	while ((job = job_take(dv)) != NULL) {
		error = job->job_run(job);
		for (w = job_finish(dv, job, error); w != NULL; w = next) {
			next = w->wt_next;
			loop_deliver(w, error);
		}
		free(job);
	}
	pthread_mutex_lock(&pl->pl_lock);
	pl->pl_running--;
	pthread_cond_broadcast(&pl->pl_ended);
	pthread_mutex_unlock(&pl->pl_lock);
	return NULL;
}

/* Signals are for the program's own threads. */
static int
thread_start(struct pw_device *dv)
{
	struct pw_pool *pl = dv->dv_pool;
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	int error;

	pthread_mutex_lock(&pl->pl_lock);
	pl->pl_running++;
	pthread_mutex_unlock(&pl->pl_lock);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, POOL_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&thread, &attr, thread_main, dv);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error != 0) {
		pthread_mutex_lock(&pl->pl_lock);
		pl->pl_running--;
		pthread_mutex_unlock(&pl->pl_lock);
	}
	return -error;
}

/* Device's lock is held.  False if no thread would ever run a job. */
static bool
have_thread(struct pw_device *dv)
{
	if (dv->dv_idle <= dv->dv_queued &&
	    dv->dv_threads < dv->dv_pool->pl_conf.ppc_threads &&
	    thread_start(dv) == 0)
		dv->dv_threads++;
	return dv->dv_threads > 0;
}

void
pool_await(struct job *job, struct pw_loop *lp, struct pw_waiter *w)
{
	w->wt_loop = lp;
	w->wt_next = job->job_waiters;
	job->job_waiters = w;
	lp->lp_pending++;
}

int
pool_enqueue(struct pw_device *dv, struct job *job, enum admit admit)
{
	struct pw_pool *pl = dv->dv_pool;
	struct jobs *jobs = &dv->dv_queue[job->job_kind];

	if ((admit != ADMIT_BEGUN && dv->dv_queued >= pl->pl_conf.ppc_queue) ||
	    !have_thread(dv)) {
		pl->pl_refused += admit != ADMIT_HINT;
		dv->dv_refused += admit != ADMIT_HINT;
		return -EAGAIN;
	}
	job->job_since = loop_now();
	STAILQ_INSERT_TAIL(jobs, job, job_next);
	dv->dv_queued++;
	pthread_cond_signal(&dv->dv_work);
	return 0;
}

int
pool_submit(struct pw_device *dv, struct job *job, enum admit admit,
    struct pw_loop *lp, struct pw_waiter *w)
{
	int error;

	job->job_waiters = NULL;
	pthread_mutex_lock(&dv->dv_lock);
	error = pool_enqueue(dv, job, admit);
	if (error == 0 && w != NULL)
		pool_await(job, lp, w);
	pthread_mutex_unlock(&dv->dv_lock);
	return error;
}

int
pool_room_take(struct pw_device *dv, size_t len, bool slow, struct pw_loop *lp,
    struct pw_waiter *w)
{
	int error;

	if (w != NULL)
		w->wt_loop = lp;
	error = room_take(dv->dv_pool->pl_room, &dv->dv_room, len, slow, w);
	if (error == -EINPROGRESS)
		lp->lp_pending++;
	return error;
}

void
pool_room_give(struct pw_device *dv, size_t len)
{
	room_give(dv->dv_pool->pl_room, &dv->dv_room, len);
}

bool
pool_room_plenty(struct pw_device *dv)
{
	return room_plenty(dv->dv_pool->pl_room, &dv->dv_room);
}

struct room *
pool_room(struct pw_pool *pl)
{
	return pl->pl_room;
}

uint64_t
device_latency(const struct pw_device *dv)
{
	return atomic_load(&dv->dv_latency);
}

unsigned long
device_ended(const struct pw_device *dv)
{
	return atomic_load(&dv->dv_ended);
}

enum os_ask
device_ask(struct pw_device *dv, int fd)
{
	enum os_ask ask;
	const char *name;

	/* Several devices share it: nothing that is said is true of all. */
	if (dv == dv->dv_pool->pl_devices[0])
		return OS_ASK_FETCH;
	pthread_mutex_lock(&dv->dv_lock);
	ask = dv->dv_ask;
	pthread_mutex_unlock(&dv->dv_lock);
	if (ask != OS_ASK_UNKNOWN)
		return ask;
	ask = os_ask_means(fd, &name);
	pthread_mutex_lock(&dv->dv_lock);
	dv->dv_ask = ask;
	dv->dv_fsname = name;
	pthread_mutex_unlock(&dv->dv_lock);
	return ask;
}

bool
device_announce(struct pw_device *dv, char *text, size_t size)
{
	static const char *const means[] = {
	    [OS_ASK_UNKNOWN] = "not known",
	    [OS_ASK_NOWAIT] = "RWF_NOWAIT, cachestat where permitted",
	    [OS_ASK_MINCORE] = "mincore where permitted, else sent by the pool",
	    [OS_ASK_NEVER_COLD] = "always resident",
	    [OS_ASK_FETCH] = "cannot be asked, sent by the pool",
	    [OS_ASK_NATIVE] = "need not be asked, the kernel waits",
	};
	char id[32];
	bool first;

	os_dev_name(dv->dv_id, id, sizeof(id));
	pthread_mutex_lock(&dv->dv_lock);
	first = !dv->dv_announced && dv->dv_ask != OS_ASK_UNKNOWN;
	if (first) {
		dv->dv_announced = true;
		snprintf(text, size, "device %s (%s): residency: %s", id,
		    dv->dv_fsname, means[dv->dv_ask]);
	}
	pthread_mutex_unlock(&dv->dv_lock);
	return first;
}
