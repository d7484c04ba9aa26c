/*
 * response_cache: caches the responses to the most popular requests in their sent form: the body
 * follows the head in memory.  Belongs to a worker; used only on the worker's thread.
 *
 * The key of a response contains the site and the request target.  The target must be the path
 * itself, without escapes and query.  If compressed siblings are sent or the response depends on
 * TLS (set_by_scheme), the key also contains the codings that the client accepts and whether the
 * client uses TLS.  A cached response is the response to a plain GET: HTTP/1.1, persistent
 * connection, no condition, no range.  A request on a connection that is not persistent admits it
 * as well, since that request needs its body.
 *
 * A response is fresh, and may be sent, until the time at which its file must be looked up again
 * (pw_file_open).  If the lookup finds the file unchanged, the response is fresh again.  While the
 * file is open, the cache also checks the file with fstat(2), at most once per loop iteration.  So
 * the cache detects a change of the file at once, and a replacement of the file within a second.  A
 * file has changed if its inode, size, mtime or ctime differs.  A response is cached only if the
 * ctime of the file is at least RESPONSE_CACHE_SETTLED seconds old, so that each later write
 * changes the ctime.  (A write through a mapping may not change the ctime: the kernel sets the
 * times when a page becomes dirty, but not at each store.)
 *
 * The memory is limited.  All counts are halved every 8.4 s.  A file is admitted if it is open and
 * its count of requests is at least RESPONSE_CACHE_ASKED.  If the budget is used up, the cache
 * compares this count with the uses of the oldest response.  If the count exceeds one and a half
 * times the uses by more than 1, the cache evicts the oldest response; otherwise the oldest
 * response stays and becomes the youngest.  So popular responses stay, equally popular responses
 * seldom replace each other, and no list changes when a response is used.
 *
 * A response is copied into the socket by send(2), so that it needs no pages of the file.  In place of a copy
 * of more than 32 KiB, sendfile(2) sends pages that are resident, which costs less (conn/fast_path.c).
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
/* length from which a target is not cached, bytes */
#define RESPONSE_CACHE_TARGET  256
#define RESPONSE_CACHE_SETTLED 2 /* minimum age of a file's ctime, seconds */
#define RESPONSE_CACHE_ASKED   2 /* recent requests that admit a file */

/* Bit of ck_accept that is set if the client uses TLS.  The other bits are coding_weights. */
#define RESPONSE_CACHE_TLS (UINT64_C(1) << 63)

struct cached_response;
struct response_cache;
struct seed;
struct site;

/* Responses made from one open file. */
LIST_HEAD(response_cache_list, cached_response);

/* Key of a response.  ck_target is absent (s_ptr is NULL) if the response cannot be cached. */
struct cached_key {
	const struct site *ck_site;
	struct str ck_target;
	uint64_t ck_accept; /* coding_weights, and RESPONSE_CACHE_TLS */
	bool ck_varies;	    /* true if the response depends on ck_accept */
};

/* Count of recent events, halved every 2^23 us. */
struct response_cache_count {
	unsigned hc_n;
	unsigned hc_age; /* time of the last halving, in 2^23 us */
};

/*
 * Halves the count once for each 2^23 us since the last halving, and adds `more`.  Returns the
 * result.
 */
unsigned response_cache_count(
    struct response_cache_count *, uint64_t now_us, unsigned more);

/* Cached response.  rsp_head and rsp_len are for the sender; the other fields are private. */
struct cached_response {
	size_t rsp_head; /* bytes of the head, at the front of rsp_text */
	size_t rsp_len;	 /* bytes of head and body */

	struct response_cache *rsp_cache;
	LIST_ENTRY(cached_response) rsp_bucket;
	/* link in rch_order, which has the oldest response first */
	TAILQ_ENTRY(cached_response) rsp_order;
	unsigned rsp_refs; /* one reference of the cache and of each sender */
	struct response_cache_count rsp_uses;
	time_t rsp_date;    /* time in the head's Date */
	uint64_t rsp_until; /* end of freshness, microseconds */
	uint64_t rsp_hash;
	/* Open file, checked with fstat; NULL if closed. */
	struct pw_file *rsp_file;
	LIST_ENTRY(cached_response) rsp_of_file;
	/* rsp_dev to rsp_ctime identify the file and its state when the response was made. */
	uint64_t rsp_dev;
	uint64_t rsp_ino;
	struct timespec rsp_mtime;
	struct timespec rsp_ctime;
	const struct site *rsp_site;
	uint64_t rsp_accept; /* ck_accept, compared if rsp_varies */
	bool rsp_varies;
	size_t rsp_target_len;
	void *rsp_form; /* head in the form of the sender, or NULL */
	size_t rsp_form_len;
	char *rsp_text;
	char rsp_target[]; /* target, followed by rsp_text */
};

/*
 * Creates a cache with `bytes` of memory for responses.  Its table needs 8 to 16 more bytes for
 * each 2 KiB.  Returns NULL if memory is short.
 */
struct response_cache *response_cache_create(size_t bytes);

/* Returns the seed of rsp_hash, which is the hash of the target. */
const struct seed *response_cache_seed(const struct response_cache *);

/* Frees the cache.  No sender may use a cached response. */
void response_cache_destroy(struct response_cache **);

/*
 * Returns a fresh response without a reference, or NULL.  Writes `date`, the text of the second
 * `now`, into its head, so the sender must send or copy the whole head at once.  `now_us` is as for
 * pw_file_open.  Evicts a response that is dated later than `now`, because the clock was set back.
 */
struct cached_response *response_cache_find(struct response_cache *,
    struct cached_key, uint64_t now_us, time_t now, const char *date);

/*
 * Returns the response made from this file in its current state, and makes it fresh again; or
 * returns NULL.  Evicts a response made from another file or state.
 */
struct cached_response *response_cache_of_file(struct response_cache *,
    struct cached_key, const struct pw_file *, uint64_t now_us);

/*
 * response_cache_link adds a response to the list of its open file; the response is then stale
 * whenever the file is not fresh (file_is_fresh).  response_cache_move moves all responses of a
 * list to an empty list.  response_cache_forget empties the list of a file that closes; its
 * responses are then stale until the file is looked up again.
 */
void response_cache_link(
    struct cached_response *, struct pw_file *, struct response_cache_list *);
void response_cache_move(
    struct response_cache_list *from, struct response_cache_list *to);
void response_cache_forget(struct response_cache_list *);

/*
 * Caches a copy of head and body, and returns it without a reference.  Returns NULL if the rules
 * above exclude the file or the target, if the body is not all resident, if memory is short, or if
 * there is neither budget nor a less popular response to evict.  `fields` is the head without
 * Connection and the blank line, with the Date `now`.  `asked` is the number of recent requests for
 * the file.
 */
struct cached_response *response_cache_offer(struct response_cache *,
    struct cached_key, struct pw_file *, struct str fields, unsigned asked,
    uint64_t now_us, time_t now);

/*
 * Allocates and returns rsp_form, for the head in the sender's form.  Requires that the response
 * has no rsp_form yet.  The cache frees rsp_form with the response.  Returns NULL if memory is
 * short, or if there is neither budget nor a less popular response to evict.
 */
void *response_cache_form(
    struct cached_response *, size_t len, uint64_t now_us);

/*
 * response_cache_ref adds a reference for a sender that cannot finish at once.
 * response_cache_unref releases the reference.
 */
void response_cache_ref(struct cached_response *);
void response_cache_unref(struct cached_response **);

/*
 * Evicts up to `most` responses.  Returns true if more responses are left.  Does nothing, and returns
 * false, if the cache is NULL.
 */
bool response_cache_shrink(struct response_cache *, unsigned most);

size_t response_cache_bytes(const struct response_cache *);

#endif
