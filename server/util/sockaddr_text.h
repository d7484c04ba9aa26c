/*
 * sockaddr_text: a client's address as text, by hand because every request that is logged
 * pays for it; and back.  Pure.
 */
#ifndef SERVER_UTIL_SOCKADDR_TEXT_H
#define SERVER_UTIL_SOCKADDR_TEXT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "server/util/str.h"

/* A client's address: IPv4, IPv6, AF_UNIX without a name; AF_UNSPEC: none. */
union sockaddr_any {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/*
 * Writes an address as inet_ntop(3) has it, without port, IPv4 also where
 * it came as IPv4-mapped IPv6; "unix:", or "-" for what is none (also NULL).
 * Needs INET6_ADDRSTRLEN bytes.  Returns the end of the text.
 */
char *sockaddr_text(char *p, const struct sockaddr *);

/*
 * "192.0.2.7" or "2001:db8::1", as inet_pton(3) has them; no port, which is 0 then.  False: it
 * is neither, and *out may have changed.
 */
bool sockaddr_parse(struct str, union sockaddr_any *out);

#endif
