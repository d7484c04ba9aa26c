/*
 * holder: a transmission's part of the budget (budget.h), and the order in which a loop's
 * transmissions last made progress.  The loop's thread.
 */
#ifndef LIB_SEND_HOLDER_H
#define LIB_SEND_HOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/pagewise.h"

#define HOLDER_STALLED 2000000 /* microseconds */

/* Returns the bytes that the transmission holds. */
size_t holder_bytes(const struct pw_send *);

/*
 * Adds bytes that were taken from the budget of the file's device.  Gives them back at once if memory
 * is short: then the data is fetched, but may be evicted sooner.
 */
void holder_add(struct pw_send *, size_t bytes);

/* Returns all but this many bytes to the budget. */
void holder_keep(struct pw_send *, size_t bytes);

/*
 * Returns a transmission whose client has acknowledged nothing for HOLDER_STALLED at least, and for less
 * than twice as long, or NULL.  Looks at *looks transmissions at most, and counts down.
 */
struct pw_send *holder_stalled(
    struct pw_loop *, uint64_t now_us, unsigned *looks);

#endif
