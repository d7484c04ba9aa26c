/*
 * response_cache: caches the responses to the most popular requests, ready to be sent: head and
 * body follow each other in memory.  Belongs to a worker; used by its thread only.
 *
 * The key of a response is the site and the request target as it was received, if the target is the
 * path itself (nothing escaped, no query).  Where compressed siblings are sent, or responses depend
 * on TLS (set_by_scheme), the key also has the codings that the client accepts and whether the
 * client uses TLS.  The response is the one to a plain GET: HTTP/1.1, a persistent connection, no
 * condition, no range.
 *
 * A response is fresh, and may be sent, until its file must be looked up again (pw_file_open).  If
 * the lookup finds the file unchanged, the response is fresh again.  While the file is open,
 * fstat(2) also checks it, once in an iteration of the loop.  So a change of the file itself is
 * noticed at once, and another file in its place within a second.  A file has changed if its inode,
 * size, mtime or ctime differs.  A response is cached only when the file's ctime lies
 * RESPONSE_CACHE_SETTLED in the past, so that any later write changes the ctime.  (A write through a
 * mapping may not: the kernel sets the times when a page becomes dirty, not at each store.)
 *
 * Memory is bounded.  All counts are halved every 8.4 s.  A file is admitted while it is open and
 * its count of requests is RESPONSE_CACHE_ASKED or more.  When the budget is used up, the oldest
 * response is evicted if the new file was requested more than one and a half times as often as that
 * response was used; otherwise the oldest response stays and becomes the youngest.  So popular
 * responses stay, equally popular responses seldom replace each other, and no list changes when a
 * response is used.
 *
 * A response is copied into the socket by send(2), and not sent by sendfile(2) from a memory file,
 * because up to RESPONSE_CACHE_LARGEST that costs less, and no bytes in flight depend on the memory
 * afterwards (docs/performance.md).
 */
#ifndef SERVER_CONTENT_RESPONSE_CACHE_H
#define SERVER_CONTENT_RESPONSE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <time.h>

#include "lib/pagewise.h"

#include "server/util/str.h"

#define RESPONSE_CACHE_LARGEST ((off_t)64 << 10) /* maximum bytes of a body */
#define RESPONSE_CACHE_TARGET  256 /* bytes; a target must be shorter */
#define RESPONSE_CACHE_SETTLED 2   /* minimum age of a file's ctime, seconds */
#define RESPONSE_CACHE_ASKED   2   /* count of requests that admits a file */

/* Bit of ck_accept beside the weights, set if the client uses TLS. */
#define RESPONSE_CACHE_TLS (UINT64_C(1) << 63)

struct cached_response;
struct response_cache;
struct seed;
struct site;

/* The responses that were made of one open file. */
LIST_HEAD(response_cache_list, cached_response);

/* Key of a response.  ck_target is absent (s_ptr is NULL) if the response cannot be cached. */
struct cached_key {
	const struct site *ck_site;
	struct str ck_target;
	uint64_t ck_accept; /* coding_weights, and RESPONSE_CACHE_TLS */
	bool ck_varies;	    /* true if the response depends on ck_accept */
};

/* A count of recent events, halved every 2^23 us. */
struct response_cache_count {
	unsigned hc_n;
	unsigned hc_age; /* time of the last halving, in 2^23 us */
};

/*
 * Halves the count once for each 2^23 us since the last halving, adds `more`, and returns the sum.
 */
unsigned response_cache_count(
    struct response_cache_count *, uint64_t now_us, unsigned more);

/* The first two fields are for the sender; the rest is private. */
struct cached_response {
	size_t rsp_head; /* bytes of the head, at the front of rsp_text */
	size_t rsp_len;	 /* bytes of head and body */

	struct response_cache *rsp_cache;
	LIST_ENTRY(cached_response) rsp_bucket;
	TAILQ_ENTRY(cached_response) rsp_order; /* list order, oldest first */
	unsigned rsp_refs; /* the cache's reference and one of each sender */
	struct response_cache_count rsp_uses;
	time_t rsp_date;    /* time of the head's Date */
	uint64_t rsp_until; /* end of freshness, microseconds */
	uint64_t rsp_hash;
	/* Open file, whose descriptor shows a change at once; NULL if it is closed. */
	struct pw_file *rsp_file;
	LIST_ENTRY(cached_response) rsp_of_file;
	/* rsp_dev to rsp_ctime identify the file, and its state, that the response was made of */
	uint64_t rsp_dev;
	uint64_t rsp_ino;
	struct timespec rsp_mtime;
	struct timespec rsp_ctime;
	const struct site *rsp_site;
	uint64_t rsp_accept; /* ck_accept, compared if rsp_varies */
	bool rsp_varies;
	size_t rsp_target_len;
	void *rsp_form; /* head in the sender's form, or NULL */
	size_t rsp_form_len;
	char *rsp_text;
	char rsp_target[]; /* target, followed by rsp_text */
};

/*
 * Creates a cache with `bytes` of memory for responses; its table takes another 8 bytes for each 2
 * KiB.  Returns NULL if memory is short.
 */
struct response_cache *response_cache_create(size_t bytes);

/* Returns the seed of rsp_hash, the hash of the target alone. */
const struct seed *response_cache_seed(const struct response_cache *);

/* Frees the cache.  No cached response may be in flight. */
void response_cache_destroy(struct response_cache **);

/*
 * Returns the fresh response, or NULL.  Writes `date`, the text of the second `now`, into the
 * response's head; so a sender must send or copy the whole head at once.  `now_us` is as for
 * pw_file_open.  Evicts a response whose date is later than `now`, because the clock went back.
 */
struct cached_response *response_cache_find(struct response_cache *,
    struct cached_key, uint64_t now_us, time_t now, const char *date);

/*
 * Returns the response that was made of this file in its present state, and makes it fresh again;
 * or returns NULL.  Evicts a response that was made of another file or state.
 */
struct cached_response *response_cache_of_file(struct response_cache *,
    struct cached_key, const struct pw_file *, uint64_t now_us);

/*
 * response_cache_link puts a response on the list of its open file, which makes it stale when the
 * file is (file_is_fresh).  response_cache_move moves all responses of a list to an empty list.
 * response_cache_forget empties the list of a file that is being closed; its responses are stale
 * until the file is looked up again.
 */
void response_cache_link(
    struct cached_response *, struct pw_file *, struct response_cache_list *);
void response_cache_move(
    struct response_cache_list *from, struct response_cache_list *to);
void response_cache_forget(struct response_cache_list *);

/*
 * Copies head and body into a new cached response, and returns it.  Returns NULL if not all of the
 * body is resident, or if there is no budget and no less popular response to evict.  `head` is this
 * request's response head, whose Date is `now`.  `asked` is the number of recent requests for the
 * file.
 */
struct cached_response *response_cache_offer(struct response_cache *,
    struct cached_key, struct pw_file *, struct str head, unsigned asked,
    uint64_t now_us, time_t now);

/*
 * Allocates rsp_form for the head in the sender's own form, and returns it.  The response must not
 * have one yet; both are freed together.  Returns NULL if there is no budget, as for
 * response_cache_offer.
 */
void *response_cache_form(
    struct cached_response *, size_t len, uint64_t now_us);

/*
 * response_cache_ref adds a reference, for a sender that does not finish at once.
 * response_cache_unref releases it.
 */
void response_cache_ref(struct cached_response *);
void response_cache_unref(struct cached_response **);

/* Returns the memory in use, bytes. */
size_t response_cache_bytes(const struct response_cache *);

#endif
