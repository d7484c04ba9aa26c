/*
 * window: chooses the size of a transmission's next window, and returns the budget
 * of bytes that were sent.
 */
#include <errno.h>

#include "lib/disk/completion.h"
#include "lib/send/facts.h"
#include "lib/send/holder.h"
#include "lib/send/path.h"
#include "lib/send/sink.h"
#include "lib/send/window_size.h"
#include "lib/util/clock.h"

#define SLOW	 ((uint64_t)2 << 20) /* rate of a slow client, bytes/s */
#define MEASURED ((off_t)256 << 10)  /* least bytes of a measurement */
/* least time of a measurement of less than MEASURED bytes, microseconds */
#define SPAN	 250000
#define STEP	 ((size_t)32 << 10) /* least bytes of budget returned at once */

/* Moves the loop's estimate of the median rate towards `rate`.  A mean would follow a single fast client. */
static void
window_remember(struct pw_loop *lp, uint64_t rate)
{
	if (lp->lp_rate == 0)
		lp->lp_rate = rate;
	else if (rate > lp->lp_rate)
		lp->lp_rate += lp->lp_rate / 8 + 1;
	else
		lp->lp_rate -= lp->lp_rate / 8;
}

/*
 * Measures the rate of acknowledged bytes.  Waits for MEASURED bytes or SPAN, because fewer bytes fit
 * into a client's buffers at any rate.
 */
void
send_rate_measure(struct pw_send *s)
{
	uint64_t now = clock_now(), us = now - send_priv(s)->ss_mark;
	long unacked = sink_unacked(s);
	off_t taken = s->snd_off - (unacked > 0 ? unacked : 0);
	off_t n = taken > send_priv(s)->ss_mark_off
		      ? taken - send_priv(s)->ss_mark_off
		      : 0;

	if (send_priv(s)->ss_mark > 0 && n < MEASURED && us < SPAN)
		return;
	if (send_priv(s)->ss_mark > 0) {
		s->snd_rate = (uint64_t)n * 1000000 / (us + 1) + 1;
		if (s->snd_pace == 0)
			window_remember(s->snd_loop, s->snd_rate);
	}
	send_priv(s)->ss_mark = now;
	send_priv(s)->ss_mark_off = taken;
}

void
send_window_choose(struct pw_send *s)
{
	struct pw_device *dv = file_priv(s->snd_file)->fp_device;
	struct window_facts wf;
	bool guess;
	size_t size;

	send_rate_measure(s);
	guess = s->snd_rate == 0;
	wf = (struct window_facts){
	    .wf_rate = guess ? s->snd_loop->lp_rate : s->snd_rate,
	    .wf_guess = guess && !pool_room_half(dv),
	    .wf_latency = device_latency(dv),
	    .wf_plenty = pool_room_plenty(dv),
	    .wf_seeks = device_seeks(dv),
	    .wf_lead = send_priv(s)->ss_lead,
	};
	/* Bytes above the rate limit would wait, and use memory that other transmissions need. */
	if (s->snd_pace > 0) {
		if (guess || wf.wf_rate > s->snd_pace)
			wf.wf_rate = s->snd_pace;
		wf.wf_guess = wf.wf_plenty = false;
		wf.wf_lead = 0;
	}
	/* A client of a bounded loop might not read, so a new transmission starts with a small window. */
	if (send_bound(s) > 0)
		wf.wf_plenty = false;
	size = send_bound(s) > 0 && guess ? WINDOW_LEAST : window_size(&wf);
	if (s->snd_readahead == PW_READAHEAD_AUTO)
		send_priv(s)->ss_window = size;
	send_priv(s)->ss_lead = window_lead(&wf, send_priv(s)->ss_window);
	send_priv(s)->ss_how = size == WINDOW_MOST && send_reach(s) >= size
				   ? send_fetch_how(s)
				   : FETCH_PAGES;
}

int
send_room_take(struct pw_send *s, size_t len, void (*done)(struct pw_waiter *))
{
	struct pw_waiter *w = NULL;
	bool slow = s->snd_rate > 0 && s->snd_rate < SLOW;
	int error;

	if (done != NULL) {
		send_pending_begin(s, done);
		send_priv(s)->ss_wait = SEND_WAIT_BUDGET;
		w = &send_priv(s)->ss_waiter;
		w->wt_client =
		    0; /* POOL_LEFT if the struct was cancelled before */
	}
	error = pool_room_take(
	    file_priv(s->snd_file)->fp_device, len, slow, s->snd_loop, w);
	if (error == -EINPROGRESS)
		completion_count(s->snd_loop, COUNTED_HELD);
	else if (done != NULL)
		s->snd_pending = false;
	return error;
}

/* Keeps `bytes` of the transmission's part of the budget, and returns the rest. */
static void
window_send_room_keep(struct pw_send *s, size_t bytes)
{
	holder_keep(s, bytes);
	send_priv(s)->ss_granted = false;
}

/* Releases the pin, and forgets that its bytes are resident. */
static void
window_unpin(struct pw_send *s)
{
	if (send_priv(s)->ss_pin == NULL)
		return;
	send_unpin(s);
	send_priv(s)->ss_ready = -1;
}

/* Returns budget in steps of STEP bytes, since each return takes a lock. */
void
send_room_settle(struct pw_send *s, bool full)
{
	off_t left = send_priv(s)->ss_asked - s->snd_off;
	size_t unsent = left > 0 ? (size_t)left : 0;

	/*
	 * If the socket is full, returns the whole budget of the transmission.  Otherwise a client that does
	 * not read would hold it while other transmissions wait.
	 */
	if (full && send_bound(s) > 0) {
		unsent = 0;
		window_unpin(s);
	}
	if (holder_bytes(s) < unsent + (unsent > 0 ? STEP : 1))
		return;
	window_send_room_keep(s, unsent);
}

void
pw_send_yield(struct pw_send *s)
{
	if (s->snd_file == NULL || s->snd_pending)
		return;
	window_unpin(s);
	if (send_priv(s)->ss_holder != NULL)
		window_send_room_keep(s, 0);
}
