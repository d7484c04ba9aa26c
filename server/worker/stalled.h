/*
 * stalled: evicts connections whose clients read nothing of their responses, while connections use
 * too much memory (heap_limit.h).  Otherwise, clients that open many streams and read none of them
 * would cause the refusal of every other client until send_timeout.
 *
 * A client is stalled if its socket has been full, or the window of one of its streams closed, for
 * STALLED_US, and the connection has sent no data in that time.  While memory is high, stalled
 * clients with HEAP_FEW responses or more are evicted.  While memory is short, a walk that follows
 * a walk without an eviction evicts all stalled clients.
 *
 * A call checks STALLED_LOOKS timers, queries STALLED_ASKS sockets and evicts STALLED_MOST
 * connections at most; the next call continues with the next timer.  More evictions per call would
 * not help: freed memory counts until release_tick returns it, and clients that connect again at
 * once would use it.
 *
 * Runs on the worker's thread.
 */
#ifndef SERVER_WORKER_STALLED_H
#define SERVER_WORKER_STALLED_H

#include <stdbool.h>
#include <stdint.h>

#define STALLED_US    1000000 /* minimum time without progress, us */
#define STALLED_LOOKS 2048    /* timers checked per call */
#define STALLED_ASKS  64      /* sockets queried per call */
#define STALLED_MOST  16      /* connections evicted per call */

struct worker;

struct stalled {
	bool sd_any;   /* true if this walk evicts all stalled clients */
	bool sd_found; /* true if this walk has evicted a connection */
};

/*
 * Evicts stalled connections.  Call four times a second while memory is high, before release_tick.
 */
void stalled_evict(struct worker *, uint64_t now_us);

#endif
