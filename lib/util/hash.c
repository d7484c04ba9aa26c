/*
 * hash: see hash.h.
 */
#include <string.h>

#include "lib/util/check.h"
#include "lib/util/hash.h"

struct state {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t
hash_rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void
hash_mix(struct state *st)
{
	st->v0 += st->v1;
	st->v2 += st->v3;
	st->v1 = hash_rotate(st->v1, 13) ^ st->v0;
	st->v3 = hash_rotate(st->v3, 16) ^ st->v2;
	st->v0 = hash_rotate(st->v0, 32);
	st->v2 += st->v1;
	st->v0 += st->v3;
	st->v1 = hash_rotate(st->v1, 17) ^ st->v2;
	st->v3 = hash_rotate(st->v3, 21) ^ st->v0;
	st->v2 = hash_rotate(st->v2, 32);
}

static inline void
hash_take(struct state *st, uint64_t word)
{
	st->v3 ^= word;
	hash_mix(st);
	st->v0 ^= word;
}

/* Reads words in the byte order of the machine, since no hash leaves the process. */
uint64_t
hash_bytes(const struct seed *se, uint64_t salt, const void *bytes, size_t len)
{
	uint64_t key0 = se->se_0, key1 = se->se_1 ^ salt, word;
	struct state st = {
	    key0 ^ 0x736f6d6570736575U,
	    key1 ^ 0x646f72616e646f6dU,
	    key0 ^ 0x6c7967656e657261U,
	    key1 ^ 0x7465646279746573U,
	};
	const char *p = bytes;
	size_t left = len;
	int i;

	/* The seed must be drawn first (seed_draw). */
	PW_CHECK(se->se_0 != 0 || se->se_1 != 0);
	for (; left >= sizeof(word); left -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		hash_take(&st, word);
	}
	word = 0;
	if (left > 0)
		memcpy(&word, p, left);
	hash_take(&st, word | (uint64_t)len << 56);
	st.v2 ^= 0xff;
	for (i = 0; i < 3; i++)
		hash_mix(&st);
	return st.v0 ^ st.v1 ^ st.v2 ^ st.v3;
}
