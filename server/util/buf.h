/*
 * buf: a growing buffer.  Blocks of the two usual sizes come from the worker's free lists, so a
 * warm server allocates nothing per request.  A path or a response head fits into a small block;
 * received bytes need a large one.
 */
#ifndef SERVER_UTIL_BUF_H
#define SERVER_UTIL_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/util/str.h"

#define BUF_SMALL 512  /* bytes of a small block */
#define BUF_SIZE  4096 /* bytes of a large block */

struct buf {
	char *b_data; /* NULL if the buffer has no memory */
	size_t b_len;
	size_t b_cap;
	/* true if memory was short and appended data is missing */
	bool b_failed;
};

/* A worker's free blocks, for its thread only. */
struct buf_list {
	struct blocks {
		void *bs_free;
		unsigned bs_count;
	} bl_small, bl_large;
};

/* Does the work of buf_reserve if `size` exceeds the capacity. */
bool buf_grow(struct buf *, struct buf_list *, size_t size);

/*
 * Ensures a capacity of at least `size` bytes.  Returns false and changes nothing if memory is
 * short.
 */
static inline bool
buf_reserve(struct buf *b, struct buf_list *bl, size_t size)
{
	return size <= b->b_cap || buf_grow(b, bl, size);
}

/*
 * Allocates exactly `size` bytes for an empty buffer.  Returns false if memory is short.  Use this
 * function for buffers that exist in large numbers and for a long time.
 */
bool buf_reserve_exact(struct buf *, size_t size);

/*
 * Moves the bytes into memory of exactly their size, if that saves at least half of the capacity
 * and memory is available.  Wipes the old memory, which may hold a password.
 */
void buf_fit(struct buf *, struct buf_list *);

/*
 * Moves the bytes from a large block into a small one, if they fit and memory is available.  Wipes
 * the old memory, which may hold a password.
 */
void buf_shrink(struct buf *, struct buf_list *);

/* Releases the memory.  The buffer is empty afterwards and may be used again. */
void buf_release(struct buf *, struct buf_list *);

/* Frees at most `most` free blocks of each size. */
void buf_list_free(struct buf_list *, unsigned most);
void buf_list_destroy(struct buf_list *);

/* Removes the first n bytes. */
void buf_consume(struct buf *, size_t n);

/*
 * Append data: bytes, a text, or a number in decimal.  If memory is short, set b_failed; later calls
 * then append nothing.
 */
void buf_add(struct buf *, struct buf_list *, const char *data, size_t len);
void buf_str(struct buf *, struct buf_list *, const char *text);
void buf_uint(struct buf *, struct buf_list *, uint64_t number);

#endif
