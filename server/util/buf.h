/*
 * buf: a growing buffer.  Buffers of the usual size come from the worker's free list, so
 * a warm server allocates nothing per request.
 */
#ifndef SERVER_UTIL_BUF_H
#define SERVER_UTIL_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/util/str.h"

#define BUF_SIZE 4096 /* bytes of a block of the free list */

struct buf {
	char *b_data; /* NULL: nothing is held */
	size_t b_len;
	size_t b_cap;
	bool b_failed; /* no memory: everything added since is missing */
};

/* A worker's free blocks; its thread only. */
struct buf_list {
	void *bl_free;
	unsigned bl_count;
};

/* Room for size bytes in all.  False: no memory, nothing changed. */
bool buf_reserve(struct buf *, struct buf_list *, size_t size);

/* The same for an empty one, and no more than that: for what may wait long beside many others. */
bool buf_reserve_exact(struct buf *, size_t size);

/*
 * Gives back what its bytes do not need, if that is worth it and there is memory for them elsewhere:
 * they may have moved.
 */
void buf_fit(struct buf *, struct buf_list *);

/* Gives the memory back; the buffer is empty and may be used again. */
void buf_release(struct buf *, struct buf_list *);
void buf_list_destroy(struct buf_list *);

/* Removes the first n bytes. */
void buf_consume(struct buf *, size_t n);

/* Append; on failure b_failed is set and stays. */
void buf_add(struct buf *, struct buf_list *, const char *data, size_t len);
void buf_str(struct buf *, struct buf_list *, const char *text);
void buf_uint(struct buf *, struct buf_list *, uint64_t number);

#endif
