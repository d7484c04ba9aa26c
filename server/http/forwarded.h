/*
 * forwarded: who asked, as proxies have written it into X-Forwarded-For or Forwarded
 * (RFC 7239).  Pure.
 *
 * Each proxy adds the address that it was asked from at the end.  So the list is read from its
 * end, and what stands before the first address that is not trusted, which a client may have
 * written, is not looked at.
 */
#ifndef SERVER_HTTP_FORWARDED_H
#define SERVER_HTTP_FORWARDED_H

#include "server/util/cidr.h"
#include "server/util/sockaddr_text.h"
#include "server/util/str.h"

enum forwarded { FORWARDED_OFF, FORWARDED_X, FORWARDED_RFC7239 };

/*
 * The last address of the list that is not one of n trusted blocks; if all are trusted, the
 * first.  "unknown", an obfuscated name ("_x") and what breaks the grammar end the search: what
 * was read before counts.  Empty members are skipped.  A port is allowed, and forgotten; so are
 * an IPv6 address without brackets and spaces around a semicolon.  False: there is no address,
 * and *client stays as it was.  list: all fields of the name, joined by commas; absent is empty.
 */
bool forwarded_client(enum forwarded, struct str list, const struct cidr *,
    size_t n, union sockaddr_any *client);

#endif
