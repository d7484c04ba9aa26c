/*
 * tier_seen: remembers windows that the tier (tier.h) missed lately.  The tier admits a window at its
 * second miss: most windows are requested once, and would evict others in vain.  The table has a
 * fixed size, and a new entry replaces the one in its place, so an entry may be lost, or, in one of
 * 2^23 lookups, taken for another one.  The caller of each function holds a lock.
 */
#ifndef LIB_DISK_TIER_SEEN_H
#define LIB_DISK_TIER_SEEN_H

#include <stdbool.h>
#include <stdint.h>

struct tier_seen;

/*
 * Creates an empty table with at least `most` entries of 8 bytes.  An entry counts until `reach`
 * bytes have been missed.  Returns NULL if memory is short.
 */
struct tier_seen *tier_seen_create(uint32_t most, uint64_t reach);
void tier_seen_destroy(struct tier_seen **);

/*
 * Notes a miss of `len` bytes, at least 1, at `off` in the window with this hash.  Returns true if a
 * miss of one of these bytes, or of a byte near them, was noted before, and still counts.  So a client
 * that requests small ranges in order misses no window twice.
 */
bool tier_seen_note(
    struct tier_seen *, uint64_t hash, uint64_t off, uint64_t len);

#endif
