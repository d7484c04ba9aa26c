/*
 * cidr: blocks of addresses, "192.0.2.0/24", "2001:db8::/32" (RFC 4632, RFC 4291 2.3).  Pure; any
 * thread.
 *
 * IPv4 addresses are stored as IPv4-mapped IPv6, so that a block matches a client of either socket
 * family.
 */
#ifndef SERVER_UTIL_CIDR_H
#define SERVER_UTIL_CIDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;

struct cidr {
	uint64_t cd_addr[2]; /* address, 16 bytes in network order */
	uint64_t cd_mask[2]; /* bits of cd_addr that count */
	bool cd_unix;	     /* true for "unix:": all clients of Unix sockets */
	bool cd_all;	     /* true for "all": every client */
};

/*
 * Parses "192.0.2.7", "192.0.2.0/24", "2001:db8::/32", "unix:", or "all", which matches every
 * client.  Returns false for any other text, or if bits are set behind the prefix length.
 */
bool cidr_parse(const char *text, struct cidr *);

/*
 * Returns why cidr_parse failed, for a message: "is not an address", or "has bits set after the
 * prefix length".
 */
const char *cidr_cause(const char *text);

/*
 * Returns true if the block contains the address.  Returns false if the address is NULL.  Only the
 * block "all" contains an address that is neither IPv4, IPv6 nor of a Unix socket.
 */
bool cidr_has(const struct cidr *, const struct sockaddr *);

/* Returns true if one of n blocks contains the address. */
bool cidr_has_any(const struct cidr *, size_t n, const struct sockaddr *);

#endif
