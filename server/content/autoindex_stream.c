/*
 * autoindex_stream: see autoindex_stream.h.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/content/autoindex_stream.h"

#define FRAME	   10 /* bytes reserved before the text for a chunk's size */
#define CHUNK_END  "\r\n"
#define CHUNK_LAST "\r\n0\r\n\r\n"

static struct autoindex_stream *
autoindex_stream_of_task(struct pw_task *tk)
{
	return (
	    struct autoindex_stream *)(void *)((char *)tk -
					       offsetof(struct autoindex_stream,
						   st_task));
}

static void
autoindex_stream_close_dir(struct autoindex_stream *st)
{
	if (st->st_dir != NULL)
		closedir(st->st_dir);
	st->st_dir = NULL;
}

static int
autoindex_stream_read_block(struct autoindex_stream *st)
{
	const struct place *pl = &st->st_place;
	struct buf *b = &st->st_buf;
	bool first = st->st_dir == NULL;
	int error;

	if (first) {
		error = autoindex_read_open(pl, &st->st_dir);
		if (error != 0)
			return error;
		autoindex_read_begin(pl, b, false);
	}
	error = autoindex_read_block(st->st_dir, pl, b, first, &st->st_end);
	if (error != 0 || !st->st_end)
		return error;
	autoindex_read_end(pl, b);
	autoindex_stream_close_dir(st);
	return 0;
}

/*
 * Frames the block as a chunk if st_chunked is true.  The size of the chunk is known only now, so
 * bytes were reserved for it before the text.
 */
static void
autoindex_stream_frame(struct autoindex_stream *st)
{
	struct buf_list none = {0};
	struct buf *b = &st->st_buf;
	char size[FRAME + 1];
	size_t start = FRAME;
	int n;

	if (st->st_chunked) {
		n = snprintf(
		    size, sizeof(size), "%zx" CHUNK_END, b->b_len - FRAME);
		start -= (size_t)n;
		memcpy(b->b_data + start, size, (size_t)n);
		buf_str(b, &none, st->st_end ? CHUNK_LAST : CHUNK_END);
	}
	st->st_data = b->b_data + start;
	st->st_len = b->b_len - start;
}

static int
autoindex_stream_work(struct pw_task *tk)
{
	struct autoindex_stream *st = autoindex_stream_of_task(tk);
	struct buf *b = &st->st_buf;
	int error;

	if (atomic_load(&st->st_cancelled)) {
		autoindex_stream_close_dir(st);
		return -ECANCELED;
	}
	if (!autoindex_read_room(b))
		return -ENOMEM;
	b->b_len = FRAME;
	error = autoindex_stream_read_block(st);
	if (error == 0)
		autoindex_stream_frame(st);
	return b->b_failed ? -ENOMEM : error;
}

static void
autoindex_stream_came(struct pw_waiter *w)
{
	struct autoindex_stream *st =
	    autoindex_stream_of_task((struct pw_task *)w);

	st->st_error = w->wt_error;
	st->st_task.tk_begun = true;
	st->st_done(st);
}

struct autoindex_stream *
autoindex_stream_create(const struct place *pl)
{
	size_t path = strlen(pl->pl_path) + 1;
	size_t title = strlen(pl->pl_title) + 1;
	struct autoindex_stream *st = calloc(1, sizeof(*st) + path + title);

	if (st == NULL)
		return NULL;
	memcpy(st->st_texts, pl->pl_path, path);
	memcpy(st->st_texts + path, pl->pl_title, title);
	st->st_place = *pl;
	st->st_place.pl_path = st->st_texts;
	st->st_place.pl_title = st->st_texts + path;
	return st;
}

int
autoindex_stream_next(struct autoindex_stream *st)
{
	st->st_task.tk_work = autoindex_stream_work;
	st->st_task.tk_waiter.wt_done = autoindex_stream_came;
	st->st_task.tk_waiter.wt_client = st->st_client;
	return pw_task_run(st->st_loop, st->st_place.pl_dev, &st->st_task);
}

void
autoindex_stream_cancel(struct autoindex_stream *st)
{
	atomic_store(&st->st_cancelled, true);
}

void
autoindex_stream_defer(struct autoindex_stream *st)
{
	pw_task_defer(&st->st_task);
}

static int
autoindex_stream_close_work(struct pw_task *tk)
{
	autoindex_stream_close_dir(autoindex_stream_of_task(tk));
	return 0;
}

static void
autoindex_stream_closed(struct pw_waiter *w)
{
	free(autoindex_stream_of_task((struct pw_task *)w));
}

/*
 * Closes the directory on the loop's thread if no disk thread can be started, although the close
 * may block.
 */
void
autoindex_stream_close(struct autoindex_stream **stp)
{
	struct autoindex_stream *st = *stp;

	*stp = NULL;
	if (st == NULL)
		return;
	free(st->st_buf.b_data);
	st->st_task.tk_work = autoindex_stream_close_work;
	st->st_task.tk_waiter.wt_done = autoindex_stream_closed;
	if (st->st_dir != NULL &&
	    pw_task_run(st->st_loop, st->st_place.pl_dev, &st->st_task) == 0)
		return;
	autoindex_stream_close_dir(st);
	free(st);
}
