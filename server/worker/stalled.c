/*
 * stalled: see stalled.h.
 */
#include "lib/util/clock.h"
#include "server/log/log.h"
#include "server/util/sockaddr_text.h"
#include "server/worker/stalled.h"
#include "server/worker/worker.h"

static struct sched_item *
stalled_find(const struct worker *wk, uint64_t now_us, unsigned *most)
{
	const struct sched *sc = &wk->wk_sched;
	uint64_t until = now_us + sc->sc_timeouts[TIMER_SEND] - STALLED_US;
	struct sched_item *it = TAILQ_FIRST(&sc->sc_timers[TIMER_SEND]),
			  *found = NULL;
	unsigned i, n;

	*most = wk->wk_short ? 0 : HEAP_FEW - 1;
	for (i = 0; i < STALLED_LOOKS && it != NULL && it->it_deadline <= until;
	     i++, it = TAILQ_NEXT(it, it_timed)) {
		n = it->it_ops->responses(it);
		if (n <= *most)
			continue;
		*most = n;
		found = it;
	}
	return found;
}

static void
stalled_tell(struct worker *wk, const struct sched_item *it, unsigned responses)
{
	char text[INET6_ADDRSTRLEN];

	if (!message_rate_tell(&wk->wk_told_stalled, clock_now()))
		return;
	*sockaddr_text(text, it->it_ops->peer(it)) = '\0';
	log_warn(wk->wk_service.svc_log,
	    "ended a connection from %s that takes nothing of its %u "
	    "responses: connections take too much memory",
	    text, responses);
}

void
stalled_evict(struct worker *wk, uint64_t now_us)
{
	struct sched_item *it;
	unsigned responses;

	it = stalled_find(wk, now_us, &responses);
	if (it == NULL)
		return;
	counter_add(&wk->wk_service.svc_stats.sta_capped[CAP_STALLED], 1);
	stalled_tell(wk, it, responses);
	it->it_ops->evict(it);
}
