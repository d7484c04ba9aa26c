/*
 * oust: see oust.h.
 */
#include "lib/util/clock.h"
#include "server/worker/hoard.h"
#include "server/util/client_key.h"
#include "server/worker/oust.h"
#include "server/log/log.h"
#include "server/util/sockaddr_text.h"
#include "server/worker/worker.h"

#define LOOKS  16 /* at sockets, in a row */
#define MOMENT UINT64_C(500000)
#define LITTLE ((uint64_t)64 << 10) /* bytes that may be lost */

/* Connections without a complete request, the oldest first. */
struct waiting {
	size_t wt_n;
	size_t wt_ripe;	 /* of them, not too young */
	uint64_t wt_due; /* when the next one is ripe; 0: there is none */
	struct hoarded wt_list[HOARD_MAX];
	struct sched_item *wt_items[HOARD_MAX];
};

static uint64_t
ripe_at(const struct worker *wk, const struct sched_item *it, enum timer timer,
    uint64_t grace)
{
	return it->it_deadline - wk->wk_sched.sc_timeouts[timer] + grace;
}

/*
 * The one that has been idle longest, if it has its last answer, else one that has most of
 * it and had time for the rest: where more is under way an answer would be cut.  NULL: none is;
 * *due: when one has had the time, or 0.
 */
static struct sched_item *
longest_idle(struct worker *wk, bool at_once, uint64_t *due)
{
	struct sched_item *it =
			      TAILQ_FIRST(&wk->wk_sched.sc_timers[TIMER_IDLE]),
			  *other = NULL;
	uint64_t left;
	int n;

	*due = 0;
	for (n = 0; it != NULL && n < LOOKS;
	     n++, it = TAILQ_NEXT(it, it_timed)) {
		left = it->it_ops->unacked(it);
		if (left == 0)
			return it;
		if (left <= LITTLE && other == NULL)
			other = it;
	}
	if (other == NULL || at_once)
		return other;
	*due = ripe_at(wk, other, TIMER_IDLE, OUST_LAST_US);
	return *due <= clock_now() ? other : NULL;
}

/* One that has its last answer and our end: nothing is lost with it. */
static struct sched_item *
longest_lingering(struct worker *wk)
{
	struct sched_item *it =
	    TAILQ_FIRST(&wk->wk_sched.sc_timers[TIMER_LINGER]);
	int n;

	for (n = 0; it != NULL && n < LOOKS; n++, it = TAILQ_NEXT(it, it_timed))
		if (it->it_ops->unacked(it) == 0)
			return it;
	return NULL;
}

/* The connections of a trusted proxy, or of a Unix socket, are those of many clients. */
static uint64_t
key_of(const struct worker *wk, const struct sched_item *it)
{
	const struct sockaddr *sa = it->it_ops->peer(it);

	if (sa->sa_family == AF_UNIX ||
	    conf_trusts(wk->wk_service.svc_conf, sa))
		return (uintptr_t)it;
	return client_key(sa);
}

static void
collect(struct worker *wk, uint64_t now, struct waiting *wt)
{
	uint64_t ripe;
	struct sched_item *it;

	wt->wt_n = wt->wt_ripe = 0;
	wt->wt_due = 0;
	TAILQ_FOREACH(it, &wk->wk_sched.sc_timers[TIMER_HEAD], it_timed)
	{
		if (wt->wt_n == HOARD_MAX)
			break;
		ripe = ripe_at(wk, it, TIMER_HEAD, OUST_GRACE_US);
		if (ripe <= now)
			wt->wt_ripe++;
		else if (wt->wt_due == 0)
			wt->wt_due = ripe;
		wt->wt_list[wt->wt_n] =
		    (struct hoarded){.ho_key = key_of(wk, it),
			.ho_begun = it->it_ops->begun(it)};
		wt->wt_items[wt->wt_n++] = it;
	}
}

/* Another worker may have one of an address that has more; but not for ever. */
static bool
others_first(struct worker *wk, uint64_t now)
{
	if (wk->wk_service.svc_conf->conf_workers == 1)
		return false;
	if (wk->wk_spared_first == 0 || now - wk->wk_spared_last > MOMENT)
		wk->wk_spared_first = now;
	wk->wk_spared_last = now;
	return now - wk->wk_spared_first < OUST_OTHERS_US;
}

/* due: 0 in a moment. */
static void
look_again(struct worker *wk, uint64_t now, uint64_t due)
{
	uint64_t us = due > now ? due - now : OUST_GRACE_US;
	struct timeval tv = {
	    (time_t)(us / 1000000), (suseconds_t)(us % 1000000)};

	if (!evtimer_pending(&wk->wk_retry, NULL))
		evtimer_add(&wk->wk_retry, &tv);
}

/* NULL: there is none now; wk_retry is set if there may be one soon. */
static struct sched_item *
without_request(struct worker *wk, bool at_once, unsigned *most)
{
	uint64_t now = clock_now();
	struct sched_item *it;
	struct waiting wt;
	size_t i;
	int n;

	collect(wk, now, &wt);
	if (at_once)
		wt.wt_ripe = wt.wt_n;
	for (n = 0; n < LOOKS; n++) {
		i = hoard_pick(
		    &wk->wk_seed, wt.wt_list, wt.wt_n, wt.wt_ripe, most);
		if (i == HOARD_NONE ||
		    (*most == 1 && !at_once && others_first(wk, now)))
			break;
		it = wt.wt_items[i];
		if (it->it_ops->unacked(it) != UINT64_MAX)
			return it;
		wt.wt_list[i].ho_spared = true;
	}
	if (wt.wt_n > 0)
		look_again(wk, now, wt.wt_due);
	return NULL;
}

static void
tell(struct worker *wk, const struct sched_item *it, unsigned most)
{
	char text[INET6_ADDRSTRLEN];

	if (!message_rate_tell(&wk->wk_told_oust, clock_now()))
		return;
	*sockaddr_text(text, it->it_ops->peer(it)) = '\0';
	log_warn(wk->wk_service.svc_log,
	    "closed a connection from %s that has sent no request, to make "
	    "room (%u connections from there)",
	    text, most);
}

/* To be closed: *most 0, one that is idle; else see hoard_pick.  NULL: there is none. */
static struct sched_item *
choose(struct worker *wk, bool at_once, unsigned *most)
{
	struct sched_item *it = longest_lingering(wk);
	uint64_t due = 0;

	*most = 0;
	if (it == NULL)
		it = longest_idle(wk, at_once, &due);
	if (it == NULL)
		it = without_request(wk, at_once, most);
	if (it == NULL && due != 0)
		look_again(wk, clock_now(), due);
	return it;
}

static void
end(struct worker *wk, struct sched_item *it, unsigned most)
{
	if (most == 0) {
		it->it_ops->reclaim(it);
		return;
	}
	tell(wk, it, most);
	it->it_ops->oust(it);
}

void
oust_done(struct worker *wk)
{
	wk->wk_spared_first = 0;
}

/* A client whose connection is closed connects again (RFC 9112, 9.5). */
static bool
oust(struct worker *wk, bool at_once)
{
	unsigned most;
	struct sched_item *it = choose(wk, at_once, &most);

	if (it == NULL)
		return false;
	/* This is the place that was wished for, if one was. */
	limits_grant(wk->wk_clients, clock_now());
	end(wk, it, most);
	return true;
}

bool
oust_connection(struct worker *wk)
{
	return oust(wk, false);
}

/* A file that nobody is reading can be opened again. */
bool
oust_descriptor(struct worker *wk, bool at_once)
{
	return pw_loop_spare(wk->wk_service.svc_loop) || oust(wk, at_once);
}

void
oust_granted(struct worker *wk)
{
	uint64_t now = clock_now();
	struct sched_item *it;
	unsigned most;

	if (!limits_wanted(wk->wk_clients, now)) {
		if (!wk->wk_paused)
			oust_done(wk);
		return;
	}
	it = choose(wk, false, &most);
	if (it == NULL || !limits_grant(wk->wk_clients, now))
		return;
	end(wk, it, most);
	oust_done(wk);
}

void
oust_tick(struct worker *wk)
{
	uint64_t n = message_rate_left_out(&wk->wk_told_oust, clock_now());

	if (n > 0)
		log_warn(wk->wk_service.svc_log,
		    "closed a connection that has sent no request, to make "
		    "room: %llu more times since the last message",
		    (unsigned long long)n);
}
