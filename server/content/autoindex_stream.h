/*
 * autoindex_stream: the listing of a directory that is too large for one page, in
 * blocks: the pool reads and renders one, the loop sends it, then the next.  Its memory
 * is one block and what readdir(3) has read ahead, about 100 KiB; with a header up to 64 KiB
 * more.  Loop's thread.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_STREAM_H
#define SERVER_CONTENT_AUTOINDEX_STREAM_H

#include <stdatomic.h>

#include "server/content/autoindex_read.h"

#define AUTOINDEX_STREAM_BYTES \
	((size_t)100 << 10) /* of memory, without a header */

struct autoindex_stream {
	struct place st_place;
	/* set by the caller */
	struct pw_loop *st_loop;
	bool st_chunked; /* framed as RFC 9112, 7.1 */
	void (*st_done)(struct autoindex_stream *);
	void *st_arg;
	/* the block that has come; it stays until the next is asked for */
	int st_error; /* 0 or -errno */
	const char *st_data;
	size_t st_len;
	bool st_end; /* it is the last one */
	/* private */
	struct pw_task st_task;
	struct buf st_buf;
	DIR *st_dir; /* opened and closed by the pool */
	atomic_bool st_cancelled;
	char st_texts[]; /* path and title of st_place */
};

/*
 * Copies the place's path and title; the rest that it points to is the configuration's, and its root
 * the caller's.  Returns NULL if memory is short.
 */
struct autoindex_stream *autoindex_stream_create(const struct place *);

/* 0: st_done will be called.  -errno: not. */
int autoindex_stream_next(struct autoindex_stream *);

/* The requested block is not needed any more: -ECANCELED, if its read has not begun. */
void autoindex_stream_cancel(struct autoindex_stream *);

/* Not while a block is being read.  Frees it, now or when the pool has closed. */
void autoindex_stream_close(struct autoindex_stream **);

#endif
