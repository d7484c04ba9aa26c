/*
 * proxy_header: reads the header in which a proxy, at the start of a connection, sends the address
 * of its client: the PROXY protocol, versions 1 and 2 (HAProxy, doc/proxy-protocol.txt).  Pure.
 */
#ifndef SERVER_HTTP_PROXY_HEADER_H
#define SERVER_HTTP_PROXY_HEADER_H

#include <stddef.h>

#include "server/util/sockaddr_text.h"

/* Maximum bytes of a header.  Version 2 allows 65551; a header above this limit counts as broken. */
#define PROXY_HEADER_MAX 4096

enum proxy_header {
	PROXY_MORE,   /* incomplete; may still become a header */
	PROXY_NONE,   /* not a header */
	PROXY_BROKEN, /* begins like a header, but is invalid or too long */
	PROXY_DONE,
};

/*
 * Reads all bytes received so far; the caller passes them from the start each time.  Returns
 * PROXY_MORE only below PROXY_HEADER_MAX bytes.  With PROXY_DONE, sets *len to the length of the
 * header, and *client to the address and port of the proxy's client.  The address family is
 * AF_UNSPEC if the proxy speaks for itself or does not know the client (LOCAL, UNKNOWN, UNSPEC,
 * datagrams), and AF_UNIX for a client of a Unix socket on the proxy's host.  Additional fields
 * (TLVs) must fit, and are skipped; a checksum must be correct.
 */
enum proxy_header proxy_header_read(
    const char *, size_t received, size_t *len, union sockaddr_any *client);

#endif
