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
 * Adds `bytes` that were taken from the budget of the file's device.  If memory is short, returns
 * these bytes to the budget at once; then the fetched data may be evicted sooner.
 */
void holder_add(struct pw_send *, size_t bytes);

/* Keeps `bytes` of the transmission's part, and returns the rest to the budget. */
void holder_keep(struct pw_send *, size_t bytes);

/*
 * Returns a transmission whose client has acknowledged nothing for HOLDER_STALLED, or NULL.  Finds
 * a stall after at most twice HOLDER_STALLED.  Examines at most *looks transmissions, and
 * decrements *looks for each.
 */
struct pw_send *holder_stalled(
    struct pw_loop *, uint64_t now_us, unsigned *looks);

#endif
