/*
 * scheme: redirects plain HTTP to HTTPS, and refuses requests on a TLS connection that is not for
 * their host (RFC 9110, 15.5.20).
 */
#ifndef SERVER_CONTENT_SCHEME_H
#define SERVER_CONTENT_SCHEME_H

#include <stdbool.h>

#include "server/content/exchange.h"

/* Returns true if scheme_respond must be called. */
static inline bool
scheme_matters(const struct exchange *ex)
{
	return ex->ex_tls != NULL || ex->ex_lookup.lk_set->set_redirect_https;
}

/*
 * Makes the response, 421 or a redirect, if the request's scheme requires one.  Returns false if no
 * such response is required.  The site must be known.
 *
 * Refuses with 421 unless the host is the name that the client sent in the handshake, or the
 * connection's certificate covers the host and the host's site requires the same client
 * certificates.  A client that sent no name gets responses of the first site.
 */
bool scheme_respond(struct exchange *);

/* Returns true if a request on a TLS connection must be refused with 421. */
bool scheme_is_misdirected(const struct exchange *);

#endif
