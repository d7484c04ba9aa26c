/*
 * pace: limits how fast a response is sent (rate, client_rate, burst), and how often a client may send
 * requests (request_rate).  The limits apply to responses with a body; a response of a head alone
 * costs a request and no bytes.
 *
 * A chunk of bytes is taken from the buckets of the connection and of the client, and the response
 * continues when both have earned it: so it wakes once for each chunk, in the order of the takes.
 * The unsent bytes of a chunk go back when the exchange ends.
 */
#ifndef SERVER_CONTENT_PACE_H
#define SERVER_CONTENT_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct exchange;
struct settings;

/*
 * Returns true if the request rate admits the request.  Otherwise sets *seconds to the delay after
 * which the client may retry.
 */
bool pace_admit(struct exchange *, unsigned *seconds);

/* Sets up the rate limits of the response; they apply if it has a body. */
void pace_begin(struct exchange *);

/* Returns 0 if the response may continue, else the earliest time to continue, in microseconds. */
uint64_t pace_wait(struct exchange *);

/* Returns the bytes that may be sent now. */
uint64_t pace_left(const struct exchange *);

/* Returns the limit of the response's rate in bytes/s, or 0 if there is none. */
uint64_t pace_rate(const struct exchange *);

/* Call when the exchange ends.  Returns the unsent bytes to the buckets. */
void pace_end(struct exchange *);

#endif
