/*
 * pace: limits how fast a response is sent (rate, client_rate, burst), and how often a client may
 * send requests (request_rate).  The limits apply to responses with a body; a response without a
 * body counts as a request, but its bytes do not count.
 *
 * An exchange takes the bytes of a chunk from the buckets of its connection and of its client, and
 * its response continues when both buckets have earned these bytes.  So the exchange wakes up once
 * for each chunk, and exchanges of one client wake up in the order in which they took their bytes.
 * The unsent bytes of a chunk return to the buckets when the exchange ends.
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

/*
 * Takes the bytes of the next chunk from the buckets if none are left.  Returns 0 if the response
 * may continue, else the earliest time to continue, in microseconds.
 */
uint64_t pace_wait(struct exchange *);

/* Returns the bytes that may be sent now. */
uint64_t pace_left(const struct exchange *);

/* Returns the limit of the response's rate in bytes/s, or 0 if there is none. */
uint64_t pace_rate(const struct exchange *);

/*
 * Returns the unsent bytes to the buckets, and releases the client's buckets.  Call when the
 * exchange ends.
 */
void pace_end(struct exchange *);

#endif
