/*
 * stats: see stats.h.
 */
#include "loop.h"
#include "stats.h"

void
loop_count(struct pw_loop *lp, enum counted what)
{
	stat_add(&lp->lp_stats[what], 1);
}

void
pw_loop_stats(const struct pw_loop *lp, struct pw_loop_stats *ls)
{
	ls->ls_resident = stat_get(&lp->lp_stats[COUNTED_RESIDENT]);
	ls->ls_missed = stat_get(&lp->lp_stats[COUNTED_MISSED]);
	ls->ls_ahead = stat_get(&lp->lp_stats[COUNTED_AHEAD]);
	ls->ls_evicted = stat_get(&lp->lp_stats[COUNTED_EVICTED]);
	ls->ls_held = stat_get(&lp->lp_stats[COUNTED_HELD]);
}

void
pw_histogram_add(struct pw_histogram *hg, uint64_t us)
{
	size_t i = 0;

	while (i < PW_HISTOGRAM - 1 && us > (uint64_t)1 << i)
		i++;
	stat_add(&hg->hg_count[i], 1);
	stat_add(&hg->hg_sum, us);
}

void
pw_histogram_copy(struct pw_histogram *to, const struct pw_histogram *from)
{
	size_t i;

	for (i = 0; i < PW_HISTOGRAM; i++)
		to->hg_count[i] = stat_get(&from->hg_count[i]);
	to->hg_sum = stat_get(&from->hg_sum);
}
