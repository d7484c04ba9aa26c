/*
 * tier_fetch_priv: private to tier_fetch.c (reads of the tier), tier_offer.c (writes) and tier_place.c
 * (identity of file systems).
 */
#ifndef LIB_DISK_TIER_FETCH_PRIV_H
#define LIB_DISK_TIER_FETCH_PRIV_H

#include <pthread.h>
#include <sys/queue.h>

#include "lib/disk/pins.h"
#include "lib/disk/pool_priv.h"
#include "lib/disk/tier.h"

#define TIER_CHAINS 64

struct pw_file;
struct tier_job;
struct tier_write;

struct tiered {
	struct tier *td_tier;
	/* device of the tier, whose lock guards td_chains and td_reading */
	struct pw_device *td_device;
	struct pins *td_pins;
	LIST_HEAD(, tier_job) td_chains[TIER_CHAINS];
	unsigned td_reading; /* number of struct tier_job, queued or running */

	pthread_mutex_t td_lock; /* guards the fields below */
	STAILQ_HEAD(, tier_write) td_writes;
	unsigned td_waiting; /* windows in td_writes, or being written */
	bool td_writing;     /* true while a job writes to the tier */
	bool td_unlocks;     /* true if tier_unlock was called, or will be */
};

/* A job that needs nothing but the tier. */
struct tier_call {
	struct job tl_job; /* first member, as free(job) frees this struct */
	struct tiered *tl_tiered;
};

/*
 * Has a disk thread of the tier call `run`.  Returns false if memory is short, the tier's queue is full, or
 * no thread can be started.
 */
bool tier_offer_call(
    struct tiered *, enum job_kind kind, int (*run)(struct job *));

/* Returns the key of the window's file in the tier. */
static inline struct pins_key
tier_fetch_key(const struct window *win)
{
	struct pins_key key = win->win_key;

	key.pk_dev = win->win_place;
	return key;
}

/*
 * Sets *place to a number that identifies the file system of an open file in the tier's records.  If the file
 * system is on a block device, the number is st_dev.  Other file systems get a new st_dev at each mount, and
 * FUSE may also get new inode numbers, so a file could have the numbers of another file of an earlier mount;
 * for them the number is a hash of the file's path.  Returns false if the path is unknown.  Does not wait.
 */
bool tier_place(const struct pw_file *, uint64_t *place);

/*
 * Queues a write to the tier of a window that the calling disk thread just read, if the window is whole
 * (tier_fetch.h) and the tier accepts it.  `copied` is true if a copy has the bytes (pins.h), false if the
 * page cache has them.
 */
void tier_offer(const struct window *, bool copied);

/* Frees the windows that wait to be written. */
void tier_offer_destroy(struct tiered *);

#endif
