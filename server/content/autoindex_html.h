/*
 * autoindex_html: a directory listing as HTML, piece by piece.  Pure: names in, text out.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_HTML_H
#define SERVER_CONTENT_AUTOINDEX_HTML_H

#include <sys/types.h>
#include <time.h>

#include "server/util/buf.h"

struct row {
	char *row_name;
	bool row_dir;
	bool row_known; /* size and time are */
	off_t row_size;
	time_t row_mtime;
};

/*
 * All append; if there is no memory b_failed is set.  The buffer must have more than
 * BUF_SIZE reserved already: so it has nothing to do with a worker's free list, and
 * any thread may free(3) its memory.
 */
void autoindex_html_begin(struct buf *, const char *title, bool sorted);
void autoindex_html_row(struct buf *, const struct row *);
void autoindex_html_end(struct buf *);

#endif
