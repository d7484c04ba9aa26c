/*
 * static_file: from a request to the file, directory or error that answers it.
 */
#ifndef SERVER_CONTENT_STATIC_FILE_H
#define SERVER_CONTENT_STATIC_FILE_H

#include <stdbool.h>

#include "lib/pagewise.h"

#include "server/content/autoindex_cache.h"
#include "server/http/coding.h"
#include "server/util/buf.h"

struct exchange;
struct settings;
struct site;
struct autoindex_stream;

/* Where the search for the exchange's request stands. */
struct lookup {
	struct pw_open lk_open;
	struct pw_root *lk_root;
	unsigned lk_rooms;  /* times that something was closed for it */
	struct str lk_host; /* as static_locate was given it */
	const struct site *lk_site;
	const struct settings *lk_set;
	struct buf lk_path; /* below the root, NUL-terminated */
	size_t lk_base;	    /* length of it without an index file's name */
	unsigned lk_step;   /* next step of set_try */
	bool lk_redirects;  /* only a directory will do: with a '/' more */
	bool lk_slash;	    /* what is looked for ends in '/': a directory */
	unsigned lk_index;  /* next index name to try */
	bool lk_dir;	    /* the indexes are through: the directory itself */
	enum coding
	    lk_coding;	     /* of the sibling that is looked for, or is sent */
	unsigned lk_tried;   /* codings whose sibling will not do: bits */
	uint64_t lk_weights; /* coding_weights, if there may be siblings */
	size_t lk_stem;	     /* bytes of lk_path, before a sibling's suffix */
	struct pw_file *lk_original; /* meanwhile; NULL: there is none ... */
	int lk_error;		     /* ... for this reason */
	struct listing lk_listing;
	struct autoindex_stream *lk_stream; /* in its place, if it is large */
};

/* Finds the site of a host, and the settings of the path's location, or of the site if no path is known. */
void static_locate(struct exchange *, struct str host);

/* Begins the search.  Returns as exchange_respond. */
bool static_begin(struct exchange *);

void static_finish(struct exchange *);

#endif
