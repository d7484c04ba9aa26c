/*
 * stalled: returns the budget of stalled clients while other transfers wait for budget.
 *
 * A client is stalled if it acknowledges nothing for HOLDER_STALLED.  The fetched data stays in the
 * page cache, and is fetched again if it was evicted.  Loop's thread.
 */
#ifndef LIB_SEND_STALLED_H
#define LIB_SEND_STALLED_H

#include <stdint.h>

#include "lib/pagewise.h"

/* Returns the budget of stalled clients while a transfer waits for it.  Call a few times a second. */
void stalled_yield(struct pw_loop *, uint64_t now_us);

#endif
