/*
 * quiet: checks for a loop whether the kernel reclaims pages of files (reclaim.h).  A
 * disk thread reads the counters.
 */
#ifndef LIB_DISK_QUIET_H
#define LIB_DISK_QUIET_H

#include <stdbool.h>
#include <stdint.h>

struct pw_pool;

/*
 * Returns the result of reclaim_is_quiet.  Queues a read of the counters if the last one is old
 * (reclaim_due).  Loop's thread.
 */
bool quiet_ask(struct pw_pool *, uint64_t now_us);

#endif
