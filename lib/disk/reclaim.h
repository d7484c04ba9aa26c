/*
 * reclaim: observes whether the kernel reclaims pages of files.  While it does not, pages that were
 * resident a moment ago still are, and need no new residency check.
 *
 * The counters are the machine's, whatever control group the pages belong to (Linux:
 * pgsteal_file and drop_pagecache of /proc/vmstat, proc(5)).  Reading them takes 16 us and
 * more on large machines: so the pool's threads do, after a fetch or when a loop asks.
 * Pages that a program drops (posix_fadvise(2)) are in no counter.
 *
 * The counters lag behind.  Our own fetches are the main cause of eviction, so a fetch counts as soon as
 * it begins.
 */
#ifndef LIB_DISK_RECLAIM_H
#define LIB_DISK_RECLAIM_H

#include <stdbool.h>
#include <stdint.h>

struct reclaim;

struct reclaim *reclaim_create(void); /* returns NULL if memory is short */
void reclaim_destroy(struct reclaim **);

/*
 * Returns true if the kernel reclaimed no page for a second and no fetch began.  Returns false if that is
 * unknown.  Any thread, as the next two.
 */
bool reclaim_is_quiet(struct reclaim *, uint64_t now_us);

/* Returns true if the counters are old: the caller has a thread read them, and calls reclaim_done. */
bool reclaim_due(struct reclaim *, uint64_t now_us);
void reclaim_done(struct reclaim *);

/* Call before pages are fetched, since others may be evicted for them.  Any thread. */
void reclaim_expect(struct reclaim *);

/* Reads the counters, unless another thread read them a moment ago.  Pool's threads. */
void reclaim_look(struct reclaim *);

#endif
