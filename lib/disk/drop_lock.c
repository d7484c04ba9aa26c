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
	atomic_fetch_add(&dl->dl_drops, 1);
}

uint64_t
drop_lock_drops(struct drop_lock *dl)
{
	return atomic_load_explicit(&dl->dl_drops, memory_order_relaxed);
}

bool
drop_lock_enter_send(struct drop_lock *dl)
{
	return pthread_rwlock_tryrdlock(&dl->dl_lock) == 0;
}

/* The first call begins DROP_GRACE, since its drop was announced before. */
bool
drop_lock_enter_drop(struct drop_lock *dl)
{
	uint64_t now = clock_now(), since = 0;

	if (atomic_compare_exchange_strong(&dl->dl_since, &since, now) ||
	    now < since + DROP_GRACE)
		return false;
	return pthread_rwlock_trywrlock(&dl->dl_lock) == 0;
}

void
drop_lock_leave(struct drop_lock *dl)
{
	pthread_rwlock_unlock(&dl->dl_lock);
}
