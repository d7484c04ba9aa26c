/*
 * server/http/proxy_header.h against a naive reading: version 1 by a regular expression,
 * version 2 field by field, with another way to the checksum.
 * Input: what a proxy sends; "CRC!" in it stands for the right checksum.
 */
#include <arpa/inet.h>
#include <regex.h>

#include "fuzz.h"
#include "server/http/proxy_header.h"

#define PORT "(0|[1-9][0-9]{0,4})"
#define V1                                                                   \
	"^PROXY (UNKNOWN( [^\n]*)?|TCP([46]) ([^ ]+) ([^ ]+) " PORT " " PORT \
	")\r\n"

struct seen {
	enum proxy_header se_what;
	size_t se_len;
	char se_client[INET6_ADDRSTRLEN];
	unsigned se_port;
};

static bool
address(int family, const char *text, regmatch_t m, void *out)
{
	char copy[128];

	snprintf(copy, sizeof(copy), "%.*s", (int)(m.rm_eo - m.rm_so),
	    text + m.rm_so);
	return inet_pton(family, copy, out) == 1;
}

static void
describe(struct seen *se, const union sockaddr_any *who)
{
	*sockaddr_text(se->se_client, &who->sa) = '\0';
	se->se_port =
	    who->sa.sa_family == AF_INET || who->sa.sa_family == AF_INET6
		? ntohs(who->in.sin_port)
		: 0;
}

static void
naive_v1(const char *text, size_t len, struct seen *se)
{
	union sockaddr_any who = {.in6 = {0}};
	int family;
	char line[108] = "", other[16];
	const char *end;
	regmatch_t m[8];
	regex_t re;
	bool good;

	memcpy(line, text, len < 107 ? len : 107);
	/* A NUL would end it for the expression. */
	end = memchr(line, '\n', len < 107 ? len : 107);
	se->se_what = len < 107 && end == NULL ? PROXY_MORE : PROXY_BROKEN;
	if (end == NULL)
		return;
	for (char *p = line; p < end; p++)
		if (*p == '\0')
			*p = '\1';
	CHECK(regcomp(&re, V1, REG_EXTENDED) == 0);
	good = regexec(&re, line, 8, m, 0) == 0;
	regfree(&re);
	if (!good)
		return;
	if (m[3].rm_so != -1) {
		family = line[m[3].rm_so] == '4' ? AF_INET : AF_INET6;
		who.sa.sa_family = (sa_family_t)family;
		if (!address(family, line, m[4],
			family == AF_INET ? (void *)&who.in.sin_addr
					  : (void *)&who.in6.sin6_addr) ||
		    !address(family, line, m[5], other) ||
		    strtol(line + m[6].rm_so, NULL, 10) > 65535 ||
		    strtol(line + m[7].rm_so, NULL, 10) > 65535)
			return;
		who.in.sin_port =
		    htons((uint16_t)strtol(line + m[6].rm_so, NULL, 10));
	}
	se->se_what = PROXY_DONE;
	se->se_len = (size_t)m[0].rm_eo;
	describe(se, &who);
}

/* One bit after the other, from the polynomial as it is written. */
static uint32_t
checksum(const uint8_t *p, size_t len)
{
	uint64_t rest = 0, poly = UINT64_C(0x11edc6f41);
	uint32_t out = 0;
	size_t bits = (len + 4) * 8, i;

	for (i = 0; i < bits; i++) {
		unsigned bit = i / 8 < len ? p[i / 8] >> (i % 8) & 1 : 0;

		/* All ones in front: the first 32 bits are inverted. */
		rest = rest << 1 | (bit ^ (i < 32));
		if (rest >> 32)
			rest ^= poly;
	}
	for (i = 0; i < 32; i++)
		out |= (uint32_t)(~rest >> i & 1) << (31 - i);
	return out;
}

static uint32_t
without(const uint8_t *p, size_t len, size_t at)
{
	uint8_t *copy = malloc(len);
	uint32_t sum;

	CHECK(copy != NULL);
	memcpy(copy, p, len);
	memset(copy + at, 0, 4);
	sum = checksum(copy, len);
	free(copy);
	return sum;
}

static bool
naive_fields(const uint8_t *p, size_t len, size_t at)
{
	int sums = 0;

	while (at < len) {
		size_t size;

		if (at + 3 > len)
			return false;
		size = (size_t)p[at + 1] * 256 + p[at + 2];
		if (at + 3 + size > len)
			return false;
		if (p[at] == 3) {
			uint32_t sum, is;

			if (size != 4 || ++sums > 1)
				return false;
			sum = without(p, len, at + 3);
			is = (uint32_t)p[at + 3] << 24 |
			     (uint32_t)p[at + 4] << 16 |
			     (uint32_t)p[at + 5] << 8 | p[at + 6];
			if (sum != is)
				return false;
		}
		at += 3 + size;
	}
	return true;
}

static void
naive_v2(const uint8_t *p, size_t len, struct seen *se)
{
	union sockaddr_any who = {.in6 = {0}};
	size_t size, least;

	se->se_what = PROXY_BROKEN;
	if (len > 12 && (p[12] & 0xf0) != 0x20)
		return;
	if (len > 12 && (p[12] & 0x0f) > 1)
		return;
	se->se_what = PROXY_MORE;
	if (len < 16)
		return;
	size = 16 + (size_t)p[14] * 256 + p[15];
	if (size > 4096)
		se->se_what = PROXY_BROKEN;
	if (size > 4096 || size > len)
		return;
	if (p[12] == 0x21) {
		se->se_what = PROXY_BROKEN;
		if (p[13] >= 0x40 || (p[13] & 0x0f) >= 3)
			return;
		least = p[13] < 0x10   ? 16
			: p[13] < 0x20 ? 28
			: p[13] < 0x30 ? 52
				       : 232;
		if (size < least || !naive_fields(p, size, least))
			return;
		switch (p[13]) {
		case 0x11:
			who.sa.sa_family = AF_INET;
			memcpy(&who.in.sin_addr, p + 16, 4);
			who.in.sin_port =
			    htons((uint16_t)((unsigned)p[24] * 256 + p[25]));
			break;
		case 0x21:
			who.sa.sa_family = AF_INET6;
			memcpy(&who.in6.sin6_addr, p + 16, 16);
			who.in6.sin6_port =
			    htons((uint16_t)((unsigned)p[48] * 256 + p[49]));
			break;
		case 0x31:
			who.sa.sa_family = AF_UNIX;
		}
	}
	se->se_what = PROXY_DONE;
	se->se_len = size;
	describe(se, &who);
}

static struct seen
naive(const char *text, size_t len)
{
	static const char two[12] = {
	    13, 10, 13, 10, 0, 13, 10, 'Q', 'U', 'I', 'T', 10};
	struct seen se = {.se_what = PROXY_NONE};

	if (len < 6 && memcmp(text, "PROXY ", len) == 0)
		se.se_what = PROXY_MORE;
	else if (len >= 6 && memcmp(text, "PROXY ", 6) == 0)
		naive_v1(text, len, &se);
	else if (memcmp(text, two, len < 12 ? len : 12) == 0) {
		se.se_what = PROXY_MORE;
		if (len >= 12)
			naive_v2((const uint8_t *)text, len, &se);
	}
	return se;
}

static struct seen
ours(const char *text, size_t len)
{
	struct seen se = {.se_what = PROXY_NONE};
	char *copy = fuzz_copy((struct str){text, len});
	union sockaddr_any who;

	se.se_what = proxy_header_read(copy, len, &se.se_len, &who);
	if (se.se_what == PROXY_DONE)
		describe(&se, &who);
	free(copy);
	return se;
}

static void
compare(const struct seen *a, const struct seen *b)
{
	CHECK(a->se_what == b->se_what);
	if (a->se_what != PROXY_DONE)
		return;
	CHECK(a->se_len == b->se_len);
	CHECK(strcmp(a->se_client, b->se_client) == 0);
	CHECK(a->se_port == b->se_port);
}

/* Puts the right one in the place of "CRC!". */
static void
mend(char *text, size_t len)
{
	char *at = memmem(text, len, "CRC!", 4);
	size_t size;
	uint32_t sum;

	if (at == NULL || len < 16)
		return;
	size = 16 + (size_t)(uint8_t)text[14] * 256 + (uint8_t)text[15];
	if (size > len || (size_t)(at - text) + 4 > size)
		return;
	sum = htonl(without((const uint8_t *)text, size, (size_t)(at - text)));
	memcpy(at, &sum, 4);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size);
	char *text = fuzz_text(in);
	struct seen whole, part, same;

	mend(text, in.s_len);
	whole = ours(text, in.s_len);
	same = naive(text, in.s_len);
	compare(&whole, &same);
	/* In pieces it is the same, and nothing is decided too early. */
	for (size_t i = 0; i < in.s_len && i < 300; i++) {
		part = ours(text, i);
		if (part.se_what != PROXY_MORE)
			compare(&part, &whole);
		CHECK(whole.se_what != PROXY_DONE || i >= whole.se_len ||
		      part.se_what == PROXY_MORE);
	}
	free(text);
	return 0;
}
