/*
 * autoindex_html: a directory listing as HTML, piece by piece.  Pure: names in, text out.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_HTML_H
#define SERVER_CONTENT_AUTOINDEX_HTML_H

#include "server/content/autoindex_view.h"
#include "server/util/buf.h"

/*
 * All append; if there is no memory b_failed is set.  The buffer must have more than
 * BUF_SIZE reserved already: so it has nothing to do with a worker's free list, and
 * any thread may free(3) its memory.
 */

/* Up to the heading; title: the directory's path, as the client knows it. */
void autoindex_html_begin(struct buf *, const char *title);

/* The table's head; order: how the rows are sorted, or NULL if they are not. */
void autoindex_html_table(
    struct buf *, const char *title, const struct view *order);
void autoindex_html_row(struct buf *, const struct row *);
void autoindex_html_end(struct buf *);

/* Lines of UTF-8 as text. */
void autoindex_html_text(struct buf *, const char *, size_t len);

#endif
