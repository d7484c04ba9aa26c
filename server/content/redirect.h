/*
 * redirect: responses that redirect a client: by a rule of the configuration, or from a directory to
 * its path with a '/'.
 *
 * Location contains client input only percent-encoded, after a host that the configuration or the
 * request itself names, and never begins with "//": a client can neither add a field nor choose
 * another host.
 */
#ifndef SERVER_CONTENT_REDIRECT_H
#define SERVER_CONTENT_REDIRECT_H

#include <stdbool.h>

struct exchange;

/*
 * Makes the response if a rule of the configuration matches the path.  Returns false if none
 * matches.
 */
bool redirect_by_rule(struct exchange *);

/*
 * Redirects to the same target with https://, at the port of the first listen address with TLS.
 * Returns false for the paths of ACME (RFC 8555, 8.3) and of live and ready, which are not
 * redirected.
 */
bool redirect_to_https(struct exchange *);

/* Redirects to the path with a '/' appended, and keeps the query. */
void redirect_to_directory(struct exchange *);

#endif
