/*
 * hash: hashes names that clients choose, for tables with chains.  SipHash-1-3 (Aumasson,
 * Bernstein: "SipHash: a fast short-input PRF", 2012) with a secret seed for each table, so clients
 * cannot choose names that share a chain.
 */
#ifndef LIB_UTIL_HASH_H
#define LIB_UTIL_HASH_H

#include <stddef.h>
#include <stdint.h>

struct seed {
	uint64_t se_0, se_1;
};

/*
 * Returns the hash of `len` bytes.  `salt`, which clients must not choose, makes the hashes of equal
 * bytes differ, for example of paths below different roots; it may be 0.
 */
uint64_t hash_bytes(
    const struct seed *, uint64_t salt, const void *bytes, size_t len);

#endif
