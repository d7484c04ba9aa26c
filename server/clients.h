/*
 * clients: how many connections there are, in total and from each address, and how many
 * there may be.  One for all workers: the total is an atomic number; the addresses are in
 * a table of 64 parts with a lock each, held for a look at a short list, and never over
 * anything that waits.  An address costs 48 bytes while it has a connection, the table
 * 512 KiB; without a limit per address there is none.
 *
 * IPv4 addresses count each, also as IPv4-mapped IPv6; IPv6 by their first 64 bits, since
 * whoever has one address has the 2^64 beside it.
 */
#ifndef SERVER_ORDER_H
#define SERVER_ORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "orders.h"

struct clients;
struct client; /* an address that has connections */

/*
 * What a worker is told: ORDER_PLACE: there is a place, it is this one's turn; it accepts
 * until there is none, or nobody waits, so two of them may be one.  ORDER_WISH: another
 * worker would like to have a place.
 */

/* 0 is no limit; workers have numbers below that.  0 or -ENOMEM. */
int clients_create(
    unsigned total, unsigned per_address, unsigned workers, struct clients **);

/* Before the threads start.  The orders are the worker's. */
void clients_join(struct clients *, unsigned worker, struct orders *);

/* There is no connection any more, and no thread. */
void clients_destroy(struct clients **);

/* The rest: any thread. */

/* Before a connection is accepted.  False: there are as many as there may be. */
bool clients_reserve(struct clients *);

/* What was reserved has not come to anything: a worker that waits gets the place. */
void clients_release(struct clients *);

/*
 * There is no place, and somebody waits for this worker: it gets ORDER_PLACE when there is
 * one.  Those who wait have their turns, so none takes the places of its own connections
 * for ever.  False: there is one by now.
 */
bool clients_wait(struct clients *, unsigned worker);

/* ORDER_PLACE has come, and the worker accepts nothing any more: it is another's turn. */
void clients_pass(struct clients *);

/*
 * A connection that was reserved and accepted.  *out: its address, or NULL without that
 * limit.  -EDQUOT: the address has as many as it may; -ENOMEM.
 */
int clients_enter(
    struct clients *, const struct sockaddr *, struct client **out);

/* Of one that was entered: it is closed; releases it as well. */
void clients_leave(struct clients *, struct client *);

/*
 * A worker that cannot accept, and has no idle connection that it could close: all others
 * get ORDER_WISH.  The wish is forgotten after a moment.
 */
void clients_want(struct clients *, unsigned worker, uint64_t now_us);

/* To one of those who ask, true: it closes a connection that is idle. */
bool clients_grant(struct clients *, uint64_t now_us);

/* The address as it is counted. */
uint64_t clients_key(const struct sockaddr *);

#endif
