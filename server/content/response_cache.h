/*
 * response_cache: the answers to the most popular requests, ready to be sent: head and
 * body side by side in memory.  Belongs to a worker; its thread only.
 *
 * An answer is known by the site and the request target as it was received, if that is
 * the path itself (nothing escaped, no query), and, where compressed siblings are sent, by the
 * codings that the client accepts.  It is the one that a plain GET gets:
 * HTTP/1.1, the connection stays open, no condition, no range.
 *
 * Fresh: each is given out for as long as its file need not be looked up again
 * (pw_file_open), then the file is looked up, and if it is as it was, the answer is fresh
 * again.  As long as the file is open fstat(2) is asked before, once in an iteration of the loop:
 * so what changes the file itself is noticed at once, and another file in its place in a second.  The state of a file is its inode, size, mtime and ctime; so one is taken in
 * only when its ctime lies RESPONSE_CACHE_SETTLED in the past, and whatever is written
 * to it after that can be seen.  (Except what is written through a mapping: the kernel
 * sets the times when a page becomes dirty, not at each store.)
 *
 * Memory is bounded.  A file comes in when it is asked for the second time within some
 * seconds while it is open.  When there is no room, the oldest one goes if the new one was asked for half as
 * often again as it was used; otherwise it stays, and is the youngest again.  All counts are halved every
 * 8.4 s.  That keeps what is popular, changes little among those that are equally so, and
 * nothing is moved when an answer is used.
 *
 * It is copied into the socket by send(2), and not sent by sendfile(2) from a memory
 * file, because up to RESPONSE_CACHE_LARGEST that costs less, and nothing is in flight
 * afterwards that would have to stay as it is (docs/performance/small-files.md).
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

#define RESPONSE_CACHE_LARGEST ((off_t)64 << 10) /* bytes of a body */
#define RESPONSE_CACHE_TARGET  256 /* bytes of a target, less one */
#define RESPONSE_CACHE_SETTLED 2   /* seconds */
#define RESPONSE_CACHE_ASKED   2   /* times, before it is taken in */

/* In ck_accept, besides the weights: the client came with TLS. */
#define RESPONSE_CACHE_TLS (UINT64_C(1) << 63)

struct cached_response;
struct response_cache;
struct seed;
struct site;

/* The responses that were made of one open file. */
LIST_HEAD(response_cache_list, cached_response);

/* Absent (s_ptr is NULL): there can be no answer. */
struct cached_key {
	const struct site *ck_site;
	struct str ck_target;
	uint64_t ck_accept; /* coding_weights of the client, and ..._TLS */
	bool ck_varies;	    /* the answer depends on them */
};

/* How often something happened of late. */
struct response_cache_count {
	unsigned hc_n;
	unsigned hc_age; /* when it was last halved */
};

/* more: times that are added.  Returns how often it is now. */
unsigned response_cache_count(
    struct response_cache_count *, uint64_t now_us, unsigned more);

/* Readable by the sender; the rest is private. */
struct cached_response {
	size_t rsp_head; /* bytes of the head, at the front of rsp_text */
	size_t rsp_len;	 /* bytes of head and body */

	struct response_cache *rsp_cache;
	LIST_ENTRY(cached_response) rsp_bucket;
	TAILQ_ENTRY(cached_response) rsp_order; /* the oldest first */
	unsigned rsp_refs; /* of the set, and of each sender */
	struct response_cache_count rsp_uses;
	time_t rsp_date;    /* that its head has */
	uint64_t rsp_until; /* fresh, microseconds */
	uint64_t rsp_hash;
	/* Its descriptor tells at once that it has changed; NULL: it is closed. */
	struct pw_file *rsp_file;
	LIST_ENTRY(cached_response) rsp_of_file;
	/* the file that it was made of */
	uint64_t rsp_dev;
	uint64_t rsp_ino;
	struct timespec rsp_mtime;
	struct timespec rsp_ctime;
	const struct site *rsp_site;
	uint64_t rsp_accept; /* as ck_accept, if it varies */
	bool rsp_varies;
	size_t rsp_target_len;
	void *rsp_form; /* see response_cache_form; NULL: none */
	size_t rsp_form_len;
	char *rsp_text;
	char rsp_target[]; /* and the text behind it */
};

/* bytes: of memory for the answers; a table of 8 bytes for each 2 KiB comes on top.  NULL: no memory. */
struct response_cache *response_cache_create(size_t bytes);

/* Of rsp_hash, which is that of the target alone. */
const struct seed *response_cache_seed(const struct response_cache *);

/* No answer is being sent any more. */
void response_cache_destroy(struct response_cache **);

/*
 * The fresh one, or NULL.  now_us as pw_file_open's; date is of the second now, and put into its
 * head: so no part of a head may be sent later than at once.  After the clock went back it is gone.
 */
struct cached_response *response_cache_find(struct response_cache *,
    struct cached_key, uint64_t now_us, time_t now, const char *date);

/*
 * The one that was made of this file as it is now, fresh or not, and it is fresh again;
 * or NULL, and one that was made of another file is gone.
 */
struct cached_response *response_cache_of_file(struct response_cache *,
    struct cached_key, const struct pw_file *, uint64_t now_us);

/*
 * Puts a response on the list of its open file: it is fresh as long as the file is (file_is_fresh).
 * move moves all of a list to another, empty one.  forget empties the list of a file that is closed:
 * its responses stay fresh for the rest of their second.
 */
void response_cache_link(
    struct cached_response *, struct pw_file *, struct response_cache_list *);
void response_cache_move(
    struct response_cache_list *from, struct response_cache_list *to);
void response_cache_forget(struct response_cache_list *);

/*
 * Takes in an answer and returns it, if there is room, or what deserves it less: head is the head as
 * it was made for this request, in the second now.  asked: how often the file was.  The body is copied, if
 * all of it is in memory.
 */
struct cached_response *response_cache_offer(struct response_cache *,
    struct cached_key, struct pw_file *, struct str head, unsigned asked,
    uint64_t now_us, time_t now);

/*
 * Memory for its head in a form of the sender's, rsp_form, which it has not yet; it goes with the
 * answer.  NULL: there is no room, as for an answer that is offered.
 */
void *response_cache_form(
    struct cached_response *, size_t len, uint64_t now_us);

/* For a sender that does not finish at once. */
void response_cache_ref(struct cached_response *);
void response_cache_unref(struct cached_response **);

/* Memory that is used, bytes. */
size_t response_cache_bytes(const struct response_cache *);

#endif
