/*
 * hex: decodes lower-case hexadecimal digits.  Pure.
 */
#ifndef SERVER_UTIL_HEX_H
#define SERVER_UTIL_HEX_H

#include <stddef.h>

/*
 * Decodes pairs of digits into at most `size` bytes.  Stops at the first pair that has another
 * character.  Returns the number of decoded bytes.
 */
static inline size_t
hex_read(const char *text, void *to, size_t size)
{
	unsigned char *bytes = to;
	unsigned value[2];
	size_t n, i;

	for (n = 0; n < size; n++) {
		for (i = 0; i < 2; i++, text++) {
			if (*text >= '0' && *text <= '9')
				value[i] = (unsigned)(*text - '0');
			else if (*text >= 'a' && *text <= 'f')
				value[i] = (unsigned)(*text - 'a') + 10;
			else
				return n;
		}
		bytes[n] = (unsigned char)(value[0] << 4 | value[1]);
	}
	return n;
}

#endif
