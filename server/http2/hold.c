/*
 * hold: see hold.h.
 */
#include "server/http2/hold.h"
#include "server/http2/stream.h"
#include "server/worker/worker.h"

/* Returns the number of bytes, out of `n`, that count towards the session's limits. */
static size_t
hold_beyond(size_t n)
{
	return n > H2_LIGHT ? n - H2_LIGHT : 0;
}

void
h2_hold_weigh(struct h2_stream *sm)
{
	struct h2 *h2 = sm->sm_session;
	size_t n = sm->sm_head.hh_text.b_cap + sm->sm_head.hh_raw.b_cap;

	if (sm->sm_ex != NULL)
		n += sm->sm_ex->ex_request.rq_joined.b_cap;
	h2->h2_heads -= sm->sm_heavy;
	sm->sm_heavy = hold_beyond(n);
	h2->h2_heads += sm->sm_heavy;
}

void
h2_hold_free(struct h2_stream *sm)
{
	struct worker *wk = sm->sm_session->h2_owner.ho_worker;

	h2_head_release(&sm->sm_head, &wk->wk_service.svc_bufs);
	sm->sm_session->h2_heads -= sm->sm_heavy;
	sm->sm_heavy = 0;
}

size_t
h2_hold_room(const struct h2_stream *sm)
{
	size_t kept = sm->sm_session->h2_kept;

	return H2_LIGHT + (kept < H2_KEPT ? H2_KEPT - kept : 0);
}

void
h2_hold_keep(struct h2_stream *sm, size_t n)
{
	struct h2 *h2 = sm->sm_session;

	h2->h2_kept -= sm->sm_kept;
	sm->sm_kept = hold_beyond(n);
	h2->h2_kept += sm->sm_kept;
}

bool
h2_hold_more(struct h2_stream *sm, size_t bytes)
{
	struct h2 *h2 = sm->sm_session;

	if (h2->h2_more + bytes > H2_MORE)
		return false;
	h2->h2_more += bytes;
	sm->sm_more += bytes;
	return true;
}

bool
h2_hold_less(struct h2_stream *sm)
{
	size_t bytes = sm->sm_more;

	sm->sm_session->h2_more -= bytes;
	sm->sm_more = 0;
	return bytes > 0;
}

bool
h2_hold_is_short(const struct h2 *h2, unsigned others)
{
	struct worker *wk = h2->h2_owner.ho_worker;
	bool lacks = wk->wk_short || (wk->wk_high && others >= HEAP_FEW);

	if (lacks)
		counter_add(&wk->wk_service.svc_stats.sta_capped[CAP_HEAP], 1);
	return lacks;
}
