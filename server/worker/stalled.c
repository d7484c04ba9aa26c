/*
 * stalled: see stalled.h.
 */
#include "lib/util/clock.h"
#include "server/log/log.h"
#include "server/worker/stalled.h"
#include "server/worker/worker.h"

static void
stalled_tell(struct worker *wk, const struct sched_item *it, unsigned responses)
{
	char text[INET6_ADDRSTRLEN];

	if (!message_rate_tell_of(wk->wk_service.svc_told, TOLD_STALLED,
		clock_now(), it->it_ops->peer(it), text))
		return;
	log_warn(wk->wk_service.svc_log,
	    "connections use too much memory: aborted a connection from %s "
	    "whose "
	    "client read nothing of its %u responses; lower max_connections, "
	    "or "
	    "add memory",
	    text, responses);
}

/* Returns the next item of the walk, or NULL.  Begins a new walk when all items were checked. */
static struct sched_item *
stalled_next(struct worker *wk, uint64_t now_us)
{
	struct sched *sc = &wk->wk_sched;
	struct stalled *sd = &wk->wk_stalled;
	struct sched_item *it = sc->sc_cursor;
	uint64_t until = now_us + sc->sc_timeouts[TIMER_SEND] - STALLED_US;

	if (it != NULL && it->it_timer == TIMER_SEND &&
	    it->it_deadline <= until)
		return it;
	sd->sd_any = wk->wk_short && !sd->sd_found;
	sd->sd_found = false;
	it = TAILQ_FIRST(&sc->sc_timers[TIMER_SEND]);
	return it != NULL && it->it_deadline <= until ? it : NULL;
}

static void
stalled_end(struct worker *wk, struct sched_item *it, unsigned responses)
{
	wk->wk_stalled.sd_found = true;
	counter_add(&wk->wk_service.svc_stats.sta_capped[CAP_STALLED], 1);
	stalled_tell(wk, it, responses);
	it->it_ops->evict(it);
}

/* Continues with sc_cursor, because an eviction may also free other items of the list. */
void
stalled_evict(struct worker *wk, uint64_t now_us)
{
	struct sched *sc = &wk->wk_sched;
	struct sched_item *it, *first = NULL;
	unsigned looks, asks = 0, evicted = 0, n;

	for (looks = 0; looks < STALLED_LOOKS && asks < STALLED_ASKS &&
			evicted < STALLED_MOST;
	     looks++) {
		it = stalled_next(wk, now_us);
		if (it == NULL || it == first)
			break;
		if (first == NULL)
			first = it;
		sc->sc_cursor = TAILQ_NEXT(it, it_timed);
		n = it->it_ops->responses(it);
		if (n == 0 || (n < HEAP_FEW && !wk->wk_stalled.sd_any))
			continue;
		asks++;
		if (it->it_ops->sent_ago(it) < STALLED_US)
			continue;
		if (it == first)
			first = NULL;
		evicted++;
		stalled_end(wk, it, n);
	}
}
