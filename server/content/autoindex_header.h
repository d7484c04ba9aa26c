/*
 * autoindex_header: adds the directory's header file, which is shown above its listing, to the
 * page.  Reads the disk, so call it on disk threads only.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_HEADER_H
#define SERVER_CONTENT_AUTOINDEX_HEADER_H

#include "server/content/autoindex_read.h"

/* Limit in bytes of the header file, and of its text in the page; a longer one is not shown. */
#define AUTOINDEX_HEADER_MOST ((size_t)64 << 10)

/*
 * Appends the file pl_header of the place if it is a regular file of UTF-8, else nothing.  Copies
 * the file as HTML if its name ends in ".html" or ".htm"; escapes its text otherwise.
 */
void autoindex_header(const struct place *, struct buf *);

#endif
