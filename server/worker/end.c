/*
 * end: frees the memory of a draining worker, whose last client may take days to read a response,
 * and ends its loop when it has nothing left to do.
 */
#include "lib/disk/pool.h"
#include "lib/util/clock.h"
#include "server/worker/worker.h"

#define SHED	256 /* files, responses and listings freed per tick, in 0.5 ms */
#define SHED_US ((uint64_t)15000000) /* time between two calls of release_now */

void
worker_shed(struct worker *wk)
{
	uint64_t now = clock_now();

	if (!wk->wk_draining || now < wk->wk_shed_at)
		return;
	if (service_shed(&wk->wk_service, SHED) ||
	    !log_release(wk->wk_service.svc_log))
		return;
	wk->wk_shed_at = now + SHED_US;
	pool_dismiss(wk->wk_pool);
	release_now(&wk->wk_release);
}

void
worker_shed_all(struct worker *wk)
{
	while (service_shed(&wk->wk_service, SHED))
		;
	release_all(&wk->wk_release);
}

/* Ends the loop only if no completion is pending, because a completion needs the loop. */
void
worker_maybe_end(struct worker *wk)
{
	if (!wk->wk_draining || !SLIST_EMPTY(&wk->wk_listening) ||
	    wk->wk_sched.sc_count > 0)
		return;
	release_stop(&wk->wk_release);
	if (pw_loop_pending(wk->wk_service.svc_loop) == 0)
		event_base_loopbreak(wk->wk_base);
}

void
worker_quiet(struct worker *wk)
{
	if (SLIST_EMPTY(&wk->wk_listening)) {
		limits_retire(wk->wk_clients, wk->wk_id);
		atomic_store(&wk->wk_is_quiet, true);
	}
	worker_maybe_end(wk);
}
