/*
 * hold: what a stream holds of its request: the head until its answer is chosen, then what the
 * log needs.  Both count for the stream's session, which has the bounds (session.h).
 */
#ifndef SERVER_HTTP2_HOLD_H
#define SERVER_HTTP2_HOLD_H

#include <stdbool.h>
#include <stddef.h>

struct h2;
struct h2_stream;

/* Counts the memory of the head, which has changed. */
void h2_hold_weigh(struct h2_stream *);

/* Frees the head. */
void h2_hold_free(struct h2_stream *);

/* Returns how many bytes may be kept for the log. */
size_t h2_hold_room(const struct h2_stream *);

/* Counts the bytes that are kept for the log now, in place of those before. */
void h2_hold_keep(struct h2_stream *, size_t);

/* Takes bytes of H2_MORE.  Returns false if there are not so many left. */
bool h2_hold_more(struct h2_stream *, size_t bytes);

/* Gives back what h2_hold_more took.  Returns true if that was something. */
bool h2_hold_less(struct h2_stream *);

/* Counts and returns true if memory is too short for one more stream beside so many others. */
bool h2_hold_is_short(const struct h2 *, unsigned others);

#endif
