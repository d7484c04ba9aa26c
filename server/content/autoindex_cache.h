/*
 * autoindex_cache: the pages of directories.  All requests that arrive at the same time share one
 * page, which stays cached for a short time.  Belongs to a worker; used by its thread only.
 *
 * The key of a page is the directory's inode, its times and the view, so an added or removed name
 * makes a new page.  The key does not cover the sizes and times of the files, hence
 * AUTOINDEX_CACHE_AGE_US: long enough that a page that is requested all the time costs next to
 * nothing, and short enough to show an upload growing.  A directory that changes twice within the
 * resolution of its times looks unchanged, so a page of a directory that has just changed stays
 * cached for AUTOINDEX_CACHE_NEW_US only.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_CACHE_H
#define SERVER_CONTENT_AUTOINDEX_CACHE_H

#include <sys/queue.h>

#include "server/content/autoindex_read.h"

#define AUTOINDEX_CACHE_AGE_US 5000000		 /* lifetime of a page */
#define AUTOINDEX_CACHE_NEW_US 1000000		 /* lifetime after a change */
#define AUTOINDEX_CACHE_BYTES  ((size_t)4 << 20) /* of cached pages */
#define AUTOINDEX_CACHE_ALIVE  ((uint64_t)64 << 20) /* also of pages in flight */

struct autoindex_cache;

/* A whole page, immutable. */
struct text {
	struct autoindex_cache *tx_listings;
	unsigned tx_refs;
	size_t tx_len;
	char *tx_data;
};

void autoindex_cache_unref(struct text **);

/* A request for a page. */
struct listing {
	/* set by the caller; strings and root must stay valid until li_done */
	struct place li_place;
	void (*li_done)(struct listing *);
	/* the result */
	int li_error;	      /* 0 or -errno; -E2BIG if it must be streamed */
	struct text *li_text; /* the caller's reference, if li_error is 0 */
	struct listing_validator li_validator; /* set with -E2BIG as well */
	/* private */
	STAILQ_ENTRY(listing) li_link;
};

/*
 * Creates the cache.  alive limits the bytes of text, cached or in flight; AUTOINDEX_CACHE_ALIVE
 * caps it.  Returns NULL if memory is short.
 */
struct autoindex_cache *autoindex_cache_create(uint64_t alive);

/* Call when no request waits or holds a text. */
void autoindex_cache_destroy(struct autoindex_cache **);

/*
 * Returns 0 if the result is ready, or -EINPROGRESS if li_done will be called.  Fails with another
 * -errno if the request cannot start.
 */
int autoindex_cache_get(struct autoindex_cache *, struct pw_loop *,
    struct listing *, uint64_t now_us);

#endif
