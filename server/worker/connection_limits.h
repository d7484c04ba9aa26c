/*
 * connection_limits: how many connections there are, in total and from each address, and how many
 * there may be.  One for all workers: the total is an atomic number; the addresses are in
 * a table of 64 parts with a lock each, held for a look at a short list, and never over
 * anything that waits.  An address costs 48 bytes while it has a connection, the table
 * 512 KiB; without a limit per address there is none.
 *
 * What is one address says client_key.h.
 */
#ifndef SERVER_WORKER_CONNECTION_LIMITS_H
#define SERVER_WORKER_CONNECTION_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "server/util/command.h"

struct connection_limits;
struct client; /* an address that has connections */

/*
 * Orders to a worker.  COMMAND_PLACE: there is a free place for this worker; it accepts
 * until no place is free or no client waits, so two orders may become one.
 * COMMAND_WISH: another worker needs a place.
 */

/* 0 is no limit; workers have numbers below that.  0 or -ENOMEM. */
int limits_create(unsigned total, unsigned per_address, unsigned workers,
    struct connection_limits **);

/* No more than most in total, which is not 0.  Before the threads start. */
void limits_limit(struct connection_limits *, unsigned most);

/* How many there may be in total; 0: no limit. */
unsigned limits_most(const struct connection_limits *);

/* Before the threads start.  The orders are the worker's. */
void limits_join(
    struct connection_limits *, unsigned worker, struct commands *);

/* There is no connection any more, and no thread. */
void limits_destroy(struct connection_limits **);

/* The rest: any thread. */

/*
 * Before the worker accepts a connection.  False: there are as many as there may be, with
 * the places that are promised to others by COMMAND_PLACE.
 */
bool limits_reserve(struct connection_limits *, unsigned worker);

/* The reserved place is not used: a waiting worker gets it. */
void limits_release(struct connection_limits *);

/*
 * No place is free, and a client waits for this worker: the worker gets COMMAND_PLACE
 * when a place is reserved for it.  Waiting workers take turns, so none keeps all places
 * that its own connections free.  False: there is one by now.
 */
bool limits_wait(struct connection_limits *, unsigned worker);

/*
 * COMMAND_PLACE has come, and the worker has accepted the clients that waited.  If it has not
 * taken the place, the next worker gets it.
 */
void limits_decline(struct connection_limits *, unsigned worker);

/* The worker accepts nothing any more. */
void limits_retire(struct connection_limits *, unsigned worker);

/*
 * A connection that was reserved and accepted.  *out: its address, or NULL without that
 * limit, and for a client of a Unix socket, who has none.  -EDQUOT: the address has as many as it may; -ENOMEM.
 */
int limits_enter(
    struct connection_limits *, const struct sockaddr *, struct client **out);

/* Of one that was entered: it is closed; releases it as well. */
void limits_leave(struct connection_limits *, struct client *);

/*
 * A worker may ask the others to close a connection for it: COMMAND_WISH.  Each worker publishes
 * the rank of its own victim; the highest rank is closed first, and 0 means that there is none.  So
 * a worker asks only those whose rank is higher, or is older than LIMITS_FRESH_US.  The worker that
 * was asked closes a connection, whose slot goes to a worker that waits, or replies with
 * COMMAND_PLACE that its rank is not higher.  A worker with rank 0 asks all others each time, and
 * gets no reply without a slot.  A worker that does not reply within LIMITS_RESPONSE_US is not asked
 * again until it does.
 */
#define LIMITS_WORKERS	   1024 /* at most */
#define LIMITS_FRESH_US	   20000
#define LIMITS_RESPONSE_US 200000
#define LIMITS_NOBODY	   LIMITS_WORKERS

/*
 * Asks the others for a slot.  rank is that of the worker's own victim.  Returns 0 if no other
 * worker may have a higher one.  Otherwise the worker waits as after limits_wait, and should close its
 * own victim at the returned time, unless COMMAND_PLACE comes before.  A worker with a victim waits no
 * longer than LIMITS_RESPONSE_US after its first question, until it has a slot, even if others reply
 * late or give their slots to third workers.
 */
uint64_t limits_ask(struct connection_limits *, unsigned worker, uint32_t rank,
    uint64_t now_us);

/* Returns true if other workers wait for a reply of this one. */
bool limits_is_asked(const struct connection_limits *, unsigned worker);

/*
 * Replies to all askers whose rank is not below `rank`.  Returns an asker with a lower rank, or
 * LIMITS_NOBODY.  The caller closes a connection for that asker, now or later, and calls
 * limits_responded.
 */
unsigned limits_asker(struct connection_limits *, unsigned worker,
    uint32_t rank, uint64_t now_us);
void limits_responded(
    struct connection_limits *, unsigned worker, unsigned asker);

#endif
