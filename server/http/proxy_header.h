/*
 * proxy_header: what a proxy sends in front of a connection to say whose it is: the PROXY
 * protocol, versions 1 and 2 (HAProxy, doc/proxy-protocol.txt).  Pure.
 */
#ifndef SERVER_HTTP_PROXY_HEADER_H
#define SERVER_HTTP_PROXY_HEADER_H

#include <stddef.h>

#include "server/util/sockaddr_text.h"

/* Bytes: a header of version 2 may be of 65551, one that is longer than this is broken. */
#define PROXY_HEADER_MAX 4096

enum proxy_header {
	PROXY_MORE,   /* it may become one */
	PROXY_NONE,   /* something else begins there */
	PROXY_BROKEN, /* it begins as one, and breaks the rules */
	PROXY_DONE,
};

/*
 * Reads what has come so far, all of it each time; PROXY_MORE is of less than
 * PROXY_HEADER_MAX bytes.  PROXY_DONE: *len are the header's, and *client is who has connected
 * to the proxy, with its port; AF_UNSPEC: the proxy speaks for itself, or knows nobody (LOCAL,
 * UNKNOWN, UNSPEC, datagrams); AF_UNIX: a client of a Unix socket of the proxy's host.
 * Additional fields (TLVs) have to fit, and are skipped; a checksum has to be right.
 */
enum proxy_header proxy_header_read(
    const char *, size_t received, size_t *len, union sockaddr_any *client);

#endif
