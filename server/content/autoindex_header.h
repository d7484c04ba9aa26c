/*
 * autoindex_header: the file that a directory's owner has shown above its listing.  Waits for
 * the disk, so on pool threads only.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_HEADER_H
#define SERVER_CONTENT_AUTOINDEX_HEADER_H

#include "server/content/autoindex_read.h"

/* Bytes of the file, and of the page: a longer one is not shown. */
#define AUTOINDEX_HEADER_MOST ((size_t)64 << 10)

/*
 * Appends pl_header of the place, or nothing if it is no regular file of UTF-8.  What ends in
 * ".html" or ".htm" is taken as it is, anything else is text.
 */
void autoindex_header(const struct place *, struct buf *);

#endif
