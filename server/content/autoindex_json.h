/*
 * autoindex_json: writes a directory listing as JSON (RFC 8259), piece by piece: an array with an
 * object for each name.  Pure.
 *
 *	{"name":"a b","href":"a%20b","type":"file","size":7,"mtime":"2026-11-23T09:02:11Z"}
 *
 * An object also has "digest", in the form of Repr-Digest, if its row has a digest.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_JSON_H
#define SERVER_CONTENT_AUTOINDEX_JSON_H

#include "server/content/autoindex_view.h"
#include "server/util/buf.h"

/*
 * These functions append to the buffer as the functions of autoindex_html.h do.  `first` is true
 * for the first row.
 */
void autoindex_json_begin(struct buf *);
void autoindex_json_row(struct buf *, const struct row *, bool first);
void autoindex_json_end(struct buf *);

#endif
