/*
 * budget: the budget for bytes that were fetched and not sent yet, or are being
 * fetched.  Data that is not sent soon enough would be evicted, then fetched again.
 *
 * A device may have twice what all devices together leave (dynamic thresholds:
 * Choudhury, Hahne, IEEE/ACM Transactions on Networking 6, 1998): one that hangs keeps
 * at most two thirds of it, and the next finds two thirds of the rest.  A transfer that
 * does not fit waits.  Devices take turns; of one device, transfers to fast clients go first, but every
 * BUDGET_SLOWth slot is for a slow one.  Stalled clients keep their part for a while (lib/send/stalled.h),
 * so a transfer that waited for a second is admitted past the budget, a sixteenth of it in each quarter
 * of a second.
 *
 * The size of the page cache is unknown: other files, sockets and the heap use memory,
 * too.  So the budget shrinks by an eighth, to a sixteenth at the least, when a window
 * was evicted before it was sent.  A second after the last eviction it grows again, by a sixty-fourth each
 * quarter of a second.
 *
 * Any thread; the lock is held for a few instructions.
 */
#ifndef LIB_DISK_BUDGET_H
#define LIB_DISK_BUDGET_H

#include <stdbool.h>
#include <sys/queue.h>

#include "lib/pagewise.h"

#define BUDGET_SLOW 4

struct budget;
struct held;
STAILQ_HEAD(held_list, held);

/* A device's part of the budget, guarded by the budget's lock. */
struct budget_part {
	size_t rp_used;
	size_t rp_nheld;
	struct held_list rp_held[2]; /* waiters: fast, slow clients */
	unsigned rp_round;
	TAILQ_ENTRY(budget_part) rp_link; /* devices with waiters */
};

struct budget *budget_create(
    size_t max); /* bytes; returns NULL if memory is short */
void budget_destroy(struct budget **);
void budget_part_init(struct budget_part *);

/*
 * Takes len bytes of the budget.
 *   0             the caller has them until budget_give
 *   -EINPROGRESS  the caller has them when the waiter is delivered
 *   -EAGAIN       there is no room, and no waiter was passed
 *   -ENOMEM
 */
int budget_take(struct budget *, struct budget_part *, size_t len, bool slow,
    struct pw_waiter *);
void budget_give(struct budget *, struct budget_part *, size_t len);

/* Returns true if the device has taken less than an eighth of what is left. */
bool budget_plenty(struct budget *, struct budget_part *);

/* Reports that a window was evicted unsent. */
void budget_evicted(struct budget *, uint64_t now_us);

/* Lets the budget grow, and admits transfers that have waited for a second.  Call a few times a second. */
void budget_tick(struct budget *, uint64_t now_us);

/* Returns true if a transfer waits. */
bool budget_is_waited_for(struct budget *);

size_t budget_used(struct budget *);
size_t budget_max(struct budget *); /* present limit, bytes */

#endif
