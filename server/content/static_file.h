/*
 * static_file: finds the file, directory or error for a request.
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

/* State of the lookup for the request of an exchange. */
struct lookup {
	struct pw_open lk_open;
	struct pw_root *lk_root;
	unsigned lk_rooms;  /* number of descriptors that this lookup freed */
	struct str lk_host; /* host passed to static_locate */
	const struct site *lk_site;
	const struct settings *lk_set;
	struct buf lk_path; /* path below the root, NUL-terminated */
	size_t lk_base;	    /* length of lk_path without an index name */
	unsigned lk_step;   /* index of the next step of set_try */
	/* true if this step of try finds only directories, and redirects to them */
	bool lk_redirects;
	bool lk_slash;	       /* true if the path to look up ends in '/' */
	unsigned lk_index;     /* index of the next index name to try */
	bool lk_dir;	       /* true if all index names were tried */
	enum coding lk_coding; /* coding of the sibling looked up or sent */
	unsigned lk_tried;     /* bits (1 << enum coding) of tried codings */
	uint64_t lk_weights;   /* coding_weights; 0 if siblings are not sent */
	size_t lk_stem;	       /* length of lk_path without a suffix */
	struct pw_file *lk_original; /* open original, or NULL */
	int lk_error;		     /* 0 or -errno of the original's open */
	struct listing lk_listing;
	/* stream of a large listing, or NULL */
	struct autoindex_stream *lk_stream;
};

/*
 * Sets lk_host, lk_site, lk_set and lk_root: finds the site of a host, and the settings of the
 * path's location, or of the site if the path is unknown.
 */
void static_locate(struct exchange *, struct str host);

/* Starts the lookup.  Returns as exchange_respond does. */
bool static_begin(struct exchange *);

void static_finish(struct exchange *);

#endif
