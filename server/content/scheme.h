/*
 * scheme: what depends on whether a client speaks TLS: plain HTTP that is sent to HTTPS, and
 * requests on a connection of TLS that is not for their host (RFC 9110, 15.5.20).
 */
#ifndef SERVER_CONTENT_SCHEME_H
#define SERVER_CONTENT_SCHEME_H

#include <stdbool.h>

#include "server/content/exchange.h"

/* Whether scheme_respond has anything to look at. */
static inline bool
scheme_matters(const struct exchange *ex)
{
	return ex->ex_tls != NULL || ex->ex_lookup.lk_set->set_redirect_https;
}

/*
 * True: it has answered the request, whose site is known: 421, or a redirect.
 *
 * 421 unless the host is the name that the client asked for in the handshake, or the
 * connection's certificate covers it and its site asks for the same client certificates.  A
 * client that asked for no name gets answers of the first site.
 */
bool scheme_respond(struct exchange *);

/* Whether a request on a connection of TLS gets that 421. */
bool scheme_is_misdirected(const struct exchange *);

#endif
