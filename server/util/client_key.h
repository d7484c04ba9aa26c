/*
 * client_key: an address as clients are counted by it.  Pure; any thread.
 *
 * IPv4 addresses count each, also as IPv4-mapped IPv6; IPv6 by their first 64 bits,
 * since a host with one address has 2^64 of them.  All clients of a Unix socket are one: 0.
 *
 * An IPv6 client may have many such prefixes: a customer gets a /56 or a /48.  So where clients are
 * held to a number, their networks are as well: a /56 may have four times that of a /64, a /48 eight
 * times.  IPv4 addresses of one network are of different clients.
 */
#ifndef SERVER_UTIL_CLIENT_KEY_H
#define SERVER_UTIL_CLIENT_KEY_H

#include <stdint.h>

#define CLIENT_LEVELS 3 /* /64 or the address, /56, /48 */

struct sockaddr;

uint64_t client_key(const struct sockaddr *);

/* Returns on how many levels a client counts: 1 for IPv4 and Unix sockets. */
static inline unsigned
client_levels(uint64_t key)
{
	return key >> 48 == 0 ? 1 : CLIENT_LEVELS;
}

/* Returns the client's network on a level below client_levels.  No two levels share a value. */
static inline uint64_t
client_network(uint64_t key, unsigned level)
{
	return key >> (8 * level);
}

/* Returns how many times a client's number a network of this level may have. */
static inline unsigned
client_times(unsigned level)
{
	return level == 0 ? 1 : 2U << level;
}

#endif
