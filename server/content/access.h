/*
 * access: decides whether a client gets a response: by its address, its request rate, a signed link,
 * or a password.  The exchange calls it once the settings of a request are known and before its file
 * is looked up, so that a refused client does not learn which files exist; only if set_guarded.
 * Responses with such settings are not in the response cache (set_by_client).
 *
 * Every admitted address gets a response to OPTIONS: browsers send no credentials with a preflight
 * (Fetch, CORS-preflight fetch), and the response reveals nothing about a file.
 */
#ifndef SERVER_CONTENT_ACCESS_H
#define SERVER_CONTENT_ACCESS_H

#include <stdbool.h>

struct exchange;
struct pending;

/*
 * Checks the client's address and its rate of requests, and counts the request.  Call once for each
 * request, also for one that is refused or redirected anyway.  Returns false if the response is
 * ready: 403 or 429.
 */
bool access_admit(struct exchange *);

/*
 * Checks the link and the password of a request that access_admit admitted.  Returns as
 * exchange_respond does; access_pending describes the wait.
 */
bool access_begin(struct exchange *);

extern const struct pending access_pending;

#endif
