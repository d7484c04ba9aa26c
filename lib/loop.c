/*
 * loop: creates and destroys a loop, the state that the library keeps for one event-loop
 * thread; drains and ticks the loop, and reads its counters.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lib/disk/async.h"
#include "lib/disk/budget.h"
#include "lib/disk/completion.h"
#include "lib/disk/pool.h"
#include "lib/disk/reclaim.h"
#include "lib/disk/tier_fetch.h"
#include "lib/file/file.h"
#include "lib/file/verified.h"
#include "lib/os/os.h"
#include "lib/send/cold_calls.h"
#include "lib/send/drop_behind.h"
#include "lib/send/piped.h"
#include "lib/send/stalled.h"
#include "lib/util/check.h"
#include "lib/util/clock.h"
#include "lib/util/counter.h"

int
pw_loop_create(
    struct pw_pool *pool, const struct pw_loop_conf *conf, struct pw_loop **out)
{
	struct pw_loop *lp;
	int error;

	if (pool == NULL)
		return -EINVAL;
	lp = cacheline_calloc(sizeof(*lp));
	if (lp == NULL)
		return -ENOMEM;
	lp->lp_pool = pool;
	if (conf != NULL)
		lp->lp_conf = *conf;
	lp->lp_inbox_end = &lp->lp_inbox;
	TAILQ_INIT(&lp->lp_holders);
	TAILQ_INIT(&lp->lp_cold);
	error = os_wake_create(lp->lp_wake);
	if (error != 0)
		goto fail;
	lp->lp_files = file_cache_create(lp->lp_conf.plc_open_files);
	lp->lp_drops = drop_behind_create();
	lp->lp_pipe[0] = -1;
	lp->lp_verified = verified_create();
	if (lp->lp_files == NULL || lp->lp_drops == NULL ||
	    lp->lp_verified == NULL) {
		error = -ENOMEM;
		goto fail_wake;
	}
	pthread_mutex_init(&lp->lp_lock, NULL);
	pool_loop_begin(pool);
	*out = lp;
	return 0;

fail_wake:
	verified_destroy(&lp->lp_verified);
	drop_behind_destroy(&lp->lp_drops);
	file_cache_destroy(&lp->lp_files);
	os_wake_close(lp->lp_wake);
fail:
	free(lp);
	return error;
}

const char *
pw_version(void)
{
	return PW_VERSION;
}

uint64_t
pw_now(void)
{
	return clock_now();
}

int
pw_loop_fd(const struct pw_loop *lp)
{
	return lp->lp_wake[0];
}

bool
pw_loop_spare(struct pw_loop *lp)
{
	return file_cache_spare(lp->lp_files);
}

void
pw_loop_bound(struct pw_loop *lp, size_t bytes)
{
	atomic_store_explicit(&lp->lp_bound, bytes, memory_order_relaxed);
}

unsigned
pw_loop_pending(const struct pw_loop *lp)
{
	return lp->lp_pending;
}

void
pw_wait_begin(struct pw_loop *lp, struct pw_waiter *w)
{
	PW_MUST(w->wt_done != NULL, "wt_done is not set: set it before the "
				    "call");
	w->wt_loop = lp;
	lp->lp_pending++;
}

void
pw_wait_end(struct pw_waiter *w, int error)
{
	PW_MUST(
	    w->wt_loop != NULL, "pw_wait_begin was not called for this waiter");
	completion_deliver(w, error);
}

void
pw_loop_drain(struct pw_loop *lp)
{
	lp->lp_draining = true;
	completion_take(lp);
	lp->lp_draining = false;
	drop_behind_tick(lp, clock_now());
	async_drain(lp);
}

void
pw_loop_tick(struct pw_loop *lp, uint64_t now_us)
{
	file_cache_age(lp->lp_files, now_us);
	admission_tell(pool_admission(lp->lp_pool), &lp->lp_noted);
	drop_behind_tick(lp, now_us);
	async_flush(lp);
	completion_tick(lp);
	budget_tick(pool_room(lp->lp_pool), now_us);
	stalled_yield(lp, now_us);
	cold_calls_tick(lp, now_us);
	pool_tick_pins(lp, now_us);
	tier_fetch_tick(lp->lp_pool, now_us);
}

int
pw_loop_destroy(struct pw_loop **lpp)
{
	struct pw_loop *lp = *lpp;

	if (lp == NULL)
		return 0;
	if (lp->lp_pending > 0 || lp->lp_draining)
		return -EINVAL;
	*lpp = NULL;
	cold_calls_forget(lp);
	async_destroy(&lp->lp_async);
	verified_destroy(&lp->lp_verified);
	piped_close(lp, -1);
	drop_behind_destroy(&lp->lp_drops);
	file_cache_destroy(&lp->lp_files);
	completion_end(lp);
	pool_loop_end(lp->lp_pool);
	pthread_mutex_destroy(&lp->lp_lock);
	os_wake_close(lp->lp_wake);
	free(lp);
	return 0;
}

/* ------------------------------------------------------------------- figures */

void
pw_loop_stats(const struct pw_loop *lp, struct pw_loop_stats *ls)
{
	ls->ls_resident = counter_get(&lp->lp_stats[COUNTED_RESIDENT]);
	ls->ls_missed = counter_get(&lp->lp_stats[COUNTED_MISSED]);
	ls->ls_ahead = counter_get(&lp->lp_stats[COUNTED_AHEAD]);
	ls->ls_evicted = counter_get(&lp->lp_stats[COUNTED_EVICTED]);
	ls->ls_held = counter_get(&lp->lp_stats[COUNTED_HELD]);
}

void
pw_loop_awake(struct pw_loop *lp, uint64_t now_us)
{
	meter_begin(&lp->lp_meter, now_us);
}

void
pw_loop_rest(struct pw_loop *lp, uint64_t now_us)
{
	uint64_t sleeps;

	meter_end(&lp->lp_meter, now_us);
	sleeps = meter_page_sleeps(&lp->lp_meter);
	if (sleeps != lp->lp_page_sleeps)
		reclaim_expect(pool_reclaim(lp->lp_pool));
	lp->lp_page_sleeps = sleeps;
	lp->lp_iteration++;
}

size_t
pw_loop_sleeps(const struct pw_loop *lp, struct pw_sleep list[PW_SLEEPS])
{
	return meter_sleeps(&lp->lp_meter, list);
}
