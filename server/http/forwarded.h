/*
 * forwarded: the client's address, as proxies wrote it into X-Forwarded-For or Forwarded (RFC
 * 7239).  Pure.
 *
 * Each proxy appends the address of its own client.  So the list is read from its end up to the
 * first untrusted address.  The members before that one are ignored, because the client may have
 * written them.
 */
#ifndef SERVER_HTTP_FORWARDED_H
#define SERVER_HTTP_FORWARDED_H

#include "server/util/cidr.h"
#include "server/util/sockaddr_text.h"
#include "server/util/str.h"

enum forwarded { FORWARDED_OFF, FORWARDED_X, FORWARDED_RFC7239 };

/*
 * Finds the last address of the list that is not in one of the `n` trusted blocks; if all are
 * trusted, the first address.  "unknown", an obfuscated name ("_x") or a syntax error ends the
 * search; the address read last then counts.  Empty members are skipped.  A port is allowed and
 * dropped; an IPv6 address without brackets and spaces around a semicolon are allowed too.  Returns
 * false and leaves *client unchanged if there is no address.  `list` holds all fields of the name,
 * joined by commas; an absent list counts as an empty one.
 */
bool forwarded_client(enum forwarded, struct str list, const struct cidr *,
    size_t n, union sockaddr_any *client);

#endif
