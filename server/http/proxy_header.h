/*
 * proxy_header: reads a header of the PROXY protocol, versions 1 and 2 (HAProxy,
 * doc/proxy-protocol.txt).  A proxy sends the header at the start of a connection, with the address
 * of the proxy's client.  Pure.
 */
#ifndef SERVER_HTTP_PROXY_HEADER_H
#define SERVER_HTTP_PROXY_HEADER_H

#include <stddef.h>

#include "server/util/sockaddr_text.h"

/*
 * Maximum bytes of a header.  Version 2 allows 65551, but a header above this limit counts as
 * PROXY_BROKEN.
 */
#define PROXY_HEADER_MAX 4096

enum proxy_header {
	PROXY_MORE,   /* incomplete so far */
	PROXY_NONE,   /* not a header */
	PROXY_BROKEN, /* starts like a header; invalid or too long */
	PROXY_DONE,
};

/*
 * Reads the header.  `received` counts all bytes since the start of the connection.  Returns
 * PROXY_MORE only if `received` is below PROXY_HEADER_MAX.  With PROXY_DONE, sets *len to the
 * length of the header, and *client to the address and port of the proxy's client.  The address
 * family is AF_UNSPEC if the proxy opened the connection for itself or does not know the client
 * (LOCAL, UNKNOWN, UNSPEC, datagrams).  The address family is AF_UNIX for a client of a Unix socket
 * on the proxy's host.  TLVs must fit into the header, and are skipped; a checksum must be correct,
 * and the only one.
 */
enum proxy_header proxy_header_read(
    const char *, size_t received, size_t *len, union sockaddr_any *client);

#endif
