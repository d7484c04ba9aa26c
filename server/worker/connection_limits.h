/*
 * connection_limits: counts connections, in total and by address, and limits both.  All workers
 * share one object.  The total is an atomic number.  The addresses are in a table of 64 parts, each
 * with a lock that a thread holds while it searches a short list, and never across a wait.  An
 * address costs 48 bytes while it has a connection, the table 512 KiB; without a limit per address
 * there is no table.
 *
 * client_key.h defines what counts as one address.
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
 * The functions below send two commands to workers (command.h).  COMMAND_PLACE reports that a slot
 * is free for the worker.  The worker then accepts until no slot is free or no client waits, so one
 * command may stand for several free slots.  COMMAND_WISH reports that another worker needs a slot.
 */

/*
 * Creates the limits.  A limit of 0 is no limit.  Workers have numbers below `workers`.  Returns 0
 * or -ENOMEM.
 */
int limits_create(unsigned total, unsigned per_address, unsigned workers,
    struct connection_limits **);

/* Lowers the total limit to `most`, which is not 0.  Call before the threads start. */
void limits_limit(struct connection_limits *, unsigned most);

/* Returns the total limit, or 0 if there is none. */
unsigned limits_most(const struct connection_limits *);

/* Registers a worker's command queue, which the worker owns.  Call before the threads start. */
void limits_join(
    struct connection_limits *, unsigned worker, struct commands *);

/* Destroys the limits.  Call when all connections are closed and all threads have ended. */
void limits_destroy(struct connection_limits **);

/* Any thread may call the functions below. */

/* Returns true if no slot is in use, so that the process has no connection. */
bool limits_are_unused(const struct connection_limits *);

/*
 * Reserves a slot.  Call before the worker accepts a connection.  Returns false if all slots are in
 * use or promised to other workers by COMMAND_PLACE.
 */
bool limits_reserve(struct connection_limits *, unsigned worker);

/* Releases a reserved slot that is not used.  A waiting worker gets the slot. */
void limits_release(struct connection_limits *);

/*
 * Makes a worker wait for a slot.  Call when no slot is free and a client waits for this worker.
 * Returns true if the worker gets COMMAND_PLACE once a slot is reserved for it, or false if a slot
 * is free by now.  Waiting workers take turns, so that no worker keeps all slots that its own
 * connections free.
 */
bool limits_wait(struct connection_limits *, unsigned worker);

/*
 * Passes an unused slot to the next worker.  Call after COMMAND_PLACE, when the worker has accepted
 * the clients that waited.
 */
void limits_decline(struct connection_limits *, unsigned worker);

/*
 * Cancels the worker's wait, and passes a slot promised to it to the next worker.  Call when the
 * worker accepts no more connections.
 */
void limits_retire(struct connection_limits *, unsigned worker);

/*
 * Counts an accepted connection, for which limits_reserve has returned true.  Stores its address in
 * *out.  Stores NULL if there is no limit per address, or if the client uses a Unix socket and so
 * has no address.  Returns 0, -EDQUOT if the address has reached its limit, or -ENOMEM.
 */
int limits_enter(
    struct connection_limits *, const struct sockaddr *, struct client **out);

/*
 * Counts the close of a connection that limits_enter admitted, and releases the slot of the
 * connection.
 */
void limits_leave(struct connection_limits *, struct client *);

/*
 * A worker asks other workers with COMMAND_WISH to close a connection for it.  Each worker
 * publishes the rank of its own victim; the victim with the highest rank is closed first, and rank
 * 0 means no victim.  So a worker asks only those workers whose published rank is higher than its
 * own or older than LIMITS_FRESH_US.  The asked worker closes a connection, whose slot goes to a
 * waiting worker, or replies with COMMAND_PLACE that its rank is not higher.  A worker with rank 0
 * asks all other workers each time, and gets a reply only with a slot.  A worker that does not
 * reply within LIMITS_RESPONSE_US is not asked again before it replies.
 */
#define LIMITS_WORKERS	   1024	  /* maximum number of workers */
#define LIMITS_FRESH_US	   20000  /* age at which a rank is too old, us */
#define LIMITS_RESPONSE_US 200000 /* time for a reply, us */
#define LIMITS_NOBODY	   LIMITS_WORKERS /* no worker */

/*
 * Asks the other workers for a slot.  `rank` is the rank of the worker's own victim.  Returns the
 * time at which the worker should close its own victim, unless COMMAND_PLACE arrives before.  Until
 * that time the worker waits as after limits_wait.  Returns 0 if the worker should close its victim
 * now: no other worker may have a victim of higher rank, all such workers are late with earlier
 * replies, or LIMITS_RESPONSE_US have passed since the worker's first request.  The last bound is
 * only for a worker with a victim, and holds even if slots of other workers go to third workers.
 */
uint64_t limits_ask(struct connection_limits *, unsigned worker, uint32_t rank,
    uint64_t now_us);

/* Returns true if other workers wait for this worker's reply. */
bool limits_is_asked(const struct connection_limits *, unsigned worker);

/*
 * Finds an asker whose rank is below `rank`, the rank of this worker's own victim.  Replies to the
 * askers before the found one that the rank of this worker is not higher.  Returns the asker, or
 * LIMITS_NOBODY if there is none.  The caller closes a connection for the asker, now or later, and
 * calls limits_responded.
 */
unsigned limits_asker(struct connection_limits *, unsigned worker,
    uint32_t rank, uint64_t now_us);
void limits_responded(
    struct connection_limits *, unsigned worker, unsigned asker);

#endif
