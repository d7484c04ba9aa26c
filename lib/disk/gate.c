/*
 * gate: see gate.h.
 */
#include <time.h>

#include "lib/disk/gate.h"
#include "lib/os/meter.h"
#include "lib/util/clock.h"

void
turn_init(struct turn *tn)
{
	*tn = (struct turn){0};
	pthread_mutex_init(&tn->tn_lock, NULL);
	clock_cond_init(&tn->tn_free);
}

void
turn_destroy(struct turn *tn)
{
	pthread_cond_destroy(&tn->tn_free);
	pthread_mutex_destroy(&tn->tn_lock);
}

/* The lock is held.  Until it is free, or nobody has moved for too long. */
static void
await(struct turn *tn)
{
	struct timespec end;
	unsigned given;
	int error;

	do {
		given = tn->tn_given;
		end = clock_timespec(clock_now() + TURN_LONG);
		error = 0;
		while (tn->tn_taken && error == 0)
			error = pthread_cond_timedwait(
			    &tn->tn_free, &tn->tn_lock, &end);
	} while (tn->tn_taken && tn->tn_given != given);
}

bool
turn_take(struct turn *tn)
{
	struct timespec pause;
	uint64_t next, now;
	bool mine;

	meter_lock(&tn->tn_lock);
	await(tn);
	mine = !tn->tn_taken;
	tn->tn_taken = true;
	next = tn->tn_next;
	pthread_mutex_unlock(&tn->tn_lock);
	now = clock_now();
	if (mine && next > now) {
		/* Not clock_nanosleep(2), which capsicum(4) does not know. */
		pause = clock_timespec(next - now);
		nanosleep(&pause, NULL);
	}
	return mine;
}

void
turn_give(struct turn *tn)
{
	meter_lock(&tn->tn_lock);
	tn->tn_taken = false;
	tn->tn_given++;
	tn->tn_next = clock_now() + TURN_PAUSE;
	pthread_cond_signal(&tn->tn_free);
	pthread_mutex_unlock(&tn->tn_lock);
}
