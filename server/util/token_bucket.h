/*
 * token_bucket: so many units a second, and so many at once after a while without any.  Pure but
 * for atomics: any thread may use one together with others, without a lock.
 *
 * A bucket is one number: when all that was taken will have been earned (nanoseconds; GCRA,
 * ITU-T I.371).  0 is a full one.  Who takes more than there is gets it later: in the order of asking.
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

/* Units: so many a second, 1 to TOKEN_RATE_MOST; at once, TOKEN_BURST_MOST at most. */
struct token_rate {
	uint64_t tr_rate;
	uint64_t tr_depth;
};

/* Takes n units, which may be used from the time on that it returns; now or before: at once. */
uint64_t token_take(struct token_bucket *, const struct token_rate *,
    uint64_t n, uint64_t now_ns);

/* Units that were taken and not used. */
void token_give(struct token_bucket *, const struct token_rate *, uint64_t n);

/* Takes them if they are there now; false: *wait_ns says how long they are not. */
bool token_try(struct token_bucket *, const struct token_rate *, uint64_t n,
    uint64_t now_ns, uint64_t *wait_ns);

/*
 * Bytes to send at once: an eighth of a second's; but, since a wake-up costs as much as some 100 KiB,
 * 256 KiB if that is no more than two seconds'.
 */
uint64_t token_share(uint64_t rate);

/* It is as a new one. */
bool token_is_full(const struct token_bucket *, uint64_t now_ns);

#endif
