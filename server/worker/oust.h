/*
 * oust: closes a connection or a file to make room for another connection or
 * descriptor.  The worker's thread.
 *
 * First one that lingers: its client has taken the last answer.  Then one that is idle
 * between two requests: see sched_ops.unacked; if a little of its answer is under way, only when it
 * has been so for OUST_LAST_US.  Then one that has not sent a complete request, or the body of one
 * that was answered, for OUST_GRACE_US: see hoard.h.  Its socket is looked at before, and one with
 * bytes that were not read yet stays.
 *
 * Of several workers each looks at its own connections.  One that has none to close, or only one
 * that is alone at its address, asks the others (limits_ask), unless they have published a
 * moment ago that they have nothing better.
 */
#ifndef SERVER_WORKER_OUST_H
#define SERVER_WORKER_OUST_H

#include <stdbool.h>

#define OUST_GRACE_US 20000   /* for a request that is on its way */
#define OUST_LAST_US  1000000 /* for the rest of an answer */

struct worker;

enum ousted {
	OUSTED_ONE,
	OUSTED_LATER, /* others are asked first: COMMAND_PLACE or wk_retry comes */
	OUSTED_NONE, /* others are asked; wk_retry comes if there may be one soon */
};

/* Closes a connection. */
enum ousted oust_connection(struct worker *);

/* Frees a descriptor: of a file that no transfer uses, or as above. */
enum ousted oust_descriptor(struct worker *);

/*
 * The same for a request that would be refused without a descriptor: other workers are not asked,
 * and no connection is too young.  Returns true if a descriptor is free.
 */
bool oust_at_once(struct worker *);

/* COMMAND_WISH: gives up connections, or answers that others have none better. */
void oust_for_others(struct worker *);

/* Four times a second: the messages that were left out. */
void oust_tick(struct worker *);

#endif
