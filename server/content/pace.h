/*
 * pace: how fast an answer may be sent (rate, client_rate, burst), and how often a client may ask
 * (request_rate).  Of answers with a body; heads of others cost a request and no bytes.
 *
 * A chunk of bytes is taken from the buckets of the connection and of the client, and the answer goes
 * on when both have earned it: so it is woken once for each chunk, in the order of asking.  What is
 * not sent of a chunk when the exchange ends goes back.
 */
#ifndef SERVER_CONTENT_PACE_H
#define SERVER_CONTENT_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct exchange;
struct settings;

/* True: the request may be answered; false: *seconds says when to come again. */
bool pace_admit(struct exchange *, unsigned *seconds);

/* Its answer will be paced, if it has a body. */
void pace_begin(struct exchange *);

/* The answer may go on: 0; or not before then, microseconds. */
uint64_t pace_wait(struct exchange *);

/* Bytes that it may send now. */
uint64_t pace_left(const struct exchange *);

/* Bytes/s that it will be sent at, no more. */
uint64_t pace_rate(const struct exchange *);

/* The exchange ends. */
void pace_end(struct exchange *);

#endif
