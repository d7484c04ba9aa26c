/*
 * drop_lock: prevents a disk thread from dropping pages of a file while a loop checks and
 * sends the file, and the reverse.  Otherwise a page could be evicted between residency
 * check and sendfile(2), and the loop would wait for the disk.  Neither thread waits for
 * the lock.  A device has DROP_LOCKS locks; files whose inode numbers are equal modulo
 * DROP_LOCKS share one.
 */
#ifndef LIB_DISK_DROP_LOCK_H
#define LIB_DISK_DROP_LOCK_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/util/cacheline.h"

#define DROP_LOCKS 64

/*
 * Time after the first try to drop in which no thread drops, microseconds.  A loop that found no announcement
 * sends without the lock, and needs less time for that step.
 */
#define DROP_GRACE 100000

struct drop_lock {
	/* held for reading while a loop sends, for writing while a disk thread drops */
	alignas(CACHE_LINE) pthread_rwlock_t dl_lock;
	_Atomic uint64_t dl_drops; /* number of calls of drop_lock_announce */
	/* time of the first drop_lock_enter_drop, microseconds, or 0 */
	_Atomic uint64_t dl_since;
};

void drop_lock_init(struct drop_lock *);
void drop_lock_destroy(struct drop_lock *);

/*
 * drop_lock_announce counts a drop.  Call it before the drop is queued, and again after the pages were
 * dropped, with the lock held.  drop_lock_drops returns the number of calls.  Any thread.
 */
void drop_lock_announce(struct drop_lock *);
uint64_t drop_lock_drops(struct drop_lock *);

/*
 * drop_lock_enter_send acquires the lock for a send, drop_lock_enter_drop for a drop.  Both return false,
 * without waiting, if another thread holds the lock; only sends share it.  drop_lock_enter_drop also returns
 * false at its first call, and within DROP_GRACE of that.  The thread that acquired the lock calls drop_lock_leave.
 */
bool drop_lock_enter_send(struct drop_lock *);
bool drop_lock_enter_drop(struct drop_lock *);
void drop_lock_leave(struct drop_lock *);

#endif
