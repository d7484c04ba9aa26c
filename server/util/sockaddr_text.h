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

/* A client's address: IPv4, IPv6, or AF_UNIX without a name; AF_UNSPEC if unknown. */
union sockaddr_any {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/*
 * Writes an address in the format of inet_ntop(3), without port, IPv4 also for IPv4-mapped IPv6;
 * "unix:"; or "-" for NULL or another family.  Needs INET6_ADDRSTRLEN bytes.  Returns the end of
 * the text.
 */
char *sockaddr_text(char *p, const struct sockaddr *);

/*
 * Parses "192.0.2.7" or "2001:db8::1", as inet_pton(3) does; the port is set to 0.  Returns false
 * for other texts; *out may have changed then.
 */
bool sockaddr_parse(struct str, union sockaddr_any *out);

#endif
