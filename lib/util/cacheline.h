/*
 * cacheline: memory in whole cache lines, so that two threads' data never share a line.
 */
#ifndef LIB_UTIL_CACHELINE_H
#define LIB_UTIL_CACHELINE_H

#include <stdlib.h>
#include <string.h>

#define CACHE_LINE 64

/* Allocates zeroed memory of whole cache lines, for free(3).  Returns NULL if memory is short. */
static inline void *
cacheline_calloc(size_t size)
{
	void *mem;

	size = (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	mem = aligned_alloc(CACHE_LINE, size);
	return mem == NULL ? NULL : memset(mem, 0, size);
}

#endif
