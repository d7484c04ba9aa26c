/* stream_slice: time slices and timers of a stream: see stream_priv.h. */
#include "server/content/pace.h"
#include "server/http2/hold.h"
#include "server/http2/stream_priv.h"

void
h2_stream_timer(struct h2_stream *sm, enum timer timer)
{
	sched_timer(&h2_stream_worker(sm)->wk_sched, &sm->sm_item, timer);
}

void
h2_stream_ask_slice(const struct h2_stream *sm)
{
	const struct h2_owner *ho = &sm->sm_session->h2_owner;

	if (!sm->sm_session->h2_stopped)
		ho->ho_wake(ho->ho_arg);
}

void
h2_stream_set_due(struct h2_stream *sm)
{
	struct h2 *h2 = sm->sm_session;

	if (sm->sm_due)
		return;
	sm->sm_due = true;
	TAILQ_INSERT_TAIL(&h2->h2_due, sm, sm_due_entry);
	h2_stream_ask_slice(sm);
}

void
h2_stream_unset_due(struct h2_stream *sm)
{
	if (sm->sm_due)
		TAILQ_REMOVE(&sm->sm_session->h2_due, sm, sm_due_entry);
	sm->sm_due = false;
}

void
h2_stream_await_disk(struct h2_stream *sm)
{
	sm->sm_session->h2_pending++;
	sm->sm_looked = false;
	h2_stream_timer(sm, TIMER_DISK);
	exchange_wait(sm->sm_ex);
}

bool
h2_stream_may_go_on(struct h2_stream *sm)
{
	uint64_t until = sm->sm_ex->ex_paced ? pace_wait(sm->sm_ex) : 0;

	if (until > 0)
		sched_pause(
		    &h2_stream_worker(sm)->wk_sched, &sm->sm_item, until);
	return until == 0;
}

void
h2_stream_watch(struct h2_stream *sm)
{
	if (sm->sm_item.it_timer != TIMER_NONE)
		return;
	sm->sm_then = sm->sm_sent;
	sm->sm_all_then = sm->sm_session->h2_sent;
	h2_stream_timer(sm, TIMER_SEND);
}

void
h2_stream_give_more_back(struct h2_stream *sm)
{
	struct h2_stream *other;

	if (!h2_hold_less(sm) || sm->sm_session->h2_stopped)
		return;
	TAILQ_FOREACH(other, &sm->sm_session->h2_all, sm_all)
	if (other->sm_ex != NULL && other->sm_ex->ex_held && !other->sm_due &&
	    !other->sm_ours) {
		h2_stream_set_due(other);
		break;
	}
}

void
h2_stream_end_exchange(struct h2_stream *sm)
{
	sm->sm_session->h2_rate = sm->sm_ex->ex_rate;
	exchange_free(&sm->sm_ex);
	h2_hold_free(sm);
	h2_stream_give_more_back(sm);
	h2_stream_timer(sm, TIMER_NONE);
	sm->sm_state = H2_DONE;
}

void
h2_stream_give_up(struct h2_stream *sm, uint32_t error)
{
	sm->sm_ours = true;
	h2_stream_timer(sm, TIMER_NONE);
	h2_reset(sm->sm_session, sm->sm_id, error);
}
