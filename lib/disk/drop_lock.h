/*
 * drop_lock: excludes a loop that checks and sends a file, and a disk thread that drops pages of it, from
 * each other.  Otherwise a page could be evicted between residency check and sendfile(2), and the loop
 * would wait for the disk.  Neither of the two waits for the lock.  A device has DROP_LOCKS locks;
 * files whose inode numbers are equal modulo DROP_LOCKS share one.
 */
#ifndef LIB_DISK_DROP_LOCK_H
#define LIB_DISK_DROP_LOCK_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "lib/util/cacheline.h"

#define DROP_LOCKS 64

struct drop_lock {
	alignas(CACHE_LINE)
	    pthread_rwlock_t dl_lock; /* readers send, the writer drops */
	atomic_uint dl_drops;	      /* total number of announced drops */
};

void drop_lock_init(struct drop_lock *);
void drop_lock_destroy(struct drop_lock *);

/*
 * drop_lock_announce counts a drop; call it before the drop is queued.  drop_lock_drops returns the number
 * of announced drops.  Any thread.
 */
void drop_lock_announce(struct drop_lock *);
unsigned drop_lock_drops(struct drop_lock *);

/*
 * Acquire the lock for a send or for a drop.  Return false, without waiting, while a thread of the other
 * kind holds it.  The thread that acquired it calls drop_lock_leave.
 */
bool drop_lock_enter_send(struct drop_lock *);
bool drop_lock_enter_drop(struct drop_lock *);
void drop_lock_leave(struct drop_lock *);

#endif
