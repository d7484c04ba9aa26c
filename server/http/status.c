/*
 * status: see status.h.
 */
#include "server/http/conditional.h"
#include "server/http/status.h"

static int
status_plan_range(struct plan *pl, struct str value, off_t size)
{
	switch (range_parse(
	    value, size, pl->pl_ranges, pl->pl_max, &pl->pl_nranges)) {
	case RANGE_OK:
		return 206;
	case RANGE_UNSATISFIABLE:
		return 416;
	case RANGE_IGNORE:
		break;
	}
	return 200;
}

void
status_decide(struct plan *pl, const struct request *rq, off_t size,
    const struct validators *va, time_t now)
{
	pl->pl_nranges = 0;
	pl->pl_status = conditional_eval(&rq->rq_pre, va, now);
	if (pl->pl_status != 0)
		return;
	pl->pl_status = 200;
	if (rq->rq_range.s_ptr != NULL &&
	    conditional_if_range(&rq->rq_pre, va, now))
		pl->pl_status = status_plan_range(pl, rq->rq_range, size);
}
