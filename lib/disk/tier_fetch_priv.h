/*
 * tier_fetch_priv: private to tier_fetch.c (reads of the tier) and tier_offer.c (writes).
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
	unsigned td_reading; /* number of jobs in td_chains or running */

	pthread_mutex_t td_lock; /* guards the fields below */
	STAILQ_HEAD(, tier_write) td_writes;
	unsigned td_waiting; /* windows in td_writes, or being written */
	bool td_writing;     /* true if a job writes */
	bool td_unlocks;     /* true if tier_unlock was called, or will be */
};

/* A job without arguments. */
struct tier_call {
	struct job tl_job; /* first member, since the job is freed */
	struct tiered *tl_tiered;
};

/* Has a thread of the tier call `run`.  Returns false if memory is short or no thread can be started. */
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
 * Sets *place to what identifies the file system of an open file in the tier: st_dev of a block device.  Others
 * get st_dev at each mount, and FUSE may get inode numbers so, so that a file could have the numbers of an earlier
 * one; for these files it is a hash of the path.  Returns false if the path is unknown.  Does not wait.
 */
bool tier_place(const struct pw_file *, uint64_t *place);

/*
 * Has a window that was just read written to the tier, if it is a whole one and the tier accepts it.  `copied`
 * is true if a copy has it, false if the page cache has it.  Disk threads.
 */
void tier_offer(const struct window *, bool copied);

/* Frees the windows that wait to be written. */
void tier_offer_destroy(struct tiered *);

#endif
