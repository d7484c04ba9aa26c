/*
 * budget: limits the bytes that are being fetched, or were fetched and are not sent yet.
 * Data that is not sent soon enough would be evicted, then fetched again.
 *
 * A device may use twice the bytes that all devices together leave free (dynamic
 * thresholds: Choudhury, Hahne, IEEE/ACM Transactions on Networking 6, 1998): a device that
 * hangs holds at most two thirds of the budget, and the next one may use two thirds of the
 * rest.  A transfer that does not fit waits.  Devices with waiters are served round robin; on each
 * device transfers to fast clients go first, but every BUDGET_SLOWth one is to a slow client.  Stalled
 * clients hold their part for up to 4 s (lib/send/stalled.h).  So transfers that have waited for a second
 * are admitted beyond the budget, about a sixteenth of the budget in each quarter of a second.
 *
 * The size of the page cache is unknown: other files, sockets and the heap use memory,
 * too.  So the budget shrinks by an eighth, down to about a sixteenth of its first size, when a window
 * was evicted before it was sent.  A second after it last shrank, the budget grows again, by a
 * sixty-fourth of its first size in each quarter of a second.
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
	/* waiters with fast [0] and slow [1] clients */
	struct held_list rp_held[2];
	unsigned rp_round;
	/* link in bg_parts while transfers wait */
	TAILQ_ENTRY(budget_part) rp_link;
};

/* Creates a budget, whose first size is `max` bytes.  Returns NULL if memory is short. */
struct budget *budget_create(size_t max);
void budget_destroy(struct budget **);
void budget_part_init(struct budget_part *);

/*
 * Takes `len` bytes of the budget for a transfer; `slow` is true if its client is slow.  Returns
 *   0             if the bytes are taken; budget_give returns them to the budget
 *   -EINPROGRESS  if the bytes will be taken when the waiter is delivered
 *   -EAGAIN       if the bytes do not fit, and no waiter was passed
 *   -ENOMEM       if the bytes do not fit, and memory is short
 */
int budget_take(struct budget *, struct budget_part *, size_t len, bool slow,
    struct pw_waiter *);
void budget_give(struct budget *, struct budget_part *, size_t len);

/* Returns true if the device uses less than 1/part of the bytes that are left in the budget. */
bool budget_plenty(struct budget *, struct budget_part *, unsigned part);

/* Shrinks the budget, unless it shrank in the last 100 ms.  Call when a window was evicted unsent. */
void budget_evicted(struct budget *, uint64_t now_us);

/*
 * Lets the budget grow, and admits transfers that have waited for a second, both at most once in
 * 250 ms.  Call it at each tick of a loop.
 */
void budget_tick(struct budget *, uint64_t now_us);

/* Returns true if a transfer waits for budget. */
bool budget_is_waited_for(struct budget *);

size_t budget_used(struct budget *);
size_t budget_max(struct budget *); /* present limit, bytes */

#endif
