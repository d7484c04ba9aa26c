/*
 * tier_fetch: fetches windows from the tier (tier.h), and has windows written to it that were fetched from
 * their own disks.  A window of the tier is a whole OS_FOLIO of a file, or less at its end.
 */
#ifndef LIB_DISK_TIER_FETCH_H
#define LIB_DISK_TIER_FETCH_H

#include "lib/disk/pool.h"
#include "lib/disk/tier.h"

/* Gives the pool a tier, which it then owns.  Call it before the first loop is created.  Returns 0 or -errno. */
int tier_fetch_create(struct pw_pool *, struct tier **);

/* Returns true if the pool has a tier.  Any thread. */
bool tier_fetch_exists(const struct pw_pool *);

/*
 * Fetches a window as pool_fetch does, from the tier if it is there, into a copy (pins.h).  Otherwise fetches
 * it from its own disk, as `how` says, and, if `writes` is true, has it written to the tier.  Loop's thread.
 */
int tier_fetch(struct pw_file *, off_t off, size_t len, enum fetch_how how,
    bool writes, enum admit, struct pw_waiter *);

/* Has late windows fetched from their own disks.  Call it at each tick of a loop. */
void tier_fetch_tick(struct pw_pool *, uint64_t now_us);

/* Leaves the tier to another process, once its reads and writes have ended.  Any thread. */
void tier_fetch_leave(struct pw_pool *);

/* Returns false if the pool has no tier. */
bool tier_fetch_stats(struct pw_pool *, struct tier_stats *);

#endif
