/*
 * autoindex_stream: makes the listing of a directory that is too large for one page, block by
 * block.  A disk thread reads and renders a block, then the event loop sends it.  A stream uses
 * about 100 KiB, for one block and the buffer of readdir(3); a header adds up to 64 KiB.  The
 * loop's thread only.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_STREAM_H
#define SERVER_CONTENT_AUTOINDEX_STREAM_H

#include <stdatomic.h>

#include "server/content/autoindex_read.h"

/* Bytes of memory that a stream uses, without a header. */
#define AUTOINDEX_STREAM_BYTES ((size_t)100 << 10)

struct autoindex_stream {
	struct place st_place;
	/* the caller sets the fields from st_loop to st_arg */
	struct pw_loop *st_loop;
	bool st_chunked; /* true if blocks are framed as RFC 9112, 7.1 */
	void (*st_done)(struct autoindex_stream *);
	void *st_arg;
	/*
	 * st_data, st_len and st_end describe the current block; valid until autoindex_stream_next
	 */
	int st_error; /* result of the last block: 0 or -errno */
	const char *st_data;
	size_t st_len;
	bool st_end; /* true if there are no more blocks */
	/* private */
	struct pw_task st_task;
	struct buf st_buf;
	DIR *st_dir; /* opened and closed by disk threads */
	atomic_bool st_cancelled;
	char st_texts[]; /* path and title of st_place */
};

/*
 * Creates a stream.  Copies the place's path and title.  Borrows the root, and the other strings,
 * which belong to the configuration.  Returns NULL if memory is short.
 */
struct autoindex_stream *autoindex_stream_create(const struct place *);

/* Starts to read the next block.  Returns 0 if st_done will be called, or -errno. */
int autoindex_stream_next(struct autoindex_stream *);

/*
 * Cancels the block in flight.  The block completes with -ECANCELED if a disk thread has not begun
 * to read it.
 */
void autoindex_stream_cancel(struct autoindex_stream *);

/*
 * Closes the stream and frees it, at once or when a disk thread has closed the directory.  Do not
 * call it while a block is in flight.
 */
void autoindex_stream_close(struct autoindex_stream **);

#endif
