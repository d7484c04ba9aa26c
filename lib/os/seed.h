/*
 * seed: the secret seed of a hash table, see hash.h.
 */
#ifndef LIB_OS_SEED_H
#define LIB_OS_SEED_H

#include "lib/util/hash.h"

/* Fills in a new seed that clients cannot guess.  Any thread may call it; it does not wait. */
void seed_draw(struct seed *);

#endif
