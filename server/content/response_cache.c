/*
 * response_cache: see response_cache.h.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/file/file.h"
#include "lib/os/seed.h"
#include "lib/util/hash.h"
#include "lib/util/timespec.h"

#include "server/content/response_cache.h"
#include "server/http/date.h"
#include "server/http/head_write.h"

#define HALVED	23 /* log2 of the halving period of counts, us */
#define VICTIMS 64 /* maximum number of responses evicted for a new one */
/* assumed mean size of a response in bytes, to choose the number of buckets */
#define MEAN	(2 << 10)
#define BLANK	STR("\r\n") /* the line behind the fields of a head */

LIST_HEAD(rch_bucket, cached_response);

struct response_cache {
	size_t rch_max; /* limit of rch_used, bytes */
	size_t rch_used;
	uint64_t rch_mask;
	struct seed rch_seed;
	TAILQ_HEAD(, cached_response) rch_order;
	struct rch_bucket rch_buckets[];
};

struct response_cache *
response_cache_create(size_t bytes)
{
	struct response_cache *rch;
	uint64_t n = 16;

	while (n * MEAN < bytes)
		n *= 2;
	rch = calloc(1, sizeof(*rch) + n * sizeof(rch->rch_buckets[0]));
	if (rch == NULL)
		return NULL;
	seed_draw(&rch->rch_seed);
	rch->rch_max = bytes;
	rch->rch_mask = n - 1;
	TAILQ_INIT(&rch->rch_order);
	return rch;
}

unsigned
response_cache_count(
    struct response_cache_count *hc, uint64_t now_us, unsigned more)
{
	unsigned age = (unsigned)(now_us >> HALVED), times;

	/* `now_us` is the start of a request.  A request counted before may have started later. */
	times = age > hc->hc_age ? age - hc->hc_age : 0;
	hc->hc_n = times < 32 ? hc->hc_n >> times : 0;
	hc->hc_age += times;
	hc->hc_n += hc->hc_n < UINT_MAX / 2 ? more : 0;
	return hc->hc_n;
}

static size_t
response_cache_size_of(const struct cached_response *rsp)
{
	return sizeof(*rsp) + rsp->rsp_target_len + rsp->rsp_len +
	       rsp->rsp_form_len;
}

void
response_cache_ref(struct cached_response *rsp)
{
	rsp->rsp_refs++;
}

void
response_cache_unref(struct cached_response **hap)
{
	struct cached_response *rsp = *hap;

	*hap = NULL;
	if (rsp == NULL || --rsp->rsp_refs > 0)
		return;
	rsp->rsp_cache->rch_used -= response_cache_size_of(rsp);
	free(rsp->rsp_form);
	free(rsp);
}

static void
response_cache_unlink_file(struct cached_response *rsp)
{
	if (rsp->rsp_file != NULL)
		LIST_REMOVE(rsp, rsp_of_file);
	rsp->rsp_file = NULL;
}

void
response_cache_link(struct cached_response *rsp, struct pw_file *file,
    struct response_cache_list *list)
{
	if (rsp->rsp_file == file)
		return;
	response_cache_unlink_file(rsp);
	rsp->rsp_file = file;
	LIST_INSERT_HEAD(list, rsp, rsp_of_file);
}

void
response_cache_move(
    struct response_cache_list *from, struct response_cache_list *to)
{
	*to = *from;
	if (!LIST_EMPTY(to))
		LIST_FIRST(to)->rsp_of_file.le_prev = &LIST_FIRST(to);
	LIST_INIT(from);
}

void
response_cache_forget(struct response_cache_list *list)
{
	struct cached_response *rsp;

	while ((rsp = LIST_FIRST(list)) != NULL) {
		response_cache_unlink_file(rsp);
		rsp->rsp_until = 0;
	}
}

static void
response_cache_evict(struct response_cache *rch, struct cached_response *rsp)
{
	response_cache_unlink_file(rsp);
	LIST_REMOVE(rsp, rsp_bucket);
	TAILQ_REMOVE(&rch->rch_order, rsp, rsp_order);
	response_cache_unref(&rsp);
}

bool
response_cache_shrink(struct response_cache *rch, unsigned most)
{
	if (rch == NULL)
		return false;
	while (most-- > 0 && !TAILQ_EMPTY(&rch->rch_order))
		response_cache_evict(rch, TAILQ_FIRST(&rch->rch_order));
	return !TAILQ_EMPTY(&rch->rch_order);
}

const struct seed *
response_cache_seed(const struct response_cache *rch)
{
	return &rch->rch_seed;
}

void
response_cache_destroy(struct response_cache **hotp)
{
	(void)response_cache_shrink(*hotp, UINT_MAX);
	free(*hotp);
	*hotp = NULL;
}

size_t
response_cache_bytes(const struct response_cache *rch)
{
	return rch == NULL ? 0 : rch->rch_used;
}

static uint64_t
response_cache_hash_of(const struct response_cache *rch, struct str target)
{
	return hash_bytes(&rch->rch_seed, 0, target.s_ptr, target.s_len);
}

static struct cached_response *
response_cache_lookup(struct response_cache *rch, struct cached_key key)
{
	uint64_t hash = response_cache_hash_of(rch, key.ck_target);
	struct cached_response *rsp;

	LIST_FOREACH(rsp, &rch->rch_buckets[hash & rch->rch_mask], rsp_bucket)
	if (rsp->rsp_hash == hash && rsp->rsp_site == key.ck_site &&
	    rsp->rsp_target_len == key.ck_target.s_len &&
	    memcmp(rsp->rsp_target, key.ck_target.s_ptr, key.ck_target.s_len) ==
		0 &&
	    (!rsp->rsp_varies || rsp->rsp_accept == key.ck_accept))
		break;
	return rsp;
}

struct cached_response *
response_cache_find(struct response_cache *rch, struct cached_key key,
    uint64_t now_us, time_t now, const char *date)
{
	struct cached_response *rsp = response_cache_lookup(rch, key);

	if (rsp == NULL || now_us >= rsp->rsp_until ||
	    (rsp->rsp_file != NULL && !file_is_fresh(rsp->rsp_file)))
		return NULL;
	/* The clock was set back, so Last-Modified may be later than the new Date. */
	if (rsp->rsp_date > now) {
		response_cache_evict(rch, rsp);
		return NULL;
	}
	if (rsp->rsp_date != now) {
		memcpy(rsp->rsp_text + HEAD_WRITE_DATE, date, DATE_LEN);
		rsp->rsp_date = now;
	}
	response_cache_count(&rsp->rsp_uses, now_us, 1);
	return rsp;
}

static bool
response_cache_is_of(
    const struct cached_response *rsp, const struct pw_file *file)
{
	return rsp->rsp_ino == file->fil_ino && rsp->rsp_dev == file->fil_dev &&
	       rsp->rsp_len - rsp->rsp_head == (size_t)file->fil_size &&
	       timespec_same(&rsp->rsp_mtime, &file->fil_mtime) &&
	       timespec_same(&rsp->rsp_ctime, &file->fil_ctime) &&
	       !file->fil_stale;
}

struct cached_response *
response_cache_of_file(struct response_cache *rch, struct cached_key key,
    const struct pw_file *file, uint64_t now_us)
{
	struct cached_response *rsp = response_cache_lookup(rch, key);

	if (rsp == NULL)
		return NULL;
	if (!response_cache_is_of(rsp, file)) {
		response_cache_evict(rch, rsp);
		return NULL;
	}
	rsp->rsp_until = file->fil_checked + PW_FRESH_US;
	response_cache_count(&rsp->rsp_uses, now_us, 1);
	return rsp;
}

static void
response_cache_is_whole(struct response_cache *rch, struct cached_response *rsp)
{
	TAILQ_REMOVE(&rch->rch_order, rsp, rsp_order);
	TAILQ_INSERT_TAIL(&rch->rch_order, rsp, rsp_order);
}

/*
 * Chooses responses to evict, so that `size` bytes of the budget become free.  Returns their
 * number, or -1 if they free too little or the oldest response is popular enough to stay.  Skips
 * responses in flight, because their eviction would free no memory.
 */
static int
response_cache_choose(struct response_cache *rch, size_t size, unsigned asked,
    uint64_t now_us, struct cached_response *victims[static VICTIMS])
{
	size_t used = rch->rch_used;
	struct cached_response *rsp, *next;
	unsigned uses;
	int n = 0, looks = 0;

	if (size > rch->rch_max)
		return -1;
	for (rsp = TAILQ_FIRST(&rch->rch_order); rsp != NULL; rsp = next) {
		next = TAILQ_NEXT(rsp, rsp_order);
		if (used + size <= rch->rch_max || looks++ == VICTIMS)
			break;
		if (rsp->rsp_refs > 1) {
			response_cache_is_whole(rch, rsp);
			continue;
		}
		uses = response_cache_count(&rsp->rsp_uses, now_us, 0);
		if (uses + uses / 2 + 1 >= asked) {
			response_cache_is_whole(rch, rsp);
			return -1;
		}
		used -= response_cache_size_of(rsp);
		victims[n++] = rsp;
	}
	return used + size <= rch->rch_max ? n : -1;
}

static struct cached_response *
response_cache_new_entry(struct response_cache *rch, struct cached_key key,
    const struct pw_file *file, struct str fields)
{
	size_t head = fields.s_len + BLANK.s_len,
	       len = head + (size_t)file->fil_size;
	struct cached_response *rsp =
	    malloc(sizeof(*rsp) + key.ck_target.s_len + len);

	if (rsp == NULL)
		return NULL;
	*rsp = (struct cached_response){
	    .rsp_head = head,
	    .rsp_len = len,
	    .rsp_cache = rch,
	    .rsp_site = key.ck_site,
	    .rsp_accept = key.ck_accept,
	    .rsp_varies = key.ck_varies,
	    .rsp_refs = 1,
	    .rsp_until = file->fil_checked + PW_FRESH_US,
	    .rsp_hash = response_cache_hash_of(rch, key.ck_target),
	    .rsp_dev = file->fil_dev,
	    .rsp_ino = file->fil_ino,
	    .rsp_mtime = file->fil_mtime,
	    .rsp_ctime = file->fil_ctime,
	    .rsp_target_len = key.ck_target.s_len,
	};
	rsp->rsp_text = rsp->rsp_target + key.ck_target.s_len;
	memcpy(rsp->rsp_target, key.ck_target.s_ptr, key.ck_target.s_len);
	memcpy(rsp->rsp_text, fields.s_ptr, fields.s_len);
	memcpy(rsp->rsp_text + fields.s_len, BLANK.s_ptr, BLANK.s_len);
	return rsp;
}

static void
response_cache_insert(struct response_cache *rch, struct cached_response *rsp)
{
	rch->rch_used += response_cache_size_of(rsp);
	LIST_INSERT_HEAD(
	    &rch->rch_buckets[rsp->rsp_hash & rch->rch_mask], rsp, rsp_bucket);
	TAILQ_INSERT_TAIL(&rch->rch_order, rsp, rsp_order);
}

/*
 * Makes a response with a copy of the file.  Returns NULL if memory is short or the file is not
 * resident.  The caller evicts other responses only if this call succeeds.
 */
static struct cached_response *
response_cache_make(struct response_cache *rch, struct cached_key key,
    struct pw_file *file, struct str fields)
{
	struct cached_response *rsp =
	    response_cache_new_entry(rch, key, file, fields);
	int error;

	if (rsp == NULL)
		return NULL;
	error = pw_file_copy(
	    file, 0, rsp->rsp_text + rsp->rsp_head, (size_t)file->fil_size);
	if (error == 0)
		return rsp;
	if (error == -ESTALE)
		file->fil_stale = true;
	free(rsp);
	return NULL;
}

struct cached_response *
response_cache_offer(struct response_cache *rch, struct cached_key key,
    struct pw_file *file, struct str fields, unsigned asked, uint64_t now_us,
    time_t now)
{
	size_t size = sizeof(struct cached_response) + key.ck_target.s_len +
		      fields.s_len + BLANK.s_len + (size_t)file->fil_size;
	struct cached_response *rsp, *victims[VICTIMS];
	int n;

	if (asked < RESPONSE_CACHE_ASKED ||
	    file->fil_size > RESPONSE_CACHE_LARGEST || file->fil_stale ||
	    key.ck_target.s_len >= RESPONSE_CACHE_TARGET ||
	    file->fil_ctime.tv_sec > now - RESPONSE_CACHE_SETTLED)
		return NULL;
	n = response_cache_choose(rch, size, asked, now_us, victims);
	rsp = n < 0 ? NULL : response_cache_make(rch, key, file, fields);
	if (rsp == NULL)
		return NULL;
	while (n > 0)
		response_cache_evict(rch, victims[--n]);
	rsp->rsp_date = now;
	response_cache_count(&rsp->rsp_uses, now_us, asked);
	response_cache_insert(rch, rsp);
	return rsp;
}

void *
response_cache_form(struct cached_response *rsp, size_t len, uint64_t now_us)
{
	struct response_cache *rch = rsp->rsp_cache;
	unsigned uses = response_cache_count(&rsp->rsp_uses, now_us, 0);
	struct cached_response *victims[VICTIMS];
	int n;

	/* The second reference prevents the eviction of rsp. */
	rsp->rsp_refs++;
	n = response_cache_choose(rch, len, uses, now_us, victims);
	rsp->rsp_refs--;
	if (n < 0)
		return NULL;
	rsp->rsp_form = malloc(len);
	if (rsp->rsp_form == NULL)
		return NULL;
	while (n > 0)
		response_cache_evict(rch, victims[--n]);
	rsp->rsp_form_len = len;
	rch->rch_used += len;
	return rsp->rsp_form;
}
