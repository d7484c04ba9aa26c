/*
 * ring: one producer, one consumer, no lock.  The indices only ever grow; an index
 * modulo the size is an offset into the first mapping.  A record that crosses the
 * end of the first mapping continues in the second mapping, so it is contiguous.
 */
#include <sys/mman.h>

#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "lib/os/ring.h"
#include "lib/util/cacheline.h"

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

static int
ring_map(struct ring *rg, int fd)
{
	char *mem;
	int i;

	mem = mmap(NULL, 2 * rg->rg_size, PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return -errno;
	rg->rg_mem = mem;
	for (i = 0; i < 2; i++, mem += rg->rg_size)
		if (mmap(mem, rg->rg_size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			return -errno;
	return 0;
}

static size_t
ring_round(size_t size)
{
	size_t rounded = (size_t)sysconf(_SC_PAGESIZE);

	while (rounded < size)
		rounded *= 2;
	return rounded;
}

int
ring_create(size_t size, struct ring **out)
{
	struct ring *rg;
	int fd, error;

	if (size > SIZE_MAX / 8)
		return -ENOMEM;
	rg = aligned_alloc(CACHE_LINE, sizeof(*rg));
	if (rg == NULL)
		return -ENOMEM;
	memset(rg, 0, sizeof(*rg));
	atomic_init(&rg->rg_tail, 0);
	atomic_init(&rg->rg_head, 0);
	rg->rg_size = ring_round(size);

	fd = os_memfd("ring", rg->rg_size);
	if (fd < 0) {
		error = fd;
		goto fail;
	}
	error = ring_map(rg, fd);
	close(fd);
	if (error != 0)
		goto fail;
	*out = rg;
	return 0;
fail:
	ring_destroy(&rg);
	return error;
}

void
ring_destroy(struct ring **rgp)
{
	struct ring *rg = *rgp;

	*rgp = NULL;
	if (rg == NULL)
		return;
	if (rg->rg_mem != NULL)
		munmap(rg->rg_mem, 2 * rg->rg_size);
	free(rg);
}

size_t
ring_size(const struct ring *rg)
{
	return rg->rg_size;
}

/* Returns the bytes in the ring, or an upper bound of them that is not above `mark`. */
static size_t
ring_used(struct ring *rg, size_t mark)
{
	size_t tail;

	tail = atomic_load_explicit(&rg->rg_tail, memory_order_relaxed);
	if (tail - rg->rg_head_seen > mark)
		rg->rg_head_seen =
		    atomic_load_explicit(&rg->rg_head, memory_order_acquire);
	return tail - rg->rg_head_seen;
}

void *
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

void
ring_commit(struct ring *rg, size_t len)
{
	size_t tail;

	assert(len <= rg->rg_reserved);
	rg->rg_reserved = 0;
	tail = atomic_load_explicit(&rg->rg_tail, memory_order_relaxed);
	atomic_store_explicit(&rg->rg_tail, tail + len, memory_order_release);
}

bool
ring_above(struct ring *rg, size_t mark)
{
	return ring_used(rg, mark) > mark;
}

/*
 * Reads the producer's index each time, without a cached copy, since one call returns all records that
 * wait.
 */
const void *
ring_peek(struct ring *rg, size_t *len)
{
	size_t head;

	head = atomic_load_explicit(&rg->rg_head, memory_order_relaxed);
	*len = atomic_load_explicit(&rg->rg_tail, memory_order_acquire) - head;
	return rg->rg_mem + (head & (rg->rg_size - 1));
}

void
ring_consume(struct ring *rg, size_t len)
{
	size_t head;

	head = atomic_load_explicit(&rg->rg_head, memory_order_relaxed);
	assert(len <= rg->rg_size);
	atomic_store_explicit(&rg->rg_head, head + len, memory_order_release);
}
