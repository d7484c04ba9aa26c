/*
 * conn_pace: how fast a client takes its answer.  Only the time counts in which its socket
 * was full, so neither a disk nor a busy server is held against it; and only what it has
 * acknowledged, so what lies in the kernel's buffers is not held for progress, nor
 * does a large buffer that it empties slowly look like none.
 */
#include <sys/socket.h>

#include "conn_priv.h"

#define SECOND_US ((uint64_t)1000000)

/*
 * Bytes.  What belongs to answers before this one makes it less, even negative: only the
 * difference between two of them means something.
 */
static int64_t
taken(const struct conn *c)
{
	return (int64_t)response_sent(&c->cn_ex->ex_response) -
	       (int64_t)pw_unacked(c->cn_fd);
}

void
conn_pace_stop(struct conn *c)
{
	struct pace *pc = &c->cn_ex->ex_pace;

	if (pc->pc_since > 0)
		pc->pc_full += worker_now() - pc->pc_since;
	pc->pc_since = 0;
}

/* Of all that it took since the period's begin, over the time of it that counts. */
static bool
too_slow(struct conn *c, int64_t now)
{
	const struct worker *wk = c->cn_worker;
	struct pace *pc = &c->cn_ex->ex_pace;
	uint64_t rate = wk->wk_conf->conf_min_send_rate, us = pc->pc_full;
	int64_t n = now - pc->pc_begin;

	if (us < wk->wk_timeouts[TIMER_SEND])
		return false;
	pc->pc_full = 0;
	pc->pc_begin = now;
	return n < (int64_t)(us / 1000 * rate / 1000);
}

/*
 * The socket will be reset: else what lies in it, with the file's pages, would stay in the
 * kernel as long as the client asks for a byte now and then.
 */
static bool
lost(struct conn *c, _Atomic uint64_t *count)
{
	static const struct linger at_once = {.l_onoff = 1};

	setsockopt(c->cn_fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	stat_add(count, 1);
	return false;
}

static bool
slow(struct conn *c)
{
	return lost(c, &c->cn_worker->wk_stats.sta_capped[CAP_RATE]);
}

static bool
arm(struct conn *c)
{
	struct worker *wk = c->cn_worker;

	worker_timer(wk, c, TIMER_SEND);
	c->cn_ex->ex_pace.pc_since =
	    c->cn_deadline - wk->wk_timeouts[TIMER_SEND];
	return true;
}

bool
conn_pace_full(struct conn *c)
{
	uint64_t sent = response_sent(&c->cn_ex->ex_response);
	struct pace *pc = &c->cn_ex->ex_pace;
	bool first = !pc->pc_begun;

	if (c->cn_timer == TIMER_SEND && sent == pc->pc_sent)
		return true;
	conn_pace_stop(c);
	pc->pc_begun = true;
	pc->pc_sent = sent;
	pc->pc_last = taken(c);
	if (first)
		pc->pc_begin = pc->pc_last;
	return too_slow(c, pc->pc_last) ? slow(c) : arm(c);
}

bool
conn_pace_late(struct conn *c)
{
	struct pace *pc = &c->cn_ex->ex_pace;
	int64_t now = taken(c);

	conn_pace_stop(c);
	if (now == pc->pc_last)
		return lost(c, &c->cn_worker->wk_stats.sta_timeout[TIMER_SEND]);
	if (too_slow(c, now))
		return slow(c);
	pc->pc_last = now;
	return arm(c);
}

/* One byte is our end. */
bool
conn_pace_rest(struct conn *c, enum timer timer)
{
	const struct worker *wk = c->cn_worker;
	uint64_t before = c->cn_left, left = pw_unacked(c->cn_fd);
	uint64_t need = wk->wk_conf->conf_min_send_rate *
			(wk->wk_timeouts[timer] / SECOND_US);

	if (left <= 1 || wk->wk_draining)
		return false;
	if (before > 0 && before < left + need)
		return slow(c);
	c->cn_left = left;
	worker_timer(c->cn_worker, c, timer);
	return true;
}
