/*
 * buf: a growing buffer.  Buffers of the two usual sizes come from the worker's free lists,
 * so a warm server allocates nothing per request: a path or the head of an answer is small,
 * what is received needs room.
 */
#ifndef SERVER_UTIL_BUF_H
#define SERVER_UTIL_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/util/str.h"

#define BUF_SMALL 512  /* bytes of a block of one free list */
#define BUF_SIZE  4096 /* of the other */

struct buf {
	char *b_data; /* NULL: nothing is held */
	size_t b_len;
	size_t b_cap;
	bool b_failed; /* no memory: everything added since is missing */
};

/* A worker's free blocks; its thread only. */
struct buf_list {
	struct blocks {
		void *bs_free;
		unsigned bs_count;
	} bl_small, bl_large;
};

/* For buf_reserve: size is more than there is. */
bool buf_grow(struct buf *, struct buf_list *, size_t size);

/* Room for size bytes in all.  False: no memory, nothing changed. */
static inline bool
buf_reserve(struct buf *b, struct buf_list *bl, size_t size)
{
	return size <= b->b_cap || buf_grow(b, bl, size);
}

/* The same for an empty one, and no more than that: for what may wait long beside many others. */
bool buf_reserve_exact(struct buf *, size_t size);

/*
 * Gives back what its bytes do not need, if that is worth it and there is memory for them elsewhere:
 * they may have moved.  What they leave is wiped, since it may be a password.
 */
void buf_fit(struct buf *, struct buf_list *);

/*
 * From a large block into a small one, if its bytes fit in there: they have moved then.  What
 * they leave is wiped, since it may be a password.
 */
void buf_shrink(struct buf *, struct buf_list *);

/* Gives the memory back; the buffer is empty and may be used again. */
void buf_release(struct buf *, struct buf_list *);

/* Frees at most `most` blocks of each size. */
void buf_list_free(struct buf_list *, unsigned most);
void buf_list_destroy(struct buf_list *);

/* Removes the first n bytes. */
void buf_consume(struct buf *, size_t n);

/* Append; on failure b_failed is set and stays. */
void buf_add(struct buf *, struct buf_list *, const char *data, size_t len);
void buf_str(struct buf *, struct buf_list *, const char *text);
void buf_uint(struct buf *, struct buf_list *, uint64_t number);

#endif
