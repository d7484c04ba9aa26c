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
 * A worker may ask the others to close a connection for it: COMMAND_WISH.  Each publishes the rank
 * of what it would close next (0: nothing; higher goes first), so a worker asks only those that
 * have a higher one, or have published none for LIMITS_FRESH_US.  An asked worker closes a connection, whose
 * slot goes to a worker that waits, or answers with COMMAND_PLACE that it has nothing better.
 * A worker with rank 0 asks all, each time, and gets no answer without a slot.
 * One that owes an answer for LIMITS_ANSWER_US is asked no more until it answers.
 */
#define LIMITS_WORKERS	 1024 /* at most */
#define LIMITS_FRESH_US	 20000
#define LIMITS_ANSWER_US 200000
#define LIMITS_NOBODY	 LIMITS_WORKERS

/*
 * rank: of what the worker would close itself.  Returns 0 if no other may have better.  Otherwise
 * the worker waits as after limits_wait, and should close its own at the time that is returned, if
 * there was no COMMAND_PLACE.  If rank is not 0 that is LIMITS_ANSWER_US after the first question at
 * the latest, until the worker has a slot: also if others answer, but late, or give their slots to
 * third ones.
 */
uint64_t limits_ask(struct connection_limits *, unsigned worker, uint32_t rank,
    uint64_t now_us);

/* Returns true if the worker owes answers. */
bool limits_is_asked(const struct connection_limits *, unsigned worker);

/*
 * Answers all askers that have nothing worse than rank.  Returns one that has, or LIMITS_NOBODY.
 * The caller closes a connection for it, now or later, and calls limits_answered.
 */
unsigned limits_asker(struct connection_limits *, unsigned worker,
    uint32_t rank, uint64_t now_us);
void limits_answered(
    struct connection_limits *, unsigned worker, unsigned asker);

#endif
