/*
 * autoindex_cache: caches pages of directory listings for up to AUTOINDEX_CACHE_AGE_US.  Requests
 * for the same page share it, even while a disk thread makes it.  Belongs to a worker; used only on
 * the worker's thread.
 *
 * The key of a page contains the directory's inode, its times and the view, so an added or removed
 * name leads to a new page.  The key does not contain the sizes and times of the files, so a page
 * expires to let clients see that an upload grows.  If a directory changes twice within the
 * resolution of its times, the second change goes unnoticed.  So the page of a directory that
 * changed within the last two seconds stays cached only for AUTOINDEX_CACHE_NEW_US.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_CACHE_H
#define SERVER_CONTENT_AUTOINDEX_CACHE_H

#include <sys/queue.h>

#include "server/content/autoindex_read.h"

/*
 * Lifetimes of a page, microseconds.  AUTOINDEX_CACHE_NEW_US is for a directory that has just
 * changed.
 */
#define AUTOINDEX_CACHE_AGE_US 5000000
#define AUTOINDEX_CACHE_NEW_US 1000000

/* Maximum bytes of all cached pages, and of all pages that are cached or in flight. */
#define AUTOINDEX_CACHE_BYTES ((size_t)4 << 20)
#define AUTOINDEX_CACHE_ALIVE ((uint64_t)64 << 20)

struct autoindex_cache;

/* Immutable text of a whole page.  The cache and each response hold a reference. */
struct text {
	struct autoindex_cache *tx_listings;
	unsigned tx_refs;
	size_t tx_len;
	char *tx_data;
};

void autoindex_cache_unref(struct text **);

struct listing {
	/*
	 * The caller sets li_place and li_done.  The strings and the root of li_place must stay
	 * valid until the worker calls li_done.
	 */
	struct place li_place;
	void (*li_done)(struct listing *);
	/* 0 or -errno; -E2BIG if the listing needs a stream */
	int li_error;
	struct text *li_text; /* page, one reference for the caller; or NULL */
	/* validators of the page; valid if li_error is 0 or -E2BIG */
	struct listing_validator li_validator;
	/* link in the cache's list of waiting requests, and the list's owner; private */
	STAILQ_ENTRY(listing) li_link;
	struct entry *li_entry;
};

/*
 * Creates a cache.  All texts, cached or in flight, may use at most `alive` bytes, and at most
 * AUTOINDEX_CACHE_ALIVE.  Returns NULL if memory is short.
 */
struct autoindex_cache *autoindex_cache_create(uint64_t alive);

/* Frees the cache.  No request may wait for a page or use a text. */
void autoindex_cache_destroy(struct autoindex_cache **);

/* Evicts up to `most` pages.  Returns true if more pages are left. */
bool autoindex_cache_shrink(struct autoindex_cache *, unsigned most);

/*
 * Looks up the page, or starts to make it.  Returns 0 if li_error and li_text have the result now,
 * -EINPROGRESS if the worker will call li_done, or another -errno if no disk thread makes the page.  `client` is
 * the number of the client for the library (wt_client).
 */
int autoindex_cache_get(struct autoindex_cache *, struct pw_loop *,
    struct listing *, uint64_t now_us, unsigned client);

/*
 * Cancels a pending request, whose li_done is called nevertheless.  A page that no other request waits for
 * is not made if no disk thread has begun it.
 */
void autoindex_cache_leave(struct listing *);

/*
 * Lets other clients go first, if no other request waits for the page.  Call if the client of a pending request
 * has closed its side.
 */
void autoindex_cache_defer(struct listing *);

#endif
