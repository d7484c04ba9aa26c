/*
 * cidr: see cidr.h.
 */
#include "server/util/cidr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define MAPPED 96 /* bits before the address in IPv4-mapped IPv6 */

static void
map(unsigned char *out, const struct in_addr *in)
{
	memset(out, 0, 10);
	memset(out + 10, 0xff, 2);
	memcpy(out + 12, in, sizeof(*in));
}

/* The first bits are equal. */
static bool
same(const unsigned char *a, const unsigned char *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	return memcmp(a, b, whole) == 0 &&
	       (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

/* No bit behind its length is set: "10.1.2.3/8" is a mistake. */
static bool
is_block(const struct cidr *cd)
{
	unsigned char bits[16];

	memcpy(bits, cd->cd_addr, sizeof(bits));
	for (unsigned i = cd->cd_bits; i < 128; i++)
		bits[i / 8] &= (unsigned char)~(0x80u >> i % 8);
	return memcmp(bits, cd->cd_addr, sizeof(bits)) == 0;
}

static bool
parse_bits(const char *text, unsigned max, unsigned *bits)
{
	char *end;
	unsigned long value;

	if (*text < '0' || *text > '9')
		return false;
	value = strtoul(text, &end, 10);
	if (*end != '\0' || value > max)
		return false;
	*bits = (unsigned)value;
	return true;
}

bool
cidr_parse(const char *text, struct cidr *cd)
{
	const char *slash = strchr(text, '/');
	size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
	char name[INET6_ADDRSTRLEN];
	struct in_addr in;
	unsigned bits = 128, before = 0;

	*cd = (struct cidr){.cd_unix = strcmp(text, "unix:") == 0,
	    .cd_all = strcmp(text, "all") == 0};
	if (cd->cd_unix || cd->cd_all)
		return true;
	if (len >= sizeof(name))
		return false;
	memcpy(name, text, len);
	name[len] = '\0';
	if (inet_pton(AF_INET, name, &in) == 1) {
		map(cd->cd_addr, &in);
		before = MAPPED;
		bits = 32;
	} else if (inet_pton(AF_INET6, name, cd->cd_addr) != 1)
		return false;
	if (slash != NULL && !parse_bits(slash + 1, bits, &bits))
		return false;
	cd->cd_bits = (unsigned char)(before + bits);
	return is_block(cd);
}

bool
cidr_has(const struct cidr *cd, const struct sockaddr *sa)
{
	unsigned char addr[16];

	if (sa == NULL || cd->cd_all)
		return sa != NULL;
	if (cd->cd_unix)
		return sa->sa_family == AF_UNIX;
	if (sa->sa_family == AF_INET)
		map(addr,
		    &((const struct sockaddr_in *)(const void *)sa)->sin_addr);
	else if (sa->sa_family == AF_INET6)
		memcpy(addr,
		    &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr,
		    sizeof(addr));
	else
		return false;
	return same(addr, cd->cd_addr, cd->cd_bits);
}

bool
cidr_has_any(const struct cidr *list, size_t n, const struct sockaddr *sa)
{
	for (size_t i = 0; i < n; i++)
		if (cidr_has(&list[i], sa))
			return true;
	return false;
}
