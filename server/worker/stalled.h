/*
 * stalled: evicts connections whose clients take nothing of their responses, while connections have
 * too much memory (heap_limit.h).  Without it, clients that open many streams and read none of them
 * would have every other client refused until send_timeout.
 *
 * A client is stalled if its socket has been full, or the window of one of its streams closed, for
 * STALLED_US, and the connection has sent no data in that time.  While memory is only high, those with
 * HEAP_FEW responses or more are evicted.  While it is short, so are the others after a walk over all
 * that found none of these.
 *
 * A call checks STALLED_LOOKS timers, queries STALLED_ASKS sockets and evicts STALLED_MOST connections
 * at most; the next call continues from there.  More at a time would not help: what free(3) gets back
 * counts until release_tick, and clients that connect again at once would take it.
 *
 * The worker's thread.
 */
#ifndef SERVER_WORKER_STALLED_H
#define SERVER_WORKER_STALLED_H

#include <stdbool.h>
#include <stdint.h>

#define STALLED_US    1000000
#define STALLED_LOOKS 2048
#define STALLED_ASKS  64
#define STALLED_MOST  16

struct worker;

struct stalled {
	bool sd_any;   /* this walk also evicts those with few responses */
	bool sd_found; /* this walk has evicted a connection */
};

/* Call four times a second while memory is high, before release_tick. */
void stalled_evict(struct worker *, uint64_t now_us);

#endif
