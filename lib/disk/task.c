/*
 * task: runs work of the caller on disk threads.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/disk/completion.h"
#include "lib/disk/pool.h"

struct task_job {
	struct job tj_job;
	struct pw_task *tj_task;
};

static int
task_run(struct job *job)
{
	struct pw_task *tk = ((struct task_job *)job)->tj_task;

	return tk->tk_work(tk);
}

int
pw_task_run(struct pw_loop *lp, uint64_t dev, struct pw_task *tk)
{
	struct task_job *tj;
	int error;

	if (tk->tk_work == NULL || tk->tk_waiter.wt_done == NULL)
		return -EINVAL;
	tj = calloc(1, sizeof(*tj));
	if (tj == NULL)
		return -ENOMEM;
	tj->tj_job.job_run = task_run;
	tj->tj_job.job_kind = tk->tk_again		     ? JOB_AGAIN
			      : tk->tk_waiter.wt_client == 0 ? JOB_LONG
							     : JOB_NEW;
	tj->tj_task = tk;
	error = pool_submit(pool_device(lp->lp_pool, (dev_t)dev, POOL_TASKS),
	    &tj->tj_job, tk->tk_begun ? ADMIT_BEGUN : ADMIT_NEW, lp,
	    &tk->tk_waiter);
	if (error != 0)
		free(tj);
	return error;
}

void
pw_task_defer(struct pw_task *tk)
{
	pool_defer(&tk->tk_waiter);
}
