/*
 * access: who may have an answer: by address, by how often it asks, by a signed link, by a password.  Asked once the settings of
 * a request are known, before its file is looked up, so that nobody learns what is there; only if
 * set_guarded.  Such settings have no ready answers (set_by_client).
 *
 * OPTIONS is answered to every address that may ask: browsers send no credentials with a
 * preflight (Fetch, CORS-preflight fetch), and its answer tells nothing of a file.
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
 * Checks link and password of a request that access_admit admitted.  Returns as exchange_respond; what
 * it waits for is access_pending.
 */
bool access_begin(struct exchange *);

extern const struct pending access_pending;

#endif
