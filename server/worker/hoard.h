/*
 * hoard: which of the connections that have not sent a complete request is closed when
 * another client needs the place.  Pure.
 *
 * The address that has most of them gives one up: first one that has sent nothing, of these
 * the oldest.  So a client that is slow, and alone at its address, stays while another has
 * two.  Where several addresses have most, all of theirs are compared.
 */
#ifndef SERVER_WORKER_HOARD_H
#define SERVER_WORKER_HOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util/hash.h"

#define HOARD_MAX  256 /* connections that are looked at */
#define HOARD_NONE SIZE_MAX

struct hoarded {
	uint64_t ho_key; /* its address: see client_key.h */
	bool ho_begun;	 /* it has sent something */
	bool ho_spared;	 /* it counts, but is not closed */
};

/*
 * list: n of them, HOARD_MAX at most, the oldest first; of these the first ripe may be
 * closed, the others are too young and only count.  Returns the number of one in the list;
 * *most: how many its address has.  HOARD_NONE: there is none, or all of the address that
 * has most are too young or spared; *most is that of this address, or 0.
 */
size_t hoard_pick(const struct seed *, const struct hoarded *list, size_t n,
    size_t ripe, unsigned *most);

#endif
