/*
 * autoindex_header: adds the header file of a directory to the page, above the listing.  Reads the
 * disk, so only disk threads may call autoindex_header.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_HEADER_H
#define SERVER_CONTENT_AUTOINDEX_HEADER_H

#include "server/content/autoindex_read.h"

/* Maximum bytes of the header file, and of its text in the page.  A longer header is not shown. */
#define AUTOINDEX_HEADER_MOST ((size_t)64 << 10)

/*
 * Appends the header file of the place (pl_header) if it is a regular file of UTF-8 text; otherwise
 * appends nothing.  Copies the file as HTML if its name ends in ".html" or ".htm"; otherwise
 * escapes its text.
 */
void autoindex_header(const struct place *, struct buf *);

#endif
