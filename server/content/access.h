/*
 * access: decides by address, request rate, signed link and password whether a client gets a
 * response.  The exchange calls these functions if set_guarded is true, after it has found the
 * request's settings and before it looks up the file, so that a refused client does not learn which
 * files exist.  Responses with such settings are not in the response cache (set_by_client).
 *
 * An admitted address gets a response to OPTIONS without a link or password, because browsers send
 * no credentials with a preflight (Fetch, CORS-preflight fetch).  The response reveals nothing
 * about a file.
 */
#ifndef SERVER_CONTENT_ACCESS_H
#define SERVER_CONTENT_ACCESS_H

#include <stdbool.h>

struct exchange;
struct pending;

/*
 * Checks the client's address and request rate, and counts the request.  Call once for each
 * request, even if another check refuses or redirects it.  Returns false if it made a 403 or 429
 * response.
 */
bool access_admit(struct exchange *);

/*
 * Checks the link and the password of a request that access_admit admitted.  Returns the same
 * values as exchange_respond.  access_pending is the wait for the password threads.
 */
bool access_begin(struct exchange *);

extern const struct pending access_pending;

#endif
