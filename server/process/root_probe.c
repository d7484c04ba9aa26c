/*
 * root_probe: see root_probe.h.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "lib/util/clock.h"
#include "server/content/health.h"
#include "server/process/root_probe.h"
#include "server/util/thread.h"

/* time between two probes, microseconds */
#define PERIOD_US ((uint64_t)1000000)
/* number of probed names; several, because the kernel caches absent names */
#define NAMES	  64
#define QUEUES	  256 /* maximum number of disk queues */

struct probe {
	struct thread pr_thread;
	bool pr_started;
	struct root_probe *pr_all;
	uint64_t pr_dev;
	uint64_t pr_jobs; /* completed jobs at the last check */
	/* last time at which a job completed or a thread was free, microseconds */
	uint64_t pr_working;
};

struct root_probe {
	struct pw_root *const *rp_roots;
	struct pw_pool *rp_pool;
	unsigned rp_threads;
	struct health *rp_health;
	pthread_mutex_t rp_lock;
	pthread_cond_t rp_cond;
	bool rp_ended; /* guarded by rp_lock */
	unsigned rp_count;
	struct probe rp_probes[];
};

/* Returns true if the queues of the device have made progress within HEALTH_SILENT. */
static bool
root_probe_works(struct probe *pr, uint64_t now)
{
	struct pw_device_stats list[QUEUES];
	size_t n = pw_pool_devices(pr->pr_all->rp_pool, list, QUEUES);
	uint64_t jobs = 0;
	bool full = false;

	for (size_t i = 0; i < n; i++) {
		if (list[i].ds_dev != pr->pr_dev)
			continue;
		jobs += list[i].ds_jobs;
		full |= list[i].ds_busy >= pr->pr_all->rp_threads;
	}
	if (!full || jobs != pr->pr_jobs)
		pr->pr_working = now;
	pr->pr_jobs = jobs;
	return now - pr->pr_working < HEALTH_SILENT;
}

static void
root_probe_ask(struct probe *pr, size_t root, unsigned turn)
{
	struct root_health *rh = &pr->pr_all->rp_health->hl_roots[root];
	char name[32];
	int fd;

	snprintf(name, sizeof(name), ".pagewise-ready-%02u", turn % NAMES);
	fd = pw_root_open_file(pr->pr_all->rp_roots[root], name);
	if (fd >= 0)
		close(fd);
	atomic_store(&rh->rh_error, fd == -ENOENT || fd >= 0 ? 0 : fd);
	if (root_probe_works(pr, clock_now()))
		atomic_store(&rh->rh_responded, clock_now());
}

/* Waits until the next probe is due.  Returns false if the probe must stop. */
static bool
root_probe_pause_until_next(struct root_probe *rp)
{
	uint64_t until = clock_now() + PERIOD_US;
	struct timespec ts = clock_timespec(until);
	bool ended;

	pthread_mutex_lock(&rp->rp_lock);
	while (!rp->rp_ended && clock_now() < until)
		pthread_cond_timedwait(&rp->rp_cond, &rp->rp_lock, &ts);
	ended = rp->rp_ended;
	pthread_mutex_unlock(&rp->rp_lock);
	return !ended;
}

static void
root_probe_main(void *arg)
{
	struct probe *pr = arg;
	struct root_probe *rp = pr->pr_all;
	unsigned turn = 0;

	os_thread_name("pw-ready");
	do {
		for (size_t i = 0; i < rp->rp_health->hl_count; i++)
			if (pw_root_dev(rp->rp_roots[i]) == pr->pr_dev)
				root_probe_ask(pr, i, turn);
		turn++;
	} while (root_probe_pause_until_next(rp));
}

static bool
root_probe_has_probe(const struct root_probe *rp, uint64_t dev)
{
	for (unsigned i = 0; i < rp->rp_count; i++)
		if (rp->rp_probes[i].pr_dev == dev)
			return true;
	return false;
}

static void
root_probe_add_probes(struct root_probe *rp)
{
	for (size_t i = 0; i < rp->rp_health->hl_count; i++) {
		uint64_t dev = pw_root_dev(rp->rp_roots[i]);

		if (root_probe_has_probe(rp, dev))
			continue;
		rp->rp_probes[rp->rp_count++] = (struct probe){
		    .pr_all = rp, .pr_dev = dev, .pr_working = clock_now()};
	}
}

int
root_probe_start(struct pw_root *const *roots, struct pw_pool *pool,
    unsigned threads, struct health *hl, struct root_probe **out)
{
	struct root_probe *rp =
	    calloc(1, sizeof(*rp) + hl->hl_count * sizeof(*rp->rp_probes));
	int error = 0;

	if (rp == NULL)
		return -ENOMEM;
	rp->rp_roots = roots;
	rp->rp_pool = pool;
	rp->rp_threads = threads;
	rp->rp_health = hl;
	pthread_mutex_init(&rp->rp_lock, NULL);
	clock_cond_init(&rp->rp_cond);
	root_probe_add_probes(rp);
	*out = rp;
	for (unsigned i = 0; i < rp->rp_count && error == 0; i++) {
		struct probe *pr = &rp->rp_probes[i];

		error = thread_start(&pr->pr_thread, root_probe_main, pr);
		pr->pr_started = error == 0;
	}
	return error;
}

bool
root_probe_end(struct root_probe **rpp, uint64_t timeout)
{
	struct root_probe *rp = *rpp;
	uint64_t now = clock_now(), until = now + timeout;
	bool ended = true;

	if (rp == NULL)
		return true;
	*rpp = NULL;
	pthread_mutex_lock(&rp->rp_lock);
	rp->rp_ended = true;
	pthread_cond_broadcast(&rp->rp_cond);
	pthread_mutex_unlock(&rp->rp_lock);
	for (unsigned i = 0; i < rp->rp_count; i++) {
		struct probe *pr = &rp->rp_probes[i];

		now = clock_now();
		if (!pr->pr_started ||
		    thread_join(&pr->pr_thread, until > now ? until - now : 0))
			continue;
		thread_abandon(&pr->pr_thread);
		ended = false;
	}
	if (!ended)
		return false;
	pthread_cond_destroy(&rp->rp_cond);
	pthread_mutex_destroy(&rp->rp_lock);
	free(rp);
	return true;
}
