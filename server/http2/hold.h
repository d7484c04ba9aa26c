/*
 * hold: counts the memory that a stream holds for its request: the head until the response is
 * chosen, then the texts for the log.  Both count towards the limits of the stream's session
 * (session.h).
 */
#ifndef SERVER_HTTP2_HOLD_H
#define SERVER_HTTP2_HOLD_H

#include <stdbool.h>
#include <stddef.h>

struct h2;
struct h2_stream;

/* Counts the memory of the head again after a change. */
void h2_hold_weigh(struct h2_stream *);

/* Frees the head and no longer counts it. */
void h2_hold_free(struct h2_stream *);

/* Returns how many bytes the stream may keep for the log. */
size_t h2_hold_room(const struct h2_stream *);

/* Counts the bytes kept for the log, in place of the previous count. */
void h2_hold_keep(struct h2_stream *, size_t);

/* Reserves a part of H2_MORE.  Returns false if less is left. */
bool h2_hold_more(struct h2_stream *, size_t bytes);

/* Releases the bytes that h2_hold_more reserved.  Returns true if there were any. */
bool h2_hold_less(struct h2_stream *);

/*
 * Returns true, and counts the refusal, if memory is too short for a stream beside `others` other
 * streams.
 */
bool h2_hold_is_short(const struct h2 *, unsigned others);

#endif
