/*
 * redirect: answers that send a client elsewhere: by a rule of the configuration, or from a
 * directory to its path with a '/'.
 *
 * What a client has sent gets into Location only percent-encoded, behind a host that the
 * configuration names or that is the request's own, and never so that it begins with "//":
 * it can neither add a line nor choose another host.
 */
#ifndef SERVER_CONTENT_REDIRECT_H
#define SERVER_CONTENT_REDIRECT_H

#include <stdbool.h>

struct exchange;

/* True: a rule has answered the request. */
bool redirect_by_rule(struct exchange *);

/*
 * To the same with https://, at the port of the first address that speaks TLS.  False: paths of
 * ACME (RFC 8555, 8.3) and of live and ready stay.
 */
bool redirect_to_https(struct exchange *);

/* To the path with a '/', and its query. */
void redirect_to_directory(struct exchange *);

#endif
