/*
 * ring: one producer, one consumer, no lock.  The indices only ever grow; an index
 * modulo the size is an offset into the first mapping.  A record that crosses the
 * end of the first mapping continues in the second mapping, so it is contiguous.
 */
#include <sys/mman.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "lib/os/ring.h"
#include "lib/util/cacheline.h"

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

bool
ring_release(struct ring *rg)
{
	if (ring_used(rg, 0) > 0)
		return false;
#ifdef MADV_REMOVE
	(void)madvise(rg->rg_mem, rg->rg_size, MADV_REMOVE);
#endif
	return true;
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
