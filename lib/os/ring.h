/*
 * ring: a byte ring between one producer and one consumer thread.  Its memory is
 * mapped twice in a row (memfd_create(2) and two MAP_SHARED mappings), so a record
 * that crosses the end is still contiguous: the producer can format it in place,
 * and the consumer can write it by one write(2).
 */
#ifndef LIB_OS_RING_H
#define LIB_OS_RING_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/util/cacheline.h"

/* Only this module uses the fields.  The functions that are called for each record are inline. */
struct ring {
	/* Written by the producer. */
	alignas(CACHE_LINE) atomic_size_t rg_tail;
	size_t rg_head_seen; /* last value of rg_head that the producer read */
	size_t rg_reserved;

	/* Written by the consumer. */
	alignas(CACHE_LINE) atomic_size_t rg_head;

	/* Constant. */
	alignas(CACHE_LINE) char *rg_mem; /* two mappings of rg_size bytes */
	size_t rg_size;			  /* a power of two */
};

/* Creates a ring of `size` bytes, rounded up to a power of two of pages.  Returns 0 or -errno. */
int ring_create(size_t size, struct ring **);
void ring_destroy(struct ring **);
size_t ring_size(const struct ring *);

/*
 * For the producer.  ring_reserve returns memory for `len` contiguous bytes, or NULL if the ring is too
 * full.  ring_commit makes the first `len` of the reserved bytes visible to the consumer.
 */
static inline void *ring_reserve(struct ring *, size_t len);
static inline void ring_commit(struct ring *, size_t len);

/*
 * For the producer.  Returns true if more than `mark` bytes wait for the consumer.  Reads the
 * consumer's cache line only if more than `mark` bytes wait according to the consumer index that
 * the producer last read.
 */
static inline bool ring_above(struct ring *, size_t mark);

/*
 * For the producer.  Returns the memory of an empty ring to the system, where the system can; later records
 * need memory again.  Returns false if the ring is not empty.
 */
bool ring_release(struct ring *);

/*
 * For the consumer.  ring_peek returns all waiting bytes, contiguous, and sets *len to their number,
 * which may be 0.  ring_consume then frees the first `len` bytes; it may be called several times for
 * parts of them.
 */
const void *ring_peek(struct ring *, size_t *len);
static inline void ring_consume(struct ring *, size_t len);

/* Returns the bytes in the ring, or an upper bound of them that is not above `mark`. */
static inline size_t
ring_used(struct ring *rg, size_t mark)
{
	size_t tail;

	tail = atomic_load_explicit(&rg->rg_tail, memory_order_relaxed);
	if (tail - rg->rg_head_seen > mark)
		rg->rg_head_seen =
		    atomic_load_explicit(&rg->rg_head, memory_order_acquire);
	return tail - rg->rg_head_seen;
}

static inline void *
ring_reserve(struct ring *rg, size_t len)
{
	size_t tail;

	if (len > rg->rg_size)
		return NULL;
	if (ring_used(rg, rg->rg_size - len) > rg->rg_size - len)
		return NULL;
	rg->rg_reserved = len;
	tail = atomic_load_explicit(&rg->rg_tail, memory_order_relaxed);
	return rg->rg_mem + (tail & (rg->rg_size - 1));
}

static inline void
ring_commit(struct ring *rg, size_t len)
{
	size_t tail;

	assert(len <= rg->rg_reserved);
	rg->rg_reserved = 0;
	tail = atomic_load_explicit(&rg->rg_tail, memory_order_relaxed);
	atomic_store_explicit(&rg->rg_tail, tail + len, memory_order_release);
}

static inline bool
ring_above(struct ring *rg, size_t mark)
{
	return ring_used(rg, mark) > mark;
}

static inline void
ring_consume(struct ring *rg, size_t len)
{
	size_t head;

	head = atomic_load_explicit(&rg->rg_head, memory_order_relaxed);
	assert(len <= rg->rg_size);
	atomic_store_explicit(&rg->rg_head, head + len, memory_order_release);
}

#endif
