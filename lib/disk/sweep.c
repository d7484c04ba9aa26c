/*
 * sweep: see sweep.h.
 */
#include "lib/disk/sweep.h"

#include <stdlib.h>

#include "lib/util/clock.h"

#define MEASURED ((uint64_t)32 << 20) /* bytes of a rate measurement */
#define SEEK	 ((uint64_t)1 << 20)  /* added to each job's bytes */
/*
 * Rates with SEEK, bytes per second.  One disk reaches 80 to 170 MB/s with unordered windows, and less
 * than 450 MB/s in sweeps.
 */
#define SLOW	 200000000
#define FAST	 600000000

struct sweep *
sweep_create(void)
{
	struct sweep *sw = calloc(1, sizeof(*sw));

	if (sw == NULL)
		return NULL;
	STAILQ_INIT(&sw->sw_news);
	TAILQ_INIT(&sw->sw_deferring);
	STAILQ_INIT(&sw->sw_rest.sc_jobs);
	return sw;
}

/* Returns the entry of the client, or sw_rest if others have all the entries that it could have. */
static struct sweep_client *
sweep_client(struct sweep *sw, unsigned client)
{
	struct sweep_client *sc, *unused = NULL;
	size_t i;

	sc = &sw->sw_clients[(size_t)((client * 0x9e3779b1U) >> 25) *
			     SWEEP_WAYS];
	for (i = 0; i < SWEEP_WAYS; i++, sc++) {
		if (sc->sc_client == client)
			return sc;
		if (sc->sc_news + sc->sc_longs + sc->sc_deferred == 0)
			unused = sc;
	}
	if (unused == NULL)
		return &sw->sw_rest;
	unused->sc_client = client;
	STAILQ_INIT(&unused->sc_jobs);
	return unused;
}

/* Returns true if the JOB_NEW of the client must wait for JOB_LONG jobs of others. */
static bool
sweep_defers(const struct sweep *sw, const struct sweep_client *sc)
{
	return sw->sw_slow && sw->sw_longs > sc->sc_longs &&
	       (sc->sc_deferred > 0 ||
		   sc->sc_news >= sc->sc_longs + SWEEP_FREE);
}

/* Counts the job, or one less, if its client has an entry. */
static void
sweep_count(struct sweep *sw, const struct job *job, int n)
{
	if (job->job_entry == NULL)
		return;
	if (job->job_kind == JOB_NEW) {
		job->job_entry->sc_news += (unsigned)n;
		return;
	}
	job->job_entry->sc_longs += (unsigned)n;
	sw->sw_longs += (unsigned)n;
}

bool
sweep_account(struct sweep *sw, struct job *job, unsigned most)
{
	struct sweep_client *sc;

	if (job->job_client == 0 || job->job_kind > JOB_NEW)
		return true;
	sc = sweep_client(sw, job->job_client);
	if (job->job_kind == JOB_NEW && sweep_defers(sw, sc)) {
		if (sc->sc_deferred >= most)
			return false;
		job->job_kind = JOB_LONG;
		job->job_deferred = true;
		job->job_entry = sc;
		return true;
	}
	job->job_entry = sc;
	sweep_count(sw, job, 1);
	return true;
}

/* Begins a sweep behind all queued jobs if the last sweep has begun or is full. */
static void
sweep_open(struct sweep *sw, struct jobs *jobs)
{
	if (!sw->sw_begun && sw->sw_jobs < SWEEP_JOBS && !STAILQ_EMPTY(jobs))
		return;
	sw->sw_before = sw->sw_last;
	sw->sw_jobs = 0;
	sw->sw_begun = false;
}

static void
sweep_insert_by_place(struct sweep *sw, struct jobs *jobs, struct job *job)
{
	struct job *before, *next;

	sweep_open(sw, jobs);
	sw->sw_jobs++;
	before = sw->sw_before;
	next =
	    before == NULL ? STAILQ_FIRST(jobs) : STAILQ_NEXT(before, job_next);
	for (; next != NULL && next->job_place <= job->job_place;
	     next = STAILQ_NEXT(next, job_next))
		before = next;
	if (before == NULL)
		STAILQ_INSERT_HEAD(jobs, job, job_next);
	else
		STAILQ_INSERT_AFTER(jobs, before, job, job_next);
	if (next == NULL)
		sw->sw_last = job;
}

static void
sweep_insert_deferred(struct sweep *sw, struct job *job)
{
	struct sweep_client *sc = job->job_entry;

	STAILQ_INSERT_TAIL(&sc->sc_jobs, job, job_next);
	if (sc->sc_deferred++ == 0)
		TAILQ_INSERT_TAIL(&sw->sw_deferring, sc, sc_link);
}

void
sweep_insert(struct sweep *sw, struct jobs *jobs, struct job *job)
{
	if (job->job_deferred) {
		sweep_insert_deferred(sw, job);
		return;
	}
	if (sw != NULL && job->job_kind == JOB_LONG && sw->sw_slow) {
		sweep_insert_by_place(sw, jobs, job);
		return;
	}
	STAILQ_INSERT_TAIL(jobs, job, job_next);
	if (sw != NULL && job->job_kind == JOB_LONG)
		sw->sw_last = job;
}

/* Removes and returns the oldest deferred job of the next client. */
static struct job *
sweep_remove_deferred(struct sweep *sw)
{
	struct sweep_client *sc = TAILQ_FIRST(&sw->sw_deferring);
	struct job *job = STAILQ_FIRST(&sc->sc_jobs);

	STAILQ_REMOVE_HEAD(&sc->sc_jobs, job_next);
	TAILQ_REMOVE(&sw->sw_deferring, sc, sc_link);
	if (--sc->sc_deferred > 0)
		TAILQ_INSERT_TAIL(&sw->sw_deferring, sc, sc_link);
	return job;
}

void
sweep_resume(struct sweep *sw, struct jobs *jobs)
{
	struct job *job;

	while (!TAILQ_EMPTY(&sw->sw_deferring) &&
	       sw->sw_resumed < SWEEP_RESUMED + sw->sw_longs / 4) {
		job = sweep_remove_deferred(sw);
		job->job_deferred = false;
		job->job_resumed = true;
		job->job_entry = NULL;
		/* The time before is no latency of the device. */
		job->job_since = clock_now();
		sweep_insert_by_place(sw, jobs, job);
		sw->sw_resumed++;
	}
}

void
sweep_begin(struct sweep *sw, struct job *job, uint64_t now_us)
{
	if (job->job_kind > JOB_NEW)
		return;
	sw->sw_resumed -= job->job_resumed;
	job->job_resumed = false;
	if (sw->sw_running++ == 0)
		sw->sw_since = now_us;
	if (job->job_kind == JOB_NEW) {
		STAILQ_INSERT_TAIL(&sw->sw_news, job, job_next);
		return;
	}
	if (sw->sw_last == job)
		sw->sw_last = NULL;
	if (sw->sw_before == NULL)
		sw->sw_begun = true;
	else if (sw->sw_before == job)
		sw->sw_before = NULL;
}

/* Updates sw_slow by the rate at which the disk reads while it has a job. */
static void
sweep_measure(struct sweep *sw, size_t len, uint64_t now_us)
{
	sw->sw_busy += now_us - sw->sw_since;
	sw->sw_since = now_us;
	sw->sw_measured += len + SEEK;
	if (sw->sw_measured < MEASURED)
		return;
	sw->sw_rate = sw->sw_measured * 1000000 / (sw->sw_busy + 1);
	if (sw->sw_rate < SLOW || sw->sw_rate > FAST)
		sw->sw_slow = sw->sw_rate < SLOW;
	sw->sw_busy = sw->sw_measured = 0;
}

/* A JOB_NEW that began before the sweep was created is in no list. */
static void
sweep_remove_new(struct sweep *sw, const struct job *job)
{
	struct job *other;

	STAILQ_FOREACH(other, &sw->sw_news, job_next)
	if (other == job) {
		STAILQ_REMOVE(&sw->sw_news, other, job, job_next);
		return;
	}
}

void
sweep_end(struct sweep *sw, const struct job *job, uint64_t now_us)
{
	if (job->job_kind > JOB_NEW)
		return;
	sweep_count(sw, job, -1);
	if (job->job_kind == JOB_NEW)
		sweep_remove_new(sw, job);
	if (sw->sw_running > 0) {
		sweep_measure(sw, job->job_len, now_us);
		sw->sw_running--;
	}
}

size_t
sweep_long(const struct sweep *sw, bool waits)
{
	const struct job *job = waits ? STAILQ_FIRST(&sw->sw_news) : NULL;
	uint64_t age = job == NULL ? 0 : clock_now() - job->job_since;

	return age > SWEEP_LATE && age < SWEEP_STUCK ? 0 : SWEEP_LONG;
}

static size_t
sweep_index(uint64_t ino)
{
	return (ino * 0x9e3779b97f4a7c15U) >> 52;
}

void
sweep_learn(struct sweep *sw, uint64_t ino, off_t off, uint64_t place)
{
	sw->sw_places[sweep_index(ino)] = (struct sweep_place){
	    .sp_ino = ino, .sp_start = place - (uint64_t)off};
}

uint64_t
sweep_place(const struct sweep *sw, uint64_t ino, off_t off)
{
	const struct sweep_place *sp = &sw->sw_places[sweep_index(ino)];

	return sp->sp_ino == ino ? sp->sp_start + (uint64_t)off : 0;
}
