/*
 * ring: a byte ring between one producer and one consumer thread.  Its memory is
 * mapped twice in a row (memfd_create(2) and two MAP_SHARED mappings), so a record
 * that crosses the end is still contiguous: the producer can format it in place,
 * and the consumer can write it by one write(2).
 */
#ifndef LIB_OS_RING_H
#define LIB_OS_RING_H

#include <stdbool.h>
#include <stddef.h>

struct ring;

/* Creates a ring of `size` bytes, rounded up to a power of two of pages.  Returns 0 or -errno. */
int ring_create(size_t size, struct ring **);
void ring_destroy(struct ring **);
size_t ring_size(const struct ring *);

/*
 * For the producer.  ring_reserve returns memory for `len` contiguous bytes, or NULL if the ring is too
 * full.  ring_commit makes the first `len` of the reserved bytes visible to the consumer.
 */
void *ring_reserve(struct ring *, size_t len);
void ring_commit(struct ring *, size_t len);

/*
 * For the producer.  Returns true if more than `mark` bytes wait for the consumer.  Reads the
 * consumer's cache line only if more than `mark` bytes wait according to the consumer index that
 * the producer last read.
 */
bool ring_above(struct ring *, size_t mark);

/*
 * For the consumer.  ring_peek returns all waiting bytes, contiguous, and sets *len to their number,
 * which may be 0.  ring_consume then frees the first `len` bytes; it may be called several times for
 * parts of them.
 */
const void *ring_peek(struct ring *, size_t *len);
void ring_consume(struct ring *, size_t len);

#endif
