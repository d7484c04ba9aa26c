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
	TAILQ_INIT(&sw->sw_jobs);
	TAILQ_INIT(&sw->sw_news);
	return sw;
}

static void
sweep_insert(struct sweep *sw, struct job *job)
{
	struct job *next;

	TAILQ_FOREACH(next, &sw->sw_jobs, job_next)
	if (next->job_place > job->job_place)
		break;
	if (next == NULL)
		TAILQ_INSERT_TAIL(&sw->sw_jobs, job, job_next);
	else
		TAILQ_INSERT_BEFORE(next, job, job_next);
	job->job_swept = true;
}

struct job *
sweep_first(struct sweep *sw, struct shares *sh)
{
	struct job *job;
	unsigned n;

	if (!TAILQ_EMPTY(&sw->sw_jobs) || !sw->sw_slow)
		return TAILQ_FIRST(&sw->sw_jobs);
	for (n = 0; n < SWEEP_JOBS; n++) {
		job = shares_first(sh, JOB_LONG);
		if (job == NULL)
			break;
		shares_take(sh, job);
		sweep_insert(sw, job);
	}
	return TAILQ_FIRST(&sw->sw_jobs);
}

static bool
sweep_is_window(const struct job *job)
{
	return job->job_kind <= JOB_NEW || job->job_kind == JOB_CROWD_NEW;
}

void
sweep_begin(struct sweep *sw, struct job *job, uint64_t now_us)
{
	if (job->job_swept)
		TAILQ_REMOVE(&sw->sw_jobs, job, job_next);
	job->job_swept = false;
	if (!sweep_is_window(job))
		return;
	if (sw->sw_running++ == 0)
		sw->sw_since = now_us;
	if (job->job_kind == JOB_NEW)
		TAILQ_INSERT_TAIL(&sw->sw_news, job, job_next);
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

	TAILQ_FOREACH(other, &sw->sw_news, job_next)
	if (other == job) {
		TAILQ_REMOVE(&sw->sw_news, other, job_next);
		return;
	}
}

void
sweep_end(struct sweep *sw, const struct job *job, uint64_t now_us)
{
	if (!sweep_is_window(job))
		return;
	if (job->job_kind == JOB_NEW)
		sweep_remove_new(sw, job);
	if (sw->sw_running == 0)
		return;
	if (!job->job_left)
		sweep_measure(sw, job->job_len, now_us);
	sw->sw_running--;
}

size_t
sweep_long(const struct sweep *sw, bool waits)
{
	const struct job *job = waits ? TAILQ_FIRST(&sw->sw_news) : NULL;
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
