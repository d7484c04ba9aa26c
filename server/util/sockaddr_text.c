/*
 * sockaddr_text: see sockaddr_text.h.
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#include "server/util/sockaddr_text.h"

#define GROUPS 8

/* A run of zero groups that "::" replaces. */
struct run {
	int run_at;
	int run_len;
};

static char *
sockaddr_text_put_octet(char *p, unsigned n)
{
	if (n >= 100)
		*p++ = (char)('0' + n / 100);
	if (n >= 10)
		*p++ = (char)('0' + n / 10 % 10);
	*p++ = (char)('0' + n % 10);
	return p;
}

static char *
sockaddr_text_put_inet(char *p, const uint8_t octets[static 4])
{
	int i;

	for (i = 0; i < 4; i++) {
		if (i > 0)
			*p++ = '.';
		p = sockaddr_text_put_octet(p, octets[i]);
	}
	return p;
}

static unsigned
sockaddr_text_group(const struct in6_addr *addr, int i)
{
	const uint8_t *bytes = &addr->s6_addr[2 * (size_t)i];

	return (unsigned)bytes[0] << 8 | bytes[1];
}

static char *
sockaddr_text_put_group(char *p, unsigned n)
{
	int shift = n >= 0x1000 ? 12 : n >= 0x100 ? 8 : n >= 0x10 ? 4 : 0;

	for (; shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[n >> shift & 15];
	return p;
}

/* Returns the first of the longest runs of at least two zero groups (RFC 5952, 4.2). */
static struct run
sockaddr_text_longest_run(const struct in6_addr *addr)
{
	struct run best = {-1, 1}, now = {0, 0};
	int i;

	for (i = 0; i < GROUPS; i++) {
		if (sockaddr_text_group(addr, i) != 0) {
			now.run_len = 0;
			continue;
		}
		if (now.run_len++ == 0)
			now.run_at = i;
		if (now.run_len > best.run_len)
			best = now;
	}
	return best;
}

static char *
sockaddr_text_put_groups(char *p, const struct in6_addr *addr, struct run run)
{
	int i = 0;

	while (i < GROUPS) {
		if (i == run.run_at) {
			*p++ = ':';
			i += run.run_len;
			if (i == GROUPS)
				*p++ = ':';
			continue;
		}
		if (i > 0)
			*p++ = ':';
		p = sockaddr_text_put_group(p, sockaddr_text_group(addr, i++));
	}
	return p;
}

static char *
sockaddr_text_put_in(char *p, const struct sockaddr_in *in)
{
	return sockaddr_text_put_inet(p, (const uint8_t *)&in->sin_addr);
}

static char *
sockaddr_text_put_in6(char *p, const struct sockaddr_in6 *in6)
{
	const struct in6_addr *addr = &in6->sin6_addr;
	struct run run;

	if (IN6_IS_ADDR_V4MAPPED(addr))
		return sockaddr_text_put_inet(p, &addr->s6_addr[12]);
	run = sockaddr_text_longest_run(addr);
	/*
	 * Writes an IPv4-compatible address (deprecated: RFC 4291, 2.5.5.1) as inet_ntop(3) does.
	 */
	if (run.run_at == 0 && run.run_len == 6) {
		*p++ = ':';
		*p++ = ':';
		return sockaddr_text_put_inet(p, &addr->s6_addr[12]);
	}
	return sockaddr_text_put_groups(p, addr, run);
}

char *
sockaddr_text(char *p, const struct sockaddr *sa)
{
	switch (sa == NULL ? AF_UNSPEC : sa->sa_family) {
	case AF_INET:
		return sockaddr_text_put_in(p, (const void *)sa);
	case AF_INET6:
		return sockaddr_text_put_in6(p, (const void *)sa);
	case AF_UNIX:
		return stpcpy(p, "unix:");
	default:
		return stpcpy(p, "-");
	}
}

/*
 * Reads a number from 0 to 255 without a leading zero.  Returns the position after the number, or
 * NULL if the number is invalid.
 */
static const char *
sockaddr_text_take_octet(const char *p, const char *end, uint8_t *octet)
{
	unsigned n, digit;

	if (p == end || (n = (unsigned)*p - '0') > 9)
		return NULL;
	p++;
	if (p < end && n > 0 && (digit = (unsigned)*p - '0') <= 9) {
		n = n * 10 + digit;
		p++;
		if (p < end && (digit = (unsigned)*p - '0') <= 9) {
			n = n * 10 + digit;
			p++;
		}
	}
	*octet = (uint8_t)n;
	return n <= 255 ? p : NULL;
}

/*
 * Parses an IPv4 address without inet_pton(3), for speed, because each request may have such an
 * address.
 */
static bool
sockaddr_text_parse_in(struct str text, uint8_t octets[static 4])
{
	const char *p = text.s_ptr, *end = p + text.s_len;

	for (int i = 0; i < 4; i++) {
		if (i > 0 && (p == end || *p++ != '.'))
			return false;
		p = sockaddr_text_take_octet(p, end, &octets[i]);
		if (p == NULL)
			return false;
	}
	return p == end;
}

static bool
sockaddr_text_parse_in6(struct str text, struct in6_addr *addr)
{
	char copy[INET6_ADDRSTRLEN];

	if (text.s_len >= sizeof(copy) ||
	    memchr(text.s_ptr, '\0', text.s_len) != NULL)
		return false;
	memcpy(copy, text.s_ptr, text.s_len);
	copy[text.s_len] = '\0';
	return inet_pton(AF_INET6, copy, addr) == 1;
}

bool
sockaddr_parse(struct str text, union sockaddr_any *out)
{
	*out = (union sockaddr_any){.in6 = {0}};
	if (sockaddr_text_parse_in(text, (uint8_t *)&out->in.sin_addr)) {
		out->in.sin_family = AF_INET;
		return true;
	}
	out->in6 = (struct sockaddr_in6){.sin6_family = AF_INET6};
	return sockaddr_text_parse_in6(text, &out->in6.sin6_addr);
}
