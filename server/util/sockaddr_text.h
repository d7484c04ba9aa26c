/*
 * sockaddr_text: a client's address as text, by hand because every request that is logged
 * pays for it.  Pure.
 */
#ifndef SERVER_UTIL_SOCKADDR_TEXT_H
#define SERVER_UTIL_SOCKADDR_TEXT_H

#include <netinet/in.h>
#include <sys/socket.h>

/*
 * Writes an address as inet_ntop(3) has it, without port, IPv4 also where
 * it came as IPv4-mapped IPv6; "unix:", or "-" for what is none (also NULL).
 * Needs INET6_ADDRSTRLEN bytes.  Returns the end of the text.
 */
char *sockaddr_text(char *p, const struct sockaddr *);

#endif
