/*
 * oust: closes a connection or a file to make room for another connection or
 * descriptor.  The worker's thread.
 *
 * First one that lingers: its client has taken the last answer.  Then one that is idle
 * between two requests: see sched_ops.unacked; if a little of its answer is under way, only when it
 * has been so for OUST_LAST_US.  Then one that has not sent a complete request, or the body of one
 * that was answered, for OUST_GRACE_US: see hoard.h.  Its socket is looked at before, and one with
 * bytes that were not read yet stays.  Of several workers each looks at its own; where the best of
 * them is alone at its address, the others are asked first, for OUST_OTHERS_US.
 */
#ifndef SERVER_WORKER_OUST_H
#define SERVER_WORKER_OUST_H

#include <stdbool.h>

#define OUST_GRACE_US  20000   /* for a request that is on its way */
#define OUST_LAST_US   1000000 /* for the rest of an answer */
#define OUST_OTHERS_US 200000

struct worker;

/*
 * Has closed a connection.  False: there is none, but maybe soon: then the worker's
 * wk_retry is set, which looks again.
 */
bool oust_connection(struct worker *);

/*
 * Frees a descriptor: of a file that no transfer uses, or as above.  at_once: for a
 * request that would be refused: the other workers are not asked first, and no
 * connection is too young.
 */
bool oust_descriptor(struct worker *, bool at_once);

/* Another worker has none that it could close, and asks: COMMAND_WISH. */
void oust_granted(struct worker *);

/* Clients were accepted: the next wait for the others is a new one. */
void oust_done(struct worker *);

/* Four times a second: the messages that were left out. */
void oust_tick(struct worker *);

#endif
