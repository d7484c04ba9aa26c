/*
 * autoindex_cache: the pages of directories.  A page is made once for all requests of the same
 * time, and kept for a moment.  Belongs to a worker; its thread only.
 *
 * A page is known by the directory's inode, its times, and how it is to be shown, so a
 * name that is added or removed makes another page.  This does not cover the sizes and
 * times of the files: hence AUTOINDEX_CACHE_AGE_US, which is long enough that a page
 * that is asked for all the time costs next to nothing, and short enough to see an
 * upload grow.  A directory that changes twice within the resolution of its times looks
 * the same after it: a page of one that has just changed is trusted for
 * AUTOINDEX_CACHE_NEW_US only.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_CACHE_H
#define SERVER_CONTENT_AUTOINDEX_CACHE_H

#include <sys/queue.h>

#include "server/content/autoindex_read.h"

#define AUTOINDEX_CACHE_AGE_US 5000000 /* lifetime of a page ... */
#define AUTOINDEX_CACHE_NEW_US \
	1000000 /* ... of a directory that has just changed */
#define AUTOINDEX_CACHE_BYTES ((size_t)4 << 20) /* of pages that are kept */
#define AUTOINDEX_CACHE_ALIVE \
	((uint64_t)64 << 20) /* including pages that are being sent */

struct autoindex_cache;

/* A page as a whole; it does not change. */
struct text {
	struct autoindex_cache *tx_listings;
	unsigned tx_refs;
	size_t tx_len;
	char *tx_data;
};

void autoindex_cache_unref(struct text **);

/* A request for a page. */
struct listing {
	/* set by the caller; strings and root must stay until li_done */
	struct place li_place;
	void (*li_done)(struct listing *);
	/* the result */
	int li_error; /* 0, -errno; -E2BIG: no room for this, see autoindex_stream.h */
	struct text *li_text; /* with 0: one reference, the caller's */
	struct listing_validator li_validator; /* with -E2BIG as well */
	/* private */
	STAILQ_ENTRY(listing) li_link;
};

/* alive: bytes of text, kept or sent; AUTOINDEX_CACHE_ALIVE at most.  NULL: no memory. */
struct autoindex_cache *autoindex_cache_create(uint64_t alive);

/* No request waits or holds a text. */
void autoindex_cache_destroy(struct autoindex_cache **);

/*
 * 0: there is a result.  -EINPROGRESS: li_done will be called.  Any other -errno: it
 * cannot be begun.
 */
int autoindex_cache_get(struct autoindex_cache *, struct pw_loop *,
    struct listing *, uint64_t now_us);

#endif
