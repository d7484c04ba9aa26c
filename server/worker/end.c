/*
 * end: ends the loop of a draining worker that has nothing left to do.
 */
#include "server/worker/worker.h"

/* Ends the loop only if no completion is pending, because a completion needs the loop. */
void
worker_maybe_end(struct worker *wk)
{
	if (wk->wk_draining && SLIST_EMPTY(&wk->wk_listening) &&
	    wk->wk_sched.sc_count == 0 &&
	    pw_loop_pending(wk->wk_service.svc_loop) == 0)
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
