/*
 * autoindex_header: the file that a directory's owner has shown above its listing.  Reads the disk,
 * so call it on disk threads only.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_HEADER_H
#define SERVER_CONTENT_AUTOINDEX_HEADER_H

#include "server/content/autoindex_read.h"

/* Limit in bytes of the file, and of its text in the page; a longer one is not shown. */
#define AUTOINDEX_HEADER_MOST ((size_t)64 << 10)

/*
 * Appends the file pl_header of the place, or nothing unless it is a regular file of UTF-8.  Copies
 * a file whose name ends in ".html" or ".htm" as HTML, and escapes any other as text.
 */
void autoindex_header(const struct place *, struct buf *);

#endif
