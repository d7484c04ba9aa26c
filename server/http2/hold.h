/*
 * hold: counts the memory that a stream uses for its request.  A stream keeps the head until the
 * response is chosen, then the texts for the log.  Both count towards the limits of the session
 * (session.h).
 */
#ifndef SERVER_HTTP2_HOLD_H
#define SERVER_HTTP2_HOLD_H

#include <stdbool.h>
#include <stddef.h>

struct h2;
struct h2_stream;

/* Counts the head again.  Call after a change of the head. */
void h2_hold_weigh(struct h2_stream *);

/* Frees the head, and subtracts it from the count. */
void h2_hold_free(struct h2_stream *);

/* Returns the number of bytes that the stream may keep for the log. */
size_t h2_hold_room(const struct h2_stream *);

/* Sets the number of bytes kept for the log. */
void h2_hold_keep(struct h2_stream *, size_t);

/* Reserves bytes of H2_MORE.  Returns false if fewer are free. */
bool h2_hold_more(struct h2_stream *, size_t bytes);

/* Releases the bytes that h2_hold_more reserved.  Returns false if none were reserved. */
bool h2_hold_less(struct h2_stream *);

/*
 * Returns true if memory is too short for another stream, and counts the refusal.  `others` is the
 * number of other open streams.
 */
bool h2_hold_is_short(const struct h2 *, unsigned others);

#endif
