/*
 * redirect: redirects a client: by a rule of the configuration, to https://, or from a directory to
 * its path with a '/'.
 *
 * Location never starts with "//".  The host in Location comes from the configuration or from the
 * request.  The client's path is percent-encoded.  The client's query is copied, and consists of
 * visible ASCII characters (server/http/head.h).  So a client can neither add a field nor choose
 * another host.
 */
#ifndef SERVER_CONTENT_REDIRECT_H
#define SERVER_CONTENT_REDIRECT_H

#include <stdbool.h>

struct exchange;

/* Redirects if a rule of the configuration matches the path.  Otherwise returns false. */
bool redirect_by_rule(struct exchange *);

/*
 * Redirects to the same target with https://, at the port of the first listen address with TLS.
 * Responds with 400 if conf_host finds no host.  Returns false for paths that must not be
 * redirected: the paths of ACME (RFC 8555, 8.3), of live and of ready.
 */
bool redirect_to_https(struct exchange *);

/* Redirects to the path with an appended '/'.  Keeps the query. */
void redirect_to_directory(struct exchange *);

#endif
