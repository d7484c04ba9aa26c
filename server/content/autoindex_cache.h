/*
 * autoindex_cache: caches pages of directory listings for up to AUTOINDEX_CACHE_AGE_US.  Requests
 * for the same page share it, even while it is being made.  Belongs to a worker; used by its thread
 * only.
 *
 * The key of a page is the directory's inode, its times and the view, so an added or removed name
 * makes a new page.  The key does not cover the sizes and times of the files.  A page therefore
 * expires: a popular page is rarely made anew, and a client still sees an upload grow.  A directory
 * that changes twice within the resolution of its times looks unchanged, so a page of a directory
 * that changed within the last two seconds stays cached for AUTOINDEX_CACHE_NEW_US only.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_CACHE_H
#define SERVER_CONTENT_AUTOINDEX_CACHE_H

#include <sys/queue.h>

#include "server/content/autoindex_read.h"

/* Lifetime of a page, and of a page made just after its directory changed. */
#define AUTOINDEX_CACHE_AGE_US 5000000
#define AUTOINDEX_CACHE_NEW_US 1000000

/* Limits in bytes of the cached pages, and of all pages, cached or in flight. */
#define AUTOINDEX_CACHE_BYTES ((size_t)4 << 20)
#define AUTOINDEX_CACHE_ALIVE ((uint64_t)64 << 20)

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
	/*
	 * The caller sets li_place and li_done.  The strings and the root of li_place must stay
	 * valid until li_done is called.
	 */
	struct place li_place;
	void (*li_done)(struct listing *);
	int li_error;	      /* 0 or -errno; -E2BIG: stream the page */
	struct text *li_text; /* page; a reference for the caller, or NULL */
	/* validators of the page, set if li_error is 0 or -E2BIG */
	struct listing_validator li_validator;
	/* private */
	STAILQ_ENTRY(listing) li_link;
};

/*
 * Creates the cache.  All text, cached or in flight, may have `alive` bytes or
 * AUTOINDEX_CACHE_ALIVE bytes, whichever is less.  Returns NULL if memory is short.
 */
struct autoindex_cache *autoindex_cache_create(uint64_t alive);

/* Frees the cache.  No request may wait for a page or hold a text. */
void autoindex_cache_destroy(struct autoindex_cache **);

/*
 * Looks up the page, or starts to make it.  Returns 0 if the result is ready, or -EINPROGRESS if
 * li_done will be called.  Fails with another -errno if the request cannot start.
 */
int autoindex_cache_get(struct autoindex_cache *, struct pw_loop *,
    struct listing *, uint64_t now_us);

#endif
