/*
 * evict: closes a connection or a file to free a slot or a descriptor.  Runs on the worker's
 * thread.
 *
 * evict closes connections in this order:
 * 1. a connection that waits for a disk or a password, whose client has closed its side;
 * 2. a lingering connection whose client has acknowledged the last response (sched_ops.unacked);
 * 3. an idle connection whose client has acknowledged the last response, or that has been idle for
 *    EVICT_LAST_US and has at most 64 KiB in flight;
 * 4. a connection whose client has not completed a request, or after the response the body of the
 *    request, within EVICT_GRACE_US, unless the socket has unread bytes (hoard.h).
 *
 * Each worker closes only its own connections.  If a worker has no victim, or its victim is alone
 * at its address, the worker asks the other workers (limits_ask), unless they have published within
 * LIMITS_FRESH_US that their victims rank no higher.
 */
#ifndef SERVER_WORKER_EVICT_H
#define SERVER_WORKER_EVICT_H

#include <stdbool.h>

#define EVICT_GRACE_US 20000   /* minimum time to send a request, us */
#define EVICT_LAST_US  1000000 /* minimum idle time with bytes in flight, us */

struct worker;

enum evicted {
	EVICTED_ONE,
	/* other workers were asked to close a connection; COMMAND_PLACE or wk_retry follows */
	EVICTED_LATER,
	/* no victim in this worker; wk_retry fires if there may be a victim soon */
	EVICTED_NONE,
};

/* Closes a connection, or asks other workers to close one. */
enum evicted evict_connection(struct worker *);

/* Closes a cached file that no transfer uses, or else a connection. */
enum evicted evict_descriptor(struct worker *);

/*
 * Frees a descriptor for a request that the server would refuse without one.  Asks no other worker,
 * and also closes connections that are younger than EVICT_GRACE_US or EVICT_LAST_US.  Returns true
 * if a descriptor is free.
 */
bool evict_at_once(struct worker *);

/*
 * Closes a connection of this worker, if any may be closed.  Call when memory is short and a client
 * was accepted.
 */
void evict_for_memory(struct worker *);

/* Closes some connections that wait for the disk, whose clients have closed their sides. */
void evict_closed(struct worker *);

/*
 * Handles COMMAND_WISH: closes connections for other workers, or replies that no connection of this
 * worker ranks higher.
 */
void evict_for_others(struct worker *);

#endif
