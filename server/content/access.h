/*
 * access: decides whether a client gets a response, by its address, its request rate, a signed link
 * and a password.  The exchange calls these functions if set_guarded is true, before the lookup of
 * the file, so that a refused client does not learn which files exist.  Responses with such
 * settings are not in the response cache (set_by_client).
 *
 * A client with an admitted address gets a response to OPTIONS without a link or password: browsers
 * send no credentials with a preflight (Fetch, CORS-preflight fetch), and the response reveals
 * nothing about a file.
 */
#ifndef SERVER_CONTENT_ACCESS_H
#define SERVER_CONTENT_ACCESS_H

#include <stdbool.h>

struct exchange;
struct pending;

/*
 * Checks the client's address and request rate, and counts the request.  Prepares a 403 or 429 and
 * returns false if either check fails; otherwise sets up the rate limits of the response
 * (pace_begin).  Call once for each request, even if the request is then refused or redirected.
 */
bool access_admit(struct exchange *);

/*
 * Checks the link and the password of a request that access_admit has admitted.  Returns as
 * exchange_respond does.  If a password thread must verify the password, the wait is
 * access_pending.
 */
bool access_begin(struct exchange *);

extern const struct pending access_pending;

#endif
