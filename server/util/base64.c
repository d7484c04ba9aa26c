/*
 * base64: see base64.h.
 */
#include <stdint.h>

#include "server/util/base64.h"

static int
base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/*
 * Decodes a group of four characters, of which the last `pads` are '='.  Returns false if the group
 * is invalid.
 */
static bool
base64_group(const char *p, size_t pads, uint32_t *bits)
{
	size_t i;
	int v;

	*bits = 0;
	for (i = 0; i < 4; i++) {
		v = i < 4 - pads ? base64_value(p[i]) : 0;
		if (v < 0)
			return false;
		*bits = *bits << 6 | (uint32_t)v;
	}
	return (*bits & ((1u << 8 * pads) - 1)) == 0;
}

bool
base64_decode(struct str s, unsigned char *out, size_t size, size_t *len)
{
	size_t i, j, pads = 0, n;
	uint32_t bits;

	*len = 0;
	if (s.s_len % 4 != 0)
		return false;
	for (i = 0; i < s.s_len; i += 4) {
		if (i + 4 == s.s_len)
			pads = s.s_ptr[i + 3] != '='   ? 0
			       : s.s_ptr[i + 2] != '=' ? 1
						       : 2;
		n = 3 - pads;
		if (*len + n > size || !base64_group(s.s_ptr + i, pads, &bits))
			return false;
		for (j = 0; j < n; j++)
			out[(*len)++] = (unsigned char)(bits >> (16 - 8 * j));
	}
	return true;
}

void
base64_encode_url(const unsigned char *data, size_t len, char *out)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "abcdefghijklmnopqrstuvwxyz"
				       "0123456789-_";
	uint32_t bits;
	size_t i, j, n;

	for (i = 0; i < len; i += 3) {
		n = len - i < 3 ? len - i : 3;
		bits = (uint32_t)data[i] << 16;
		if (n > 1)
			bits |= (uint32_t)data[i + 1] << 8;
		if (n > 2)
			bits |= data[i + 2];
		for (j = 0; j <= n; j++)
			*out++ = alphabet[bits >> (18 - 6 * j) & 63];
	}
}
