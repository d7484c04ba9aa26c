/*
 * sockaddr_text: converts a client's address to text and back.  Writes addresses without
 * inet_ntop(3), for speed, as every logged request needs the text of an address.  Pure.
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
 * Writes an IP address, without its port, as inet_ntop(3) does, but an IPv4-mapped IPv6 address as
 * IPv4.  Writes "unix:" for a Unix socket, and "-" for NULL or another family.  The caller provides
 * INET6_ADDRSTRLEN bytes.  Returns the end of the text, where the caller adds a NUL if it needs
 * one.
 */
char *sockaddr_text(char *p, const struct sockaddr *);

/*
 * Parses "192.0.2.7" or "2001:db8::1", as inet_pton(3) does, and sets the port to 0.  Returns false
 * for other texts; *out is then undefined.
 */
bool sockaddr_parse(struct str, union sockaddr_any *out);

#endif
