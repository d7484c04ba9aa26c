/*
 * gate: see gate.h.
 */
#include <time.h>

#include "lib/disk/gate.h"
#include "lib/os/meter.h"
#include "lib/util/clock.h"

void
gate_init(struct gate *tn)
{
	*tn = (struct gate){0};
	pthread_mutex_init(&tn->gt_lock, NULL);
	clock_cond_init(&tn->gt_free);
}

void
gate_destroy(struct gate *tn)
{
	pthread_cond_destroy(&tn->gt_free);
	pthread_mutex_destroy(&tn->gt_lock);
}

/* Waits until the turn is free, or until no turn has ended for GATE_LONG.  The lock is held. */
static void
gate_await(struct gate *tn)
{
	struct timespec end;
	unsigned given;
	int error;

	do {
		given = tn->gt_given;
		end = clock_timespec(clock_now() + GATE_LONG);
		error = 0;
		while (tn->gt_taken && error == 0)
			error = pthread_cond_timedwait(
			    &tn->gt_free, &tn->gt_lock, &end);
	} while (tn->gt_taken && tn->gt_given != given);
}

bool
gate_take(struct gate *tn)
{
	struct timespec pause;
	uint64_t next, now;
	bool mine;

	meter_lock(&tn->gt_lock);
	gate_await(tn);
	mine = !tn->gt_taken;
	tn->gt_taken = true;
	next = tn->gt_next;
	pthread_mutex_unlock(&tn->gt_lock);
	now = clock_now();
	if (mine && next > now) {
		/* capsicum(4) does not permit clock_nanosleep(2). */
		pause = clock_timespec(next - now);
		nanosleep(&pause, NULL);
	}
	return mine;
}

void
gate_give(struct gate *tn)
{
	meter_lock(&tn->gt_lock);
	tn->gt_taken = false;
	tn->gt_given++;
	tn->gt_next = clock_now() + GATE_PAUSE;
	pthread_cond_signal(&tn->gt_free);
	pthread_mutex_unlock(&tn->gt_lock);
}
