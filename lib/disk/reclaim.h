/*
 * reclaim: observes whether the kernel reclaims pages of files.  While the kernel reclaims none,
 * pages that a recent check found resident stay resident, and need no new check.
 *
 * The counters cover the whole machine, not one control group (Linux: pgsteal_file and
 * drop_pagecache of /proc/vmstat, proc(5)).  Reading them takes 16 us, and more on large
 * machines, so a disk thread reads them, after a fetch or when a loop needs them.  Pages
 * that a program drops (posix_fadvise(2)) are in no counter.
 *
 * The counters lag behind.  The fetches of this program are the main cause of eviction,
 * so the start of a fetch counts as a reclaim (reclaim_expect).
 */
#ifndef LIB_DISK_RECLAIM_H
#define LIB_DISK_RECLAIM_H

#include <stdbool.h>
#include <stdint.h>

struct reclaim;

/* `memory` is what this process may use for pages of files, bytes.  Returns NULL if memory is short. */
struct reclaim *reclaim_create(uint64_t memory);
void reclaim_destroy(struct reclaim **);

/*
 * Returns true if no read is in flight, and for a second the kernel reclaimed no page and no fetch began.
 * Returns false if that is unknown.  Any thread, as reclaim_due and reclaim_done.
 */
bool reclaim_is_quiet(struct reclaim *, uint64_t now_us);

/*
 * Returns for how long pages that were used twice stay after the last use, us.  The kernel reclaims pages that were
 * used once first.  The time is RECLAIM_USED, or less if the kernel reclaims 1/RECLAIM_SHARE of the memory in that
 * time.  It is 0 if the rate is unknown, or the memory is below RECLAIM_LEAST, of which much may be reclaimed between
 * two reads of the counters.  Any thread.
 *
 * Measured: 8 MiB of a control group were used every 20 to 100 ms beside reads of 0.6 to 1.1 GB/s.  In groups of 64 to
 * 512 MiB the kernel reclaimed up to 144 MiB between two uses and never one of these pages; in one of 32 MiB it did
 * after 7 MiB (Linux 6.18, ext4).
 */
#define RECLAIM_USED  100000
#define RECLAIM_SHARE 8
#define RECLAIM_LEAST ((uint64_t)256 << 20) /* bytes */
uint64_t reclaim_used_stay(const struct reclaim *, uint64_t now_us);

/*
 * Returns true if the last read of the counters is older than 25 ms and no other read is in progress.
 * Then the caller has a disk thread call reclaim_look, and reclaim_done after it.
 */
bool reclaim_due(struct reclaim *, uint64_t now_us);
void reclaim_done(struct reclaim *);

/*
 * reclaim_expect notes that pages may be reclaimed now.  Call it before pages are fetched, or if a loop slept for
 * a page that it had found resident.  reclaim_read_begins and reclaim_read_ends also count a read in flight.  Any
 * thread.
 */
void reclaim_expect(struct reclaim *);
void reclaim_read_begins(struct reclaim *);
void reclaim_read_ends(struct reclaim *);

/* Reads the counters, unless a thread read them in the last 5 ms or reads them now.  Disk threads. */
void reclaim_look(struct reclaim *);

#endif
