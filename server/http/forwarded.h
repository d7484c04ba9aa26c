/*
 * forwarded: finds the client's address in X-Forwarded-For or Forwarded (RFC 7239), which proxies
 * write.  Pure.
 *
 * Each proxy appends the address of its own client, so the list is read from its end up to the
 * first untrusted address.  Members before that address are ignored, because the client may have
 * written them.
 */
#ifndef SERVER_HTTP_FORWARDED_H
#define SERVER_HTTP_FORWARDED_H

#include "server/util/cidr.h"
#include "server/util/sockaddr_text.h"
#include "server/util/str.h"

enum forwarded { FORWARDED_OFF, FORWARDED_X, FORWARDED_RFC7239 };

/*
 * Finds the last address of the list that is not in one of the `n` trusted blocks.  If all are
 * trusted, finds the first address.  The search stops at "unknown", an obfuscated name ("_x") or a
 * syntax error; the address read last is then the result.  Empty members are skipped.  A port is
 * allowed and ignored.  IPv6 addresses need no brackets, and spaces may surround a semicolon.
 * Returns false, and leaves *client unchanged, if no address was found.  `list` holds the values of
 * all fields with this name, joined by commas; an absent list counts as an empty list.
 */
bool forwarded_client(enum forwarded, struct str list, const struct cidr *,
    size_t n, union sockaddr_any *client);

#endif
