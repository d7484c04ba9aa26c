/*
 * token_bucket: limits the units per second, with a burst after a pause.  Pure except for atomics:
 * several threads may use a bucket at once, without a lock.
 *
 * A bucket is one number: the time, in nanoseconds, at which all taken units will be earned (GCRA,
 * ITU-T I.371).  A new bucket is 0, which is full.  A caller that takes more units than available
 * may use them later; callers get units in the order of their calls.
 */
#ifndef SERVER_UTIL_TOKEN_BUCKET_H
#define SERVER_UTIL_TOKEN_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#define TOKEN_RATE_MOST	 ((uint64_t)16 << 30)
#define TOKEN_BURST_MOST ((uint64_t)64 << 30)

struct token_bucket {
	_Atomic uint64_t tb_earned;
};

struct token_rate {
	uint64_t tr_rate;  /* units per second, 1 to TOKEN_RATE_MOST */
	uint64_t tr_depth; /* burst in units, at most TOKEN_BURST_MOST */
};

/*
 * Takes n units.  Returns the time from which the caller may use these units; this time may have
 * passed.
 */
uint64_t token_take(struct token_bucket *, const struct token_rate *,
    uint64_t n, uint64_t now_ns);

/* Returns unused units to the bucket. */
void token_give(struct token_bucket *, const struct token_rate *, uint64_t n);

/*
 * Takes n units and returns true if they are available now.  Otherwise returns false, and stores
 * the time to wait in *wait_ns.
 */
bool token_try(struct token_bucket *, const struct token_rate *, uint64_t n,
    uint64_t now_ns, uint64_t *wait_ns);

/*
 * Returns the number of bytes to send at once at this rate: the bytes of an eighth of a second, but
 * at least 256 KiB or the bytes of two seconds, whichever is less.  A wake-up costs as much
 * processor time as sending 100 KiB, so smaller sends would waste processor time.
 */
uint64_t token_share(uint64_t rate);

/* Returns true if the bucket is full, like a new one. */
bool token_is_full(const struct token_bucket *, uint64_t now_ns);

#endif
