/*
 * holder: a transmission's part of the budget (budget.h), and the order in which a loop's
 * transmissions last made progress.  Loop's thread.
 */
#ifndef LIB_SEND_HOLDER_H
#define LIB_SEND_HOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/pagewise.h"

#define HOLDER_STALLED 2000000 /* minimum time of a stall, microseconds */

/* Returns the bytes that the transmission holds. */
size_t holder_bytes(const struct pw_send *);

/*
 * Adds `bytes` that were taken from the budget of the file's device.  If memory is short, returns them to
 * the budget at once; then the fetched data may be evicted sooner.
 */
void holder_add(struct pw_send *, size_t bytes);

/* Returns all but `bytes` to the budget. */
void holder_keep(struct pw_send *, size_t bytes);

/*
 * Returns a transmission whose client has acknowledged nothing for HOLDER_STALLED, or NULL.  Notices a
 * stall after twice HOLDER_STALLED at the latest.  Looks at *looks transmissions at most, and counts
 * *looks down.
 */
struct pw_send *holder_stalled(
    struct pw_loop *, uint64_t now_us, unsigned *looks);

#endif
