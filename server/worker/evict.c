/*
 * evict: see evict.h.
 */
#include "lib/util/clock.h"
#include "server/worker/hoard.h"
#include "server/util/client_key.h"
#include "server/worker/evict.h"
#include "server/log/log.h"
#include "server/worker/worker.h"

#define LOOKS  16 /* sockets checked per choice */
#define GIVES  16 /* maximum connections closed for other workers per call */
/* maximum bytes in flight of an idle victim */
#define LITTLE ((uint64_t)64 << 10)

#define RANK_IDLE UINT32_MAX /* rank of a lingering or idle victim */

/*
 * The connection to close next.  If no connection may be closed now, vi_item is NULL, and vi_rank
 * is half of the highest rank of all connections, young connections included.
 */
struct victim {
	struct sched_item *vi_item;
	uint32_t vi_rank; /* rank (hoard_rank, evict_victim_rank); 0 for none */
	/* connections of the victim's address; 0 if lingering or idle */
	unsigned vi_count;
};

/* Connections without a complete request, the oldest first. */
struct waiting {
	size_t wt_n;
	/* number of connections, at the start of the list, that are old enough */
	size_t wt_ripe;
	/* time when the next connection is old enough, us, or 0 */
	uint64_t wt_due;
	struct hoarded wt_list[HOARD_MAX];
	struct sched_item *wt_items[HOARD_MAX];
};

static uint64_t
evict_ripe_at(const struct worker *wk, const struct sched_item *it,
    enum timer timer, uint64_t grace)
{
	return it->it_deadline - wk->wk_sched.sc_timeouts[timer] + grace;
}

/*
 * Checks the LOOKS connections that have been idle longest.  Returns the first one whose client has
 * acknowledged the last response.  If there is none, returns the first one with at most LITTLE
 * bytes in flight that has been idle for EVICT_LAST_US, or for any time if at_once is true.
 * Otherwise returns NULL, and stores in *due the time at which such a connection may be closed, or
 * 0.  Connections with more bytes in flight stay, since their responses would be aborted.
 */
static struct sched_item *
evict_longest_idle(struct worker *wk, bool at_once, uint64_t *due)
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
	*due = evict_ripe_at(wk, other, TIMER_IDLE, EVICT_LAST_US);
	return *due <= clock_now() ? other : NULL;
}

/*
 * Returns a lingering connection whose client has acknowledged the last response and the
 * server's FIN, or NULL.  Closing such a connection loses nothing.
 */
static struct sched_item *
evict_longest_lingering(struct worker *wk)
{
	struct sched_item *it =
	    TAILQ_FIRST(&wk->wk_sched.sc_timers[TIMER_LINGER]);
	int n;

	for (n = 0; it != NULL && n < LOOKS; n++, it = TAILQ_NEXT(it, it_timed))
		if (it->it_ops->unacked(it) == 0)
			return it;
	return NULL;
}

/*
 * Returns the client's key.  Connections of a trusted proxy or of a Unix socket belong to many
 * clients, so each has a key of its own.
 */
static uint64_t
evict_key_of(const struct worker *wk, const struct sched_item *it)
{
	const struct sockaddr *sa = it->it_ops->peer(it);

	if (sa->sa_family == AF_UNIX ||
	    conf_trusts(wk->wk_service.svc_conf, sa))
		return (uint64_t)(uintptr_t)it
		       << 16; /* so that no two keys share a network */
	return client_key(sa);
}

static void
evict_collect(struct worker *wk, uint64_t now, struct waiting *wt)
{
	uint64_t ripe;
	struct sched_item *it;

	wt->wt_n = wt->wt_ripe = 0;
	wt->wt_due = 0;
	TAILQ_FOREACH(it, &wk->wk_sched.sc_timers[TIMER_HEAD], it_timed)
	{
		if (wt->wt_n == HOARD_MAX)
			break;
		ripe = evict_ripe_at(wk, it, TIMER_HEAD, EVICT_GRACE_US);
		if (ripe <= now)
			wt->wt_ripe++;
		else if (wt->wt_due == 0)
			wt->wt_due = ripe;
		wt->wt_list[wt->wt_n] =
		    (struct hoarded){.ho_key = evict_key_of(wk, it),
			.ho_progress = it->it_ops->progress(it)};
		wt->wt_items[wt->wt_n++] = it;
	}
}

/*
 * Makes wk_retry fire at `due`, or EVICT_GRACE_US from now if `due` has passed.  Does nothing if
 * wk_retry fires earlier anyway.
 */
static void
evict_look_again(struct worker *wk, uint64_t now, uint64_t due)
{
	uint64_t us = due > now ? due - now : EVICT_GRACE_US;
	struct timeval tv = {
	    (time_t)(us / 1000000), (suseconds_t)(us % 1000000)};

	if (evtimer_pending(&wk->wk_retry, NULL) && wk->wk_retry_at <= now + us)
		return;
	wk->wk_retry_at = now + us;
	evtimer_add(&wk->wk_retry, &tv);
}

/*
 * Returns the rank of a victim.  If handshakes are few (hr_few), a connection that has begun a
 * handshake has a quarter of its rank, so that it is not closed while another worker has a young
 * connection.
 */
static uint32_t
evict_victim_rank(const struct hoard_rank *rank)
{
	return rank->hr_few ? hoard_rank(rank) / 4 : hoard_rank(rank);
}

/*
 * Chooses a connection without a complete request.  Sets wk_retry if there is no victim now but may
 * be one soon.
 */
static struct victim
evict_without_request(struct worker *wk, bool at_once)
{
	uint64_t now = clock_now();
	struct hoard_rank rank;
	struct sched_item *it;
	struct waiting wt;
	size_t i;
	int n;

	evict_collect(wk, now, &wt);
	if (at_once)
		wt.wt_ripe = wt.wt_n;
	for (n = 0; n < LOOKS; n++) {
		i = hoard_pick(
		    &wk->wk_seed, wt.wt_list, wt.wt_n, wt.wt_ripe, &rank);
		if (i == HOARD_NONE)
			break;
		it = wt.wt_items[i];
		if (it->it_ops->unacked(it) != UINT64_MAX)
			return (struct victim){
			    it, evict_victim_rank(&rank), rank.hr_count};
		wt.wt_list[i].ho_spared = true;
	}
	if (wt.wt_n > 0)
		evict_look_again(wk, now, wt.wt_due);
	return (struct victim){.vi_rank = hoard_rank(&rank) / 2};
}

static void
evict_tell(struct worker *wk, const struct sched_item *it, unsigned most)
{
	char text[INET6_ADDRSTRLEN];

	if (!message_rate_tell_of(wk->wk_service.svc_told, TOLD_EVICT,
		clock_now(), it->it_ops->peer(it), text))
		return;
	log_warn(wk->wk_service.svc_log,
	    "closed a connection from %s that has sent no request, because "
	    "descriptors ran out or max_connections was reached (%u "
	    "connections from this address)",
	    text, most);
}

/* Returns the connection that closed its side first, but not the one that runs, which may be what needs room. */
static struct sched_item *
evict_first_closed(const struct worker *wk)
{
	struct sched_item *it =
	    TAILQ_FIRST(&wk->wk_sched.sc_timers[TIMER_CLOSED]);

	return it != NULL && it == wk->wk_sched.sc_running
		   ? TAILQ_NEXT(it, it_timed)
		   : it;
}

static struct victim
evict_choose(struct worker *wk, bool at_once)
{
	struct victim vi = {evict_first_closed(wk), RANK_IDLE, 0};
	uint64_t due = 0;

	if (vi.vi_item == NULL)
		vi.vi_item = evict_longest_lingering(wk);
	if (vi.vi_item == NULL)
		vi.vi_item = evict_longest_idle(wk, at_once, &due);
	if (vi.vi_item == NULL)
		vi = evict_without_request(wk, at_once);
	if (vi.vi_item == NULL && due != 0)
		evict_look_again(wk, clock_now(), due);
	return vi;
}

static void
evict_end(struct worker *wk, const struct victim *vi)
{
	struct sched_item *it = vi->vi_item;

	if (vi->vi_rank == RANK_IDLE) {
		it->it_ops->reclaim(it);
		return;
	}
	evict_tell(wk, it, vi->vi_count);
	it->it_ops->reset(it);
}

/*
 * Asks the other workers for a slot if this worker has no victim, or if its victim is alone
 * at its address.  Returns true if a worker was asked.
 */
static bool
evict_asks_others(struct worker *wk, const struct victim *vi)
{
	uint64_t until, now;

	if (wk->wk_service.svc_conf->conf_workers == 1 ||
	    (vi->vi_item != NULL && vi->vi_count != 1))
		return false;
	now = clock_now();
	until = limits_ask(wk->wk_clients, wk->wk_id, vi->vi_rank, now);
	if (until != 0)
		evict_look_again(wk, now, until);
	return until != 0;
}

/* Prefers idle connections, since their clients connect again (RFC 9112, 9.5). */
enum evicted
evict_connection(struct worker *wk)
{
	struct victim vi = evict_choose(wk, false);

	bool asked = evict_asks_others(wk, &vi);

	if (vi.vi_item == NULL)
		return EVICTED_NONE;
	if (asked)
		return EVICTED_LATER;
	evict_end(wk, &vi);
	return EVICTED_ONE;
}

/* Closes a cached file first if no transfer uses it, since it can be opened again. */
enum evicted
evict_descriptor(struct worker *wk)
{
	return pw_loop_spare(wk->wk_service.svc_loop) ? EVICTED_ONE
						      : evict_connection(wk);
}

bool
evict_at_once(struct worker *wk)
{
	struct victim vi;

	if (pw_loop_spare(wk->wk_service.svc_loop))
		return true;
	vi = evict_choose(wk, true);
	if (vi.vi_item != NULL)
		evict_end(wk, &vi);
	return vi.vi_item != NULL;
}

void
evict_for_memory(struct worker *wk)
{
	struct victim vi = evict_choose(wk, false);

	if (vi.vi_item != NULL)
		evict_end(wk, &vi);
}

void
evict_closed(struct worker *wk)
{
	struct sched_item *it;
	int n;

	for (n = 0; n < GIVES; n++) {
		it = TAILQ_FIRST(&wk->wk_sched.sc_timers[TIMER_CLOSED]);
		if (it == NULL)
			break;
		it->it_ops->reclaim(it);
	}
}

void
evict_for_others(struct worker *wk)
{
	struct victim vi;
	unsigned n, asker;

	for (n = 0; limits_is_asked(wk->wk_clients, wk->wk_id); n++) {
		if (n == GIVES) {
			commands_give(&wk->wk_orders, COMMAND_WISH);
			break;
		}
		vi = evict_choose(wk, false);
		asker = limits_asker(
		    wk->wk_clients, wk->wk_id, vi.vi_rank, clock_now());
		if (asker == LIMITS_NOBODY || vi.vi_item == NULL)
			break;
		limits_responded(wk->wk_clients, wk->wk_id, asker);
		evict_end(wk, &vi);
	}
}
