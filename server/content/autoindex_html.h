/*
 * autoindex_html: writes a directory listing as HTML, piece by piece.  Pure.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_HTML_H
#define SERVER_CONTENT_AUTOINDEX_HTML_H

#include "server/content/autoindex_view.h"
#include "server/util/buf.h"

/*
 * All functions append to the buffer, and set b_failed if memory is short.  The caller must have
 * reserved more than BUF_SIZE bytes: such a buffer does not come from a worker's free list, so any
 * thread may free it with free(3).
 */

/*
 * Appends the start of the page, with the heading.  `title` is the path of the directory in the
 * client's view.
 */
void autoindex_html_begin(struct buf *, const char *title);

/*
 * Appends the head of the table.  `order` is the view that sorts the rows, or NULL if the rows are
 * not sorted.
 */
void autoindex_html_table(
    struct buf *, const char *title, const struct view *order);
void autoindex_html_row(struct buf *, const struct row *);
void autoindex_html_end(struct buf *);

void autoindex_html_text(struct buf *, const char *, size_t len);

#endif
