/*
 * hash: of what clients choose, for tables with chains.  SipHash-1-3 (Aumasson, Bernstein:
 * "SipHash: a fast short-input PRF", 2012) under a secret of the table's own:
 * without it a client cannot choose names that meet in one chain.
 */
#ifndef LIB_UTIL_HASH_H
#define LIB_UTIL_HASH_H

#include <stddef.h>
#include <stdint.h>

struct seed {
	uint64_t se_0, se_1;
};

/* salt identifies what the bytes belong to, and is not chosen by clients; or 0. */
uint64_t hash_bytes(
    const struct seed *, uint64_t salt, const void *bytes, size_t len);

#endif
