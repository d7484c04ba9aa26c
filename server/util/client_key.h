/*
 * client_key: an address as clients are counted by it.  Pure; any thread.
 *
 * IPv4 addresses count each, also as IPv4-mapped IPv6; IPv6 by their first 64 bits,
 * since a host with one address has 2^64 of them.  All clients of a Unix socket are one: 0.
 */
#ifndef SERVER_UTIL_CLIENT_KEY_H
#define SERVER_UTIL_CLIENT_KEY_H

#include <stdint.h>

struct sockaddr;

uint64_t client_key(const struct sockaddr *);

#endif
