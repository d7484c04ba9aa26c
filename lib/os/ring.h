/*
 * ring: a byte ring between one producer and one consumer thread, its memory
 * mapped twice in a row (third source text: memfd_create and two MAP_SHARED
 * mappings), so that a record that crosses the end is still one contiguous
 * piece: one memcpy, or formatting in place, and one write(2).
 */
#ifndef LIB_OS_RING_H
#define LIB_OS_RING_H

#include <stdbool.h>
#include <stddef.h>

struct ring;

/* Rounds size up to a power of two of pages.  Returns 0 or -errno. */
int ring_create(size_t size, struct ring **);
void ring_destroy(struct ring **);
size_t ring_size(const struct ring *);

/*
 * Producer.  ring_reserve returns room for len contiguous bytes, or NULL if the ring is too full.
 * ring_commit makes the first len bytes of it (at most what was reserved) visible to the consumer.
 */
void *ring_reserve(struct ring *, size_t len);
void ring_commit(struct ring *, size_t len);

/*
 * Producer.  Returns true if more than mark bytes wait for the consumer.  Reads the consumer's cache line
 * only if that is possible.
 */
bool ring_above(struct ring *, size_t mark);

/*
 * Consumer.  ring_peek returns all waiting bytes, contiguous, and sets *len, which may be 0.  ring_consume
 * then frees the first len bytes, in one piece or in several.
 */
const void *ring_peek(struct ring *, size_t *len);
void ring_consume(struct ring *, size_t len);

#endif
