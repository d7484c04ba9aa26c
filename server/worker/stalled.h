/*
 * stalled: evicts connections whose clients take nothing of their responses, while connections have
 * too much memory (heap_limit.h).  Without it, clients that open many streams and read none of them
 * would have every other client refused until send_timeout.
 *
 * A client is stalled if its socket has been full, or the window of one of its streams closed, for
 * STALLED_US.  Of the STALLED_LOOKS that have been so longest, the one with most responses in flight
 * goes.  While memory is only high, that is one with HEAP_FEW responses at least.
 *
 * The worker's thread.
 */
#ifndef SERVER_WORKER_STALLED_H
#define SERVER_WORKER_STALLED_H

#include <stdint.h>

#define STALLED_US    1000000
#define STALLED_LOOKS 32

struct worker;

/* Call when memory is high, once in HEAP_PERIOD_US, outside of callbacks: evicts one connection at most. */
void stalled_evict(struct worker *, uint64_t now_us);

#endif
