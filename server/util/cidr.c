/*
 * cidr: see cidr.h.
 */
#include "server/util/cidr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define MAPPED 96 /* bits before the address in IPv4-mapped IPv6 */

static void
cidr_map(uint64_t to[static 2], const struct in_addr *in)
{
	struct in6_addr addr = {0};

	memset(&addr.s6_addr[10], 0xff, 2);
	memcpy(&addr.s6_addr[12], in, sizeof(*in));
	memcpy(to, &addr, sizeof(addr));
}

/*
 * Sets the mask.  Returns false if a bit behind the prefix length is set: "10.1.2.3/8" is a
 * mistake.
 */
static bool
cidr_set_bits(struct cidr *cd, unsigned n)
{
	unsigned char mask[sizeof(cd->cd_mask)] = {0};

	for (unsigned i = 0; i < n; i++)
		mask[i / 8] |= (unsigned char)(0x80u >> i % 8);
	memcpy(cd->cd_mask, mask, sizeof(mask));
	return (cd->cd_addr[0] & ~cd->cd_mask[0]) == 0 &&
	       (cd->cd_addr[1] & ~cd->cd_mask[1]) == 0;
}

static bool
cidr_parse_bits(const char *text, unsigned max, unsigned *bits)
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

/*
 * Parses a block.  Returns 0, -EINVAL if the text is not a block, or -ERANGE if bits after the
 * prefix are set.
 */
static int
cidr_parse_block(const char *text, struct cidr *cd)
{
	const char *slash = strchr(text, '/');
	size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
	char name[INET6_ADDRSTRLEN];
	struct in_addr in;
	unsigned bits = 128, before = 0;

	*cd = (struct cidr){.cd_unix = strcmp(text, "unix:") == 0,
	    .cd_all = strcmp(text, "all") == 0};
	if (cd->cd_unix || cd->cd_all)
		return 0;
	if (len >= sizeof(name))
		return -EINVAL;
	memcpy(name, text, len);
	name[len] = '\0';
	if (inet_pton(AF_INET, name, &in) == 1) {
		cidr_map(cd->cd_addr, &in);
		before = MAPPED;
		bits = 32;
	} else if (inet_pton(AF_INET6, name, cd->cd_addr) != 1)
		return -EINVAL;
	if (slash != NULL && !cidr_parse_bits(slash + 1, bits, &bits))
		return -EINVAL;
	return cidr_set_bits(cd, before + bits) ? 0 : -ERANGE;
}

bool
cidr_parse(const char *text, struct cidr *cd)
{
	return cidr_parse_block(text, cd) == 0;
}

const char *
cidr_cause(const char *text)
{
	struct cidr cd;

	return cidr_parse_block(text, &cd) == -ERANGE
		   ? "has bits set after the prefix length"
		   : "is not an address";
}

/* Copies an IPv4 or IPv6 address.  Returns false if the address is of another family. */
static bool
cidr_words_of(const struct sockaddr *sa, uint64_t words[static 2])
{
	if (sa->sa_family == AF_INET)
		cidr_map(words,
		    &((const struct sockaddr_in *)(const void *)sa)->sin_addr);
	else if (sa->sa_family == AF_INET6)
		memcpy(words,
		    &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr,
		    2 * sizeof(*words));
	else
		return false;
	return true;
}

bool
cidr_has(const struct cidr *cd, const struct sockaddr *sa)
{
	return cidr_has_any(cd, 1, sa);
}

bool
cidr_has_any(const struct cidr *list, size_t n, const struct sockaddr *sa)
{
	uint64_t words[2] = {0};
	bool known = sa != NULL && cidr_words_of(sa, words);

	for (size_t i = 0; sa != NULL && i < n; i++) {
		const struct cidr *cd = &list[i];

		if (cd->cd_all || (cd->cd_unix && sa->sa_family == AF_UNIX))
			return true;
		if (known && !cd->cd_unix &&
		    ((words[0] ^ cd->cd_addr[0]) & cd->cd_mask[0]) == 0 &&
		    ((words[1] ^ cd->cd_addr[1]) & cd->cd_mask[1]) == 0)
			return true;
	}
	return false;
}
