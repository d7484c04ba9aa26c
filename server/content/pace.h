/*
 * pace: limits how fast a response is sent (rate, client_rate, burst), and how often a client may
 * send requests (request_rate).  rate and client_rate apply only to responses with a body.  A
 * response without a body counts only as a request.
 *
 * Before each chunk, an exchange takes the bytes of the chunk from the bucket of the connection and
 * from the buckets of the client.  The exchange sends the chunk when the buckets have earned these
 * bytes.  So an exchange wakes up once per chunk, and the exchanges of a client wake up in the
 * order in which they took their bytes.  At the end of the exchange, unsent bytes return to the
 * buckets.
 */
#ifndef SERVER_CONTENT_PACE_H
#define SERVER_CONTENT_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct exchange;
struct settings;

/*
 * Takes a request from the buckets of request_rate.  Returns true if the buckets hold one, or if no
 * request_rate applies.  Otherwise counts a refusal of the rule, and sets *seconds to the time
 * after which the client may retry.
 */
bool pace_admit(struct exchange *, unsigned *seconds);

/*
 * Sets ex_paced if rate or client_rate applies, and finds the client's buckets for client_rate.
 * Call once for each admitted request.
 */
void pace_begin(struct exchange *);

/*
 * Takes the bytes of the next chunk from the buckets if none are left.  Returns 0 if the response
 * may continue now, else the earliest time to continue, microseconds.
 */
uint64_t pace_wait(struct exchange *);

/*
 * Returns the number of bytes taken from the buckets and not yet sent, or UINT64_MAX if the
 * response has no body.
 */
uint64_t pace_left(const struct exchange *);

/* Returns the rate limit of the response, bytes/s, or 0 if there is none. */
uint64_t pace_rate(const struct exchange *);

/*
 * Returns unsent bytes to the buckets, and releases the buckets of the client.  Call at the end of
 * the exchange.
 */
void pace_end(struct exchange *);

#endif
