/*
 * scheme: redirects plain HTTP to HTTPS, and refuses a request if its TLS connection was made for
 * another host (RFC 9110, 15.5.20).
 */
#ifndef SERVER_CONTENT_SCHEME_H
#define SERVER_CONTENT_SCHEME_H

#include <stdbool.h>

#include "server/content/exchange.h"

/* Returns true if scheme_respond must be called for the request. */
static inline bool
scheme_matters(const struct exchange *ex)
{
	return ex->ex_tls != NULL || ex->ex_lookup.lk_set->set_redirect_https;
}

/*
 * Makes a 421 or a redirect if the scheme of the request requires one.  Otherwise returns false.
 * Call after static_locate.
 *
 * Refuses with 421 unless the host is the name that the client sent in the handshake.  Also admits
 * another host if the certificate of the connection covers that host and the site of that host
 * requires the same client certificates.  A client that sent no name gets responses of the first
 * site.
 */
bool scheme_respond(struct exchange *);

/* Returns true if a request over TLS must be refused with 421. */
bool scheme_is_misdirected(const struct exchange *);

#endif
