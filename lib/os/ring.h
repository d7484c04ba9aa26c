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

/* size is rounded up to a power of two of pages.  0 or -errno. */
int ring_create(size_t size, struct ring **);
void ring_destroy(struct ring **);
size_t ring_size(const struct ring *);

/*
 * Producer: room for len contiguous bytes, or NULL if that much is not free
 * now.  Nothing is visible to the consumer until ring_commit, which publishes
 * the first len bytes (at most what was reserved).
 */
void *ring_reserve(struct ring *, size_t len);
void ring_commit(struct ring *, size_t len);

/*
 * Producer: do more than mark bytes wait for the consumer?  Does not touch the
 * consumer's cache line unless it may be so.
 */
bool ring_above(struct ring *, size_t mark);

/*
 * Consumer: everything that is there, contiguous (*len is 0 if nothing is);
 * then give back its first len bytes, in one piece or in several.
 */
const void *ring_peek(struct ring *, size_t *len);
void ring_consume(struct ring *, size_t len);

#endif
