/*
 * quiet: see quiet.h.
 */
#include <stdlib.h>

#include "lib/disk/pool.h"
#include "lib/disk/quiet.h"
#include "lib/disk/reclaim.h"

struct look_job {
	struct job lj_job; /* first member, as free(job) frees this struct */
	struct reclaim *lj_reclaim;
};

static int
quiet_run(struct job *job)
{
	struct reclaim *rc = ((struct look_job *)job)->lj_reclaim;

	reclaim_look(rc);
	reclaim_done(rc);
	return 0;
}

/*
 * Queues a read of the counters.  If memory is short or no thread can be started, the counters stay old.
 */
static void
quiet_submit(struct pw_pool *pl, struct reclaim *rc)
{
	struct look_job *lj = calloc(1, sizeof(*lj));

	if (lj == NULL) {
		reclaim_done(rc);
		return;
	}
	lj->lj_job.job_run = quiet_run;
	lj->lj_job.job_kind = JOB_SHORT;
	lj->lj_reclaim = rc;
	if (pool_submit(pool_device(pl, 0, POOL_NO_DISK), &lj->lj_job,
		ADMIT_HINT, NULL, NULL) != 0) {
		reclaim_done(rc);
		free(lj);
	}
}

bool
quiet_ask(struct pw_pool *pl, uint64_t now)
{
	struct reclaim *rc = pool_reclaim(pl);

	if (reclaim_due(rc, now))
		quiet_submit(pl, rc);
	return reclaim_is_quiet(rc, now);
}
