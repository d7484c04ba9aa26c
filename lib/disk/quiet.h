/*
 * quiet: reclaim_is_quiet for a loop.  A disk thread reads the counters.
 */
#ifndef LIB_DISK_QUIET_H
#define LIB_DISK_QUIET_H

#include <stdbool.h>
#include <stdint.h>

struct pw_pool;

/* Returns reclaim_is_quiet.  Queues a read of the counters if the last one is old.  Loop's thread. */
bool quiet_ask(struct pw_pool *, uint64_t now_us);

#endif
