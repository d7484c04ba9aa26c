/*
 * min_rate: measures how fast a client accepts its response.  Counts only the time with a full
 * socket, so that a slow disk or a busy server does not count against the client.  Counts only
 * acknowledged bytes: data in the kernel's buffers is no progress, but a client that slowly empties
 * a large buffer makes progress.
 */
#include "lib/util/clock.h"
#include "server/conn/conn_priv.h"
#include "server/conn/http2.h"

/*
 * Returns the number of response bytes that the client has acknowledged.  Unacknowledged bytes of
 * earlier responses lower the result, even below 0, so only the difference of two results is
 * meaningful.
 */
static int64_t
min_rate_taken(const struct conn *c)
{
	uint64_t given = c->cn_h2 != NULL
			     ? c->cn_h2->ch_given
			     : response_sent(&c->cn_ex->ex_response);

	return (int64_t)given - (int64_t)transport_unacked(&c->cn_transport);
}

static struct pace *
min_rate_pace_of(const struct conn *c)
{
	return c->cn_h2 != NULL ? &c->cn_h2->ch_pace : &c->cn_ex->ex_pace;
}

/*
 * Adds to pc_full the time since the socket became full, at most send_timeout.  A longer time means
 * that the event loop was blocked.
 */
static void
min_rate_stop(struct conn *c)
{
	struct pace *pc = min_rate_pace_of(c);
	uint64_t us = clock_now() - pc->pc_since;
	uint64_t most = c->cn_worker->wk_sched.sc_timeouts[TIMER_SEND];

	pc->pc_full += us < most ? us : most;
	pc->pc_since = 0;
}

void
min_rate_room(struct conn *c)
{
	min_rate_stop(c);
	conn_timer(c, TIMER_NONE);
}

/* Returns the number of bytes that min_send_rate requires in `us` microseconds. */
static int64_t
min_rate_least(const struct conn *c, uint64_t us)
{
	uint64_t rate = c->cn_worker->wk_service.svc_conf->conf_min_send_rate;

	return (int64_t)(us / 1000 * rate / 1000);
}

/*
 * Returns true if a period has ended and the client was slower than min_send_rate in this period.
 * A period ends when the socket was full for send_timeout in total.  The rate counts all bytes
 * acknowledged in the period.
 */
static bool
min_rate_too_slow(struct conn *c, int64_t now)
{
	struct pace *pc = min_rate_pace_of(c);
	uint64_t us = pc->pc_full;
	int64_t n = now - pc->pc_begin;

	if (us < c->cn_worker->wk_sched.sc_timeouts[TIMER_SEND])
		return false;
	pc->pc_full = 0;
	pc->pc_begin = now;
	return n < min_rate_least(c, us);
}

/*
 * Makes the close a reset.  Otherwise the kernel would keep the unsent data as long as the client
 * acknowledges a byte now and then.
 */
static void
min_rate_give_up(struct conn *c, bool nothing)
{
	struct stats *sta = &c->cn_worker->wk_service.svc_stats;

	transport_forget(&c->cn_transport);
	counter_add(nothing ? &sta->sta_timeout[TIMER_SEND]
			    : &sta->sta_capped[CAP_RATE],
	    1);
}

static void
min_rate_arm(struct conn *c)
{
	struct worker *wk = c->cn_worker;

	conn_timer(c, TIMER_SEND);
	min_rate_pace_of(c)->pc_since =
	    c->cn_item.it_deadline - wk->wk_sched.sc_timeouts[TIMER_SEND];
}

bool
min_rate_full(struct conn *c)
{
	struct pace *pc = min_rate_pace_of(c);

	pc->pc_last = min_rate_taken(c);
	if (!pc->pc_begun)
		pc->pc_begin = pc->pc_last;
	pc->pc_begun = true;
	if (min_rate_too_slow(c, pc->pc_last)) {
		min_rate_give_up(c, false);
		return false;
	}
	min_rate_arm(c);
	return true;
}

bool
min_rate_late(struct conn *c)
{
	struct pace *pc = min_rate_pace_of(c);
	int64_t now = min_rate_taken(c);

	if (!transport_has_room(&c->cn_transport) &&
	    !transport_awaits_disk(&c->cn_transport)) {
		min_rate_stop(c);
		if (now == pc->pc_last || min_rate_too_slow(c, now)) {
			min_rate_give_up(c, now == pc->pc_last);
			return false;
		}
	}
	pc->pc_last = now;
	min_rate_arm(c);
	return true;
}

/* ----------------------------------------------------- after the response */

static void
min_rate_note(struct conn *c, uint64_t left)
{
	c->cn_unseen = 0;
	c->cn_left = left;
	c->cn_since = clock_now();
}

/*
 * Returns TIMER_IDLE if few bytes may be unacknowledged, or if TIMER_REST lasts at least as long as
 * TIMER_IDLE, since the check at the end of TIMER_IDLE is then early enough.
 */
enum timer
min_rate_ended(struct conn *c)
{
	const uint64_t *timeouts = c->cn_worker->wk_sched.sc_timeouts;

	c->cn_left = 0;
	if (timeouts[TIMER_REST] >= timeouts[TIMER_IDLE] ||
	    c->cn_unseen <= RESPONSE_SLICE)
		return TIMER_IDLE;
	min_rate_note(c, transport_unacked(&c->cn_transport));
	return c->cn_left > RESPONSE_SLICE ? TIMER_REST : TIMER_IDLE;
}

/*
 * Leaves cn_since unchanged before send_timeout has passed, so that the next check covers this time
 * too.  One unacknowledged byte is our FIN.
 */
enum rest
min_rate_rest(struct conn *c)
{
	uint64_t left = transport_unacked(&c->cn_transport);
	uint64_t us = clock_now() - c->cn_since;
	int64_t n = (int64_t)(c->cn_left - left);

	if (left <= 1)
		return REST_NONE;
	if (c->cn_left == 0)
		min_rate_note(c, left);
	else if (us >= c->cn_worker->wk_sched.sc_timeouts[TIMER_SEND] &&
		 !transport_awaits_disk(&c->cn_transport)) {
		if (n <= 0 || n < min_rate_least(c, us)) {
			min_rate_give_up(c, n <= 0);
			return REST_LOST;
		}
		min_rate_note(c, left);
	}
	return REST_SOME;
}
