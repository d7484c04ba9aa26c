/*
 * completion: see completion.h.
 */
#include <pthread.h>
#include <sched.h>

#include "lib/disk/completion.h"
#include "lib/os/meter.h"
#include "lib/os/os.h"
#include "lib/util/clock.h"
#include "lib/util/counter.h"

#define COMPLETION_US 300 /* time for the waits of one call, us */

void
completion_deliver(struct pw_waiter *w, int error)
{
	struct pw_loop *lp = w->wt_loop;
	bool was_empty;

	w->wt_error = error;
	w->wt_next = NULL;
	meter_lock(&lp->lp_lock);
	was_empty = lp->lp_inbox == NULL;
	*lp->lp_inbox_end = w;
	lp->lp_inbox_end = &w->wt_next;
	/*
	 * Makes completion_end wait for the signal: pw_loop_drain may deliver the loop's last wait before the
	 * signal is sent, and the program may then destroy the loop.
	 */
	if (was_empty)
		atomic_fetch_add(&lp->lp_signals, 1);
	pthread_mutex_unlock(&lp->lp_lock);
	if (!was_empty)
		return;
	(void)os_wake_signal(lp->lp_wake[1]); /* else see completion_tick */
	atomic_fetch_sub(&lp->lp_signals, 1);
}

void
completion_tick(struct pw_loop *lp)
{
	bool pending;

	meter_lock(&lp->lp_lock);
	pending = lp->lp_inbox != NULL;
	pthread_mutex_unlock(&lp->lp_lock);
	if (pending)
		(void)os_wake_signal(lp->lp_wake[1]);
}

void
completion_end(struct pw_loop *lp)
{
	while (atomic_load(&lp->lp_signals) > 0)
		sched_yield();
}

void
completion_forget(struct pw_waiter *w)
{
	w->wt_loop->lp_pending--;
}

/* Returns waits to the front of the inbox.  `last` is wt_next of the last one. */
static void
completion_put_back(
    struct pw_loop *lp, struct pw_waiter *w, struct pw_waiter **last)
{
	meter_lock(&lp->lp_lock);
	*last = lp->lp_inbox;
	if (lp->lp_inbox == NULL)
		lp->lp_inbox_end = last;
	lp->lp_inbox = w;
	pthread_mutex_unlock(&lp->lp_lock);
	(void)os_wake_signal(lp->lp_wake[1]); /* else see completion_tick */
}

void
completion_take(struct pw_loop *lp)
{
	uint64_t end = clock_now() + COMPLETION_US;
	struct pw_waiter *w, *next, **last;

	os_wake_clear(lp->lp_wake[0]);
	meter_lock(&lp->lp_lock);
	w = lp->lp_inbox;
	last = lp->lp_inbox_end;
	lp->lp_inbox = NULL;
	lp->lp_inbox_end = &lp->lp_inbox;
	pthread_mutex_unlock(&lp->lp_lock);
	while (w != NULL) {
		next = w->wt_next;
		lp->lp_pending--;
		w->wt_done(w);
		w = next;
		if (clock_now() >= end)
			break;
	}
	if (w != NULL)
		completion_put_back(lp, w, last);
}

void
completion_count(struct pw_loop *lp, enum counted what)
{
	counter_add(&lp->lp_stats[what], 1);
}
