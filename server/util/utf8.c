/*
 * utf8: see utf8.h.
 */
#include "server/util/utf8.h"

static size_t
utf8_sequence_len(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

size_t
utf8_decode(const char *text, size_t len, uint32_t *character)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *s = (const unsigned char *)text;
	size_t i, n = len > 0 ? utf8_sequence_len(s[0]) : 0;
	uint32_t c;

	if (n == 0 || n > len)
		return 0;
	c = n == 1 ? s[0] : s[0] & (0x7fU >> n);
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3fU);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*character = c;
	return n;
}
