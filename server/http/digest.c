/*
 * digest: see digest.h.
 */
#include "server/http/digest.h"

#include <stdio.h>

#include "lib/util/timespec.h"

#define NANOSECONDS 9 /* number of digits */

static const char hex[] = "0123456789abcdef";

size_t
digest_format(const struct digest *dg, char text[static DIGEST_TEXT])
{
	char *p = text;

	for (size_t i = 0; i < DIGEST_HASH; i++) {
		*p++ = hex[dg->dg_hash[i] >> 4];
		*p++ = hex[dg->dg_hash[i] & 15];
	}
	p += snprintf(p, DIGEST_TEXT - 2 * DIGEST_HASH, " %lld %lld.%09ld",
	    (long long)dg->dg_size, (long long)dg->dg_mtime.tv_sec,
	    (long)dg->dg_mtime.tv_nsec);
	return (size_t)(p - text);
}

static int
digest_nibble(char c)
{
	const char *p = c == '\0' ? NULL : strchr(hex, c);

	return p == NULL ? -1 : (int)(p - hex);
}

static bool
digest_take_hash(struct str *s, uint8_t hash[static DIGEST_HASH])
{
	int high, low;

	if (s->s_len < (size_t)2 * DIGEST_HASH)
		return false;
	for (size_t i = 0; i < DIGEST_HASH; i++) {
		high = digest_nibble(s->s_ptr[0]);
		low = digest_nibble(s->s_ptr[1]);
		if (high < 0 || low < 0)
			return false;
		hash[i] = (uint8_t)(high << 4 | low);
		str_advance(s, 2);
	}
	return true;
}

static bool
digest_take_digit(struct str *s, int64_t *number)
{
	int digit;

	if (s->s_len == 0 || *s->s_ptr < '0' || *s->s_ptr > '9')
		return false;
	digit = *s->s_ptr - '0';
	if (*number > (INT64_MAX - digit) / 10)
		return false;
	*number = *number * 10 + digit;
	str_advance(s, 1);
	return true;
}

/*
 * Reads a number at the front of *s.  Returns false if the number has a sign or a leading zero, or
 * does not fit into an int64_t.
 */
static bool
digest_take_number(struct str *s, int64_t *number)
{
	bool zero = s->s_len > 0 && *s->s_ptr == '0';

	*number = 0;
	if (!digest_take_digit(s, number))
		return false;
	while (!zero && digest_take_digit(s, number))
		;
	return s->s_len == 0 || *s->s_ptr < '0' || *s->s_ptr > '9';
}

static bool
digest_take_time(struct str *s, struct timespec *ts)
{
	bool negative = str_skip(s, STR("-"));
	int64_t seconds, nanoseconds = 0;

	if (!digest_take_number(s, &seconds) || (negative && seconds == 0) ||
	    !str_skip(s, STR(".")))
		return false;
	for (int i = 0; i < NANOSECONDS; i++)
		if (!digest_take_digit(s, &nanoseconds))
			return false;
	ts->tv_sec = (time_t)(negative ? -seconds : seconds);
	ts->tv_nsec = (long)nanoseconds;
	return true;
}

bool
digest_parse(struct str text, struct digest *dg)
{
	return digest_take_hash(&text, dg->dg_hash) &&
	       str_skip(&text, STR(" ")) &&
	       digest_take_number(&text, &dg->dg_size) &&
	       str_skip(&text, STR(" ")) &&
	       digest_take_time(&text, &dg->dg_mtime) && text.s_len == 0;
}

bool
digest_is_of(
    const struct digest *dg, int64_t size, const struct timespec *mtime)
{
	return dg->dg_size == size && timespec_same(&dg->dg_mtime, mtime);
}

void
digest_base64(
    const uint8_t hash[static DIGEST_HASH], char text[static DIGEST_BASE64])
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = 0;
	int have = 0;

	for (size_t i = 0; i < DIGEST_HASH; i++) {
		bits = bits << 8 | hash[i];
		for (have += 8; have >= 6; have -= 6)
			*text++ = digits[bits >> (have - 6) & 63];
	}
	/* The loop has written 42 digits; 4 of the 256 bits are left. */
	*text++ = digits[bits << (6 - have) & 63];
	*text++ = '=';
	*text = '\0';
}

/* Returns true for a weight from 1 to 10.  Ignores the parameters of the member. */
static bool
digest_is_weight(struct str value)
{
	int64_t weight;

	if (!digest_take_number(&value, &weight))
		return false;
	value = str_trim(value);
	return weight >= 1 && weight <= 10 &&
	       (value.s_len == 0 || *value.s_ptr == ';');
}

bool
digest_is_wanted(struct str want)
{
	bool wanted = want.s_ptr == NULL;
	struct str member;

	while (str_member(&want, &member))
		if (str_skip(&member, STR("sha-256=")))
			wanted = digest_is_weight(member);
	return wanted;
}
