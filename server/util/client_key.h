/*
 * client_key: maps an address to the key by which clients are counted.  Pure; any thread.
 *
 * Each IPv4 address counts on its own, also as IPv4-mapped IPv6.  IPv6 addresses count by their
 * first 64 bits, since a host usually has all addresses of a /64.  All clients of Unix sockets
 * share the key 0.
 *
 * An IPv6 client may have many /64 networks, since a customer gets a /56 or a /48.  So limits per
 * client also apply to the networks of a client: a /56 may have four times the limit of a /64, a
 * /48 eight times.  IPv4 addresses of one network belong to different clients.
 */
#ifndef SERVER_UTIL_CLIENT_KEY_H
#define SERVER_UTIL_CLIENT_KEY_H

#include <stdint.h>

#define CLIENT_LEVELS 3 /* /64 or IPv4 address, /56, /48 */

struct sockaddr;

uint64_t client_key(const struct sockaddr *);

/* Returns a number that few clients share, also if their keys differ in a few bits only. */
static inline unsigned
client_number(uint64_t key)
{
	return (unsigned)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* Returns the number of levels on which a client counts, which is 1 for IPv4 and Unix sockets. */
static inline unsigned
client_levels(uint64_t key)
{
	return key >> 48 == 0 ? 1 : CLIENT_LEVELS;
}

/*
 * Returns the client's network on a level below client_levels.  Networks of different levels
 * differ.
 */
static inline uint64_t
client_network(uint64_t key, unsigned level)
{
	return key >> (8 * level);
}

/* Returns the multiple of a client's limit that a network of this level may have. */
static inline unsigned
client_times(unsigned level)
{
	return level == 0 ? 1 : 2U << level;
}

#endif
