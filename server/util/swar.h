/*
 * swar: checks eight bytes of text at once.  Pure.
 */
#ifndef SERVER_UTIL_SWAR_H
#define SERVER_UTIL_SWAR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define WORD_SIZE	sizeof(uint64_t)
#define WORD_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))
#define WORD_HIGH	WORD_EACH(0x80)

static inline uint64_t
swar_load(const char *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return w;
}

static inline void
swar_store(char *p, uint64_t w)
{
	memcpy(p, &w, sizeof(w));
}

/*
 * Returns true if every byte of w is from `least` to 0x7E; `least` is at most 0x7F.  A borrow or
 * carry comes only from a byte that is itself out of range, so it cannot change the result.
 */
static inline bool
swar_within(uint64_t w, unsigned char least)
{
	return ((w | (w - WORD_EACH(least)) | (w + WORD_EACH(1))) &
		   WORD_HIGH) == 0;
}

/* Returns true if any byte of w equals c.  Requires c and every byte of w to be below 0x80. */
static inline bool
swar_has(uint64_t w, unsigned char c)
{
	return (((w ^ WORD_EACH(c)) - WORD_EACH(1)) & WORD_HIGH) != 0;
}

#endif
