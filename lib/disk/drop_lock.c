/*
 * drop_lock: see drop_lock.h.
 */
#include "lib/disk/drop_lock.h"
#include "lib/util/clock.h"

void
drop_lock_init(struct drop_lock *dl)
{
	pthread_rwlock_init(&dl->dl_lock, NULL);
}

void
drop_lock_destroy(struct drop_lock *dl)
{
	pthread_rwlock_destroy(&dl->dl_lock);
}

void
drop_lock_announce(struct drop_lock *dl)
{
	uint64_t never = 0;

	/* Sets the time first, so that a thread that reads a count also finds the time. */
	if (atomic_load(&dl->dl_drops) == 0)
		atomic_compare_exchange_strong(
		    &dl->dl_since, &never, clock_now());
	atomic_fetch_add(&dl->dl_drops, 1);
}

unsigned
drop_lock_drops(struct drop_lock *dl)
{
	return atomic_load_explicit(&dl->dl_drops, memory_order_relaxed);
}

bool
drop_lock_enter_send(struct drop_lock *dl)
{
	return pthread_rwlock_tryrdlock(&dl->dl_lock) == 0;
}

bool
drop_lock_enter_drop(struct drop_lock *dl)
{
	return clock_now() - atomic_load(&dl->dl_since) >= DROP_GRACE &&
	       pthread_rwlock_trywrlock(&dl->dl_lock) == 0;
}

void
drop_lock_leave(struct drop_lock *dl)
{
	pthread_rwlock_unlock(&dl->dl_lock);
}
