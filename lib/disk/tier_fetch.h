/*
 * tier_fetch: fetches parts of windows from the tier (tier.h), and writes windows to the tier that were
 * fetched from their own disks.  A window of the tier is a whole OS_FOLIO of a file, or the rest at
 * the end of the file.
 */
#ifndef LIB_DISK_TIER_FETCH_H
#define LIB_DISK_TIER_FETCH_H

#include "lib/disk/pool.h"
#include "lib/disk/tier.h"

/* Whether windows that a transmission misses are written to the tier. */
enum tier_use {
	TIER_UNDECIDED, /* it has missed no window yet */
	TIER_READS,	/* they are not */
	TIER_WRITES, /* they are, as the first one was missed before (tier_missed) */
};

/*
 * Adds a tier to the pool, which takes ownership of the tier unless the function fails.  Call it
 * before the first loop is created.  Returns 0 or -errno.
 */
int tier_fetch_create(struct pw_pool *, struct tier **);

/* Returns true if the pool has a tier.  Any thread. */
bool tier_fetch_exists(const struct pw_pool *);

/*
 * Fetches a range as pool_fetch does.  If the tier has the window of the range, a disk thread reads
 * the range from the tier, in whole pieces, into a copy (pins.h); the caller has taken budget for
 * tier_fetch_room bytes.  Otherwise a disk thread fetches the range from its own disk, as `how` requires, and the window may then be written to the tier, as *use says.  Decides *use
 * at the first miss.  For a file that needs copies the disk thread makes a copy in both cases, if the
 * limit of pins permits.  Loop's thread.
 */
int tier_fetch(struct pw_file *, off_t off, size_t len, enum fetch_how how,
    enum tier_use *use, enum admit, struct pw_waiter *);

/* Returns true if the residency of the file cannot be checked, so that tier_fetch makes copies. */
bool tier_fetch_needs_copy(const struct pw_file *);

/* Returns the bytes of the pieces that have a range of len bytes, at least 1, at off. */
static inline size_t
tier_fetch_room(off_t off, size_t len)
{
	const size_t before = (size_t)off % TIER_PIECE;

	return (before + len + TIER_PIECE - 1) / TIER_PIECE * TIER_PIECE;
}

/*
 * Fetches the windows of late reads from their own disks.  Has a disk thread prepare or unlock the
 * tier if that is due.  Call it at each tick of a loop.
 */
void tier_fetch_tick(struct pw_pool *, uint64_t now_us);

/* Leaves the tier to another process, as soon as all reads and writes have ended.  Any thread. */
void tier_fetch_leave(struct pw_pool *);

/* Fills in the struct.  Returns false if the pool has no tier. */
bool tier_fetch_stats(struct pw_pool *, struct tier_stats *);

#endif
