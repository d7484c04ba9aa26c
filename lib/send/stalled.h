/*
 * stalled: clients that take nothing keep no budget that others wait for.
 *
 * A transmission whose client acknowledges nothing for HOLDER_STALLED returns its part.  Its data stays
 * in the page cache, and is fetched again if it was evicted.  The loop's thread.
 */
#ifndef LIB_SEND_STALLED_H
#define LIB_SEND_STALLED_H

#include <stdint.h>

#include "lib/pagewise.h"

/* Call a few times a second.  Does nothing while no transfer waits for the budget. */
void stalled_yield(struct pw_loop *, uint64_t now_us);

#endif
