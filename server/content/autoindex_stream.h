/*
 * autoindex_stream: lists a directory that is too large for one page, in blocks.  A disk thread
 * reads and renders a block, then the event loop sends the block.  A stream uses about 100 KiB, for
 * one block and the buffer of readdir(3).  A header needs up to 64 KiB more.  Runs on the loop's
 * thread.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_STREAM_H
#define SERVER_CONTENT_AUTOINDEX_STREAM_H

#include <stdatomic.h>

#include "server/content/autoindex_read.h"

/* Bytes of memory that a stream without a header uses. */
#define AUTOINDEX_STREAM_BYTES ((size_t)100 << 10)

struct autoindex_stream {
	struct place st_place;
	/* the caller must set the fields from st_loop to st_arg */
	struct pw_loop *st_loop;
	unsigned
	    st_client;	 /* number of the client for the library (wt_client) */
	bool st_chunked; /* true to frame blocks as chunks (RFC 9112, 7.1) */
	void (*st_done)(struct autoindex_stream *);
	void *st_arg;
	/*
	 * st_data, st_len and st_end describe the current block.  These three fields are valid
	 * until the next call of autoindex_stream_next.
	 */
	int st_error; /* result of the last block: 0 or -errno */
	const char *st_data;
	size_t st_len;
	bool st_end; /* true if this is the last block */
	/* The fields below are private. */
	struct pw_task st_task;
	struct buf st_buf;
	DIR *st_dir; /* opened by a disk thread; NULL if closed */
	atomic_bool st_cancelled;
	char st_texts[]; /* path and title of st_place */
};

/*
 * Creates a stream.  Copies the path and the title of the place.  Borrows the root and the other
 * strings, which belong to the configuration.  Returns NULL if memory is short.
 */
struct autoindex_stream *autoindex_stream_create(const struct place *);

/* Starts to read the next block.  Returns 0 if the loop will call st_done, or -errno. */
int autoindex_stream_next(struct autoindex_stream *);

/*
 * Cancels the block in flight.  If no disk thread has started to read the block, the block
 * completes with -ECANCELED.
 */
void autoindex_stream_cancel(struct autoindex_stream *);

/* Lets other clients go before the block in flight. */
void autoindex_stream_defer(struct autoindex_stream *);

/*
 * Closes and frees the stream.  If the directory is open, a disk thread closes it first, or the
 * loop's thread if no disk thread can be started.  Call only when no block is in flight.
 */
void autoindex_stream_close(struct autoindex_stream **);

#endif
