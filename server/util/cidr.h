/*
 * cidr: blocks of addresses, "192.0.2.0/24", "2001:db8::/32" (RFC 4632, RFC 4291 2.3).
 * Pure; any thread.
 *
 * IPv4 is IPv4-mapped IPv6 in here, so that a block holds a client whichever way it came.
 */
#ifndef SERVER_UTIL_CIDR_H
#define SERVER_UTIL_CIDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;

struct cidr {
	uint64_t cd_addr[2]; /* 16 bytes, in the order of the network */
	uint64_t cd_mask[2]; /* bits of it that count */
	bool cd_unix;	     /* "unix:": all clients of a socket of this host */
	bool cd_all;	     /* "all": these and every address */
};

/*
 * "192.0.2.7", "192.0.2.0/24", "2001:db8::/32", "unix:", or "all", which has every client.
 * False: it is none of these, or has bits set behind its length.
 */
bool cidr_parse(const char *text, struct cidr *);

/* Why not, for a message: "is not an address", or "has bits set behind its length". */
const char *cidr_cause(const char *text);

/* Is the address in it?  NULL is in none, another family in "all" alone. */
bool cidr_has(const struct cidr *, const struct sockaddr *);

/* Is it in one of n? */
bool cidr_has_any(const struct cidr *, size_t n, const struct sockaddr *);

#endif
