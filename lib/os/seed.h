/*
 * seed: the secret of a table, see hash.h.
 */
#ifndef LIB_OS_SEED_H
#define LIB_OS_SEED_H

#include "lib/util/hash.h"

/* Returns a new seed each time.  Any thread; does not wait. */
void seed_draw(struct seed *);

#endif
