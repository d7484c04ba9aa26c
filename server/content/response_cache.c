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

#define HALVED	23	  /* each 2^23 microseconds */
#define VICTIMS 64	  /* that one may push out */
#define MEAN	(2 << 10) /* bytes of an answer, to find the number of buckets */

LIST_HEAD(hot_bucket, cached_response);

struct response_cache {
	size_t hot_max; /* bytes */
	size_t hot_used;
	uint64_t hot_mask;
	struct seed hot_seed;
	TAILQ_HEAD(, cached_response) hot_order;
	struct hot_bucket hot_buckets[];
};

struct response_cache *
response_cache_create(size_t bytes)
{
	struct response_cache *hot;
	uint64_t n = 16;

	while (n * MEAN < bytes)
		n *= 2;
	hot = calloc(1, sizeof(*hot) + n * sizeof(hot->hot_buckets[0]));
	if (hot == NULL)
		return NULL;
	seed_draw(&hot->hot_seed);
	hot->hot_max = bytes;
	hot->hot_mask = n - 1;
	TAILQ_INIT(&hot->hot_order);
	return hot;
}

unsigned
response_cache_count(
    struct response_cache_count *hc, uint64_t now_us, unsigned more)
{
	unsigned age = (unsigned)(now_us >> HALVED), times;

	/* The time when a request began may lie before what has been counted. */
	times = age > hc->hc_age ? age - hc->hc_age : 0;
	hc->hc_n = times < 32 ? hc->hc_n >> times : 0;
	hc->hc_age += times;
	hc->hc_n += hc->hc_n < UINT_MAX / 2 ? more : 0;
	return hc->hc_n;
}

static size_t
response_cache_size_of(const struct cached_response *ha)
{
	return sizeof(*ha) + ha->ha_target_len + ha->ha_len + ha->ha_form_len;
}

void
response_cache_ref(struct cached_response *ha)
{
	ha->ha_refs++;
}

void
response_cache_unref(struct cached_response **hap)
{
	struct cached_response *ha = *hap;

	*hap = NULL;
	if (ha == NULL || --ha->ha_refs > 0)
		return;
	ha->ha_hot->hot_used -= response_cache_size_of(ha);
	free(ha->ha_form);
	free(ha);
}

static void
response_cache_unlink_file(struct cached_response *ha)
{
	if (ha->ha_file != NULL)
		LIST_REMOVE(ha, ha_of_file);
	ha->ha_file = NULL;
}

void
response_cache_link(struct cached_response *ha, struct pw_file *file,
    struct response_cache_list *list)
{
	if (ha->ha_file == file)
		return;
	response_cache_unlink_file(ha);
	ha->ha_file = file;
	LIST_INSERT_HEAD(list, ha, ha_of_file);
}

void
response_cache_move(
    struct response_cache_list *from, struct response_cache_list *to)
{
	*to = *from;
	if (!LIST_EMPTY(to))
		LIST_FIRST(to)->ha_of_file.le_prev = &LIST_FIRST(to);
	LIST_INIT(from);
}

void
response_cache_forget(struct response_cache_list *list)
{
	struct cached_response *ha;

	while ((ha = LIST_FIRST(list)) != NULL) {
		response_cache_unlink_file(ha);
		ha->ha_until = 0;
	}
}

static void
response_cache_evict(struct response_cache *hot, struct cached_response *ha)
{
	response_cache_unlink_file(ha);
	LIST_REMOVE(ha, ha_bucket);
	TAILQ_REMOVE(&hot->hot_order, ha, ha_order);
	response_cache_unref(&ha);
}

static void
response_cache_evict_all(struct response_cache *hot)
{
	struct cached_response *ha, *next;

	for (ha = TAILQ_FIRST(&hot->hot_order); ha != NULL; ha = next) {
		next = TAILQ_NEXT(ha, ha_order);
		response_cache_evict(hot, ha);
	}
}

const struct seed *
response_cache_seed(const struct response_cache *hot)
{
	return &hot->hot_seed;
}

void
response_cache_destroy(struct response_cache **hotp)
{
	if (*hotp != NULL)
		response_cache_evict_all(*hotp);
	free(*hotp);
	*hotp = NULL;
}

size_t
response_cache_bytes(const struct response_cache *hot)
{
	return hot == NULL ? 0 : hot->hot_used;
}

static uint64_t
response_cache_hash_of(const struct response_cache *hot, struct str target)
{
	return hash_bytes(&hot->hot_seed, 0, target.s_ptr, target.s_len);
}

static struct cached_response *
response_cache_lookup(struct response_cache *hot, struct cached_key key)
{
	uint64_t hash = response_cache_hash_of(hot, key.hk_target);
	struct cached_response *ha;

	LIST_FOREACH(ha, &hot->hot_buckets[hash & hot->hot_mask], ha_bucket)
	if (ha->ha_hash == hash && ha->ha_site == key.hk_site &&
	    ha->ha_target_len == key.hk_target.s_len &&
	    memcmp(ha->ha_target, key.hk_target.s_ptr, key.hk_target.s_len) ==
		0 &&
	    (!ha->ha_varies || ha->ha_accept == key.hk_accept))
		break;
	return ha;
}

struct cached_response *
response_cache_find(struct response_cache *hot, struct cached_key key,
    uint64_t now_us, time_t now, const char *date)
{
	struct cached_response *ha = response_cache_lookup(hot, key);

	if (ha == NULL || now_us >= ha->ha_until ||
	    (ha->ha_file != NULL && !file_is_fresh(ha->ha_file)))
		return NULL;
	/* The clock went back: Last-Modified may lie behind the new Date. */
	if (ha->ha_date > now) {
		response_cache_evict(hot, ha);
		return NULL;
	}
	if (ha->ha_date != now) {
		memcpy(ha->ha_text + HEAD_WRITE_DATE, date, DATE_LEN);
		ha->ha_date = now;
	}
	response_cache_count(&ha->ha_uses, now_us, 1);
	return ha;
}

static bool
response_cache_is_of(
    const struct cached_response *ha, const struct pw_file *file)
{
	return ha->ha_ino == file->fil_ino && ha->ha_dev == file->fil_dev &&
	       ha->ha_len - ha->ha_head == (size_t)file->fil_size &&
	       timespec_same(&ha->ha_mtime, &file->fil_mtime) &&
	       timespec_same(&ha->ha_ctime, &file->fil_ctime) &&
	       !file->fil_stale;
}

struct cached_response *
response_cache_of_file(struct response_cache *hot, struct cached_key key,
    const struct pw_file *file, uint64_t now_us)
{
	struct cached_response *ha = response_cache_lookup(hot, key);

	if (ha == NULL)
		return NULL;
	if (!response_cache_is_of(ha, file)) {
		response_cache_evict(hot, ha);
		return NULL;
	}
	ha->ha_until = file->fil_checked + PW_FRESH_US;
	response_cache_count(&ha->ha_uses, now_us, 1);
	return ha;
}

static void
response_cache_is_whole(struct response_cache *hot, struct cached_response *ha)
{
	TAILQ_REMOVE(&hot->hot_order, ha, ha_order);
	TAILQ_INSERT_TAIL(&hot->hot_order, ha, ha_order);
}

/*
 * Those that have to go for so many bytes, or -1: there are not enough, or the one whose turn
 * it is stays.  What is being sent to somebody would free nothing.
 */
static int
response_cache_choose(struct response_cache *hot, size_t size, unsigned asked,
    uint64_t now_us, struct cached_response *victims[static VICTIMS])
{
	size_t used = hot->hot_used;
	struct cached_response *ha, *next;
	unsigned uses;
	int n = 0, looks = 0;

	if (size > hot->hot_max)
		return -1;
	for (ha = TAILQ_FIRST(&hot->hot_order); ha != NULL; ha = next) {
		next = TAILQ_NEXT(ha, ha_order);
		if (used + size <= hot->hot_max || looks++ == VICTIMS)
			break;
		if (ha->ha_refs > 1) {
			response_cache_is_whole(hot, ha);
			continue;
		}
		uses = response_cache_count(&ha->ha_uses, now_us, 0);
		if (uses + uses / 2 + 1 >= asked) {
			response_cache_is_whole(hot, ha);
			return -1;
		}
		used -= response_cache_size_of(ha);
		victims[n++] = ha;
	}
	return used + size <= hot->hot_max ? n : -1;
}

static struct cached_response *
response_cache_new_entry(struct response_cache *hot, struct cached_key key,
    const struct pw_file *file, struct str head)
{
	size_t len = head.s_len + (size_t)file->fil_size;
	struct cached_response *ha =
	    malloc(sizeof(*ha) + key.hk_target.s_len + len);

	if (ha == NULL)
		return NULL;
	*ha = (struct cached_response){
	    .ha_head = head.s_len,
	    .ha_len = len,
	    .ha_hot = hot,
	    .ha_site = key.hk_site,
	    .ha_accept = key.hk_accept,
	    .ha_varies = key.hk_varies,
	    .ha_refs = 1,
	    .ha_until = file->fil_checked + PW_FRESH_US,
	    .ha_hash = response_cache_hash_of(hot, key.hk_target),
	    .ha_dev = file->fil_dev,
	    .ha_ino = file->fil_ino,
	    .ha_mtime = file->fil_mtime,
	    .ha_ctime = file->fil_ctime,
	    .ha_target_len = key.hk_target.s_len,
	};
	ha->ha_text = ha->ha_target + key.hk_target.s_len;
	memcpy(ha->ha_target, key.hk_target.s_ptr, key.hk_target.s_len);
	memcpy(ha->ha_text, head.s_ptr, head.s_len);
	return ha;
}

static void
response_cache_insert(struct response_cache *hot, struct cached_response *ha)
{
	hot->hot_used += response_cache_size_of(ha);
	LIST_INSERT_HEAD(
	    &hot->hot_buckets[ha->ha_hash & hot->hot_mask], ha, ha_bucket);
	TAILQ_INSERT_TAIL(&hot->hot_order, ha, ha_order);
}

/* Before anybody goes for it: it may not be in memory. */
static struct cached_response *
response_cache_make(struct response_cache *hot, struct cached_key key,
    struct pw_file *file, struct str head)
{
	struct cached_response *ha =
	    response_cache_new_entry(hot, key, file, head);
	int error;

	if (ha == NULL)
		return NULL;
	error = pw_file_copy(
	    file, 0, ha->ha_text + ha->ha_head, (size_t)file->fil_size);
	if (error == 0)
		return ha;
	if (error == -ESTALE)
		file->fil_stale = true;
	free(ha);
	return NULL;
}

struct cached_response *
response_cache_offer(struct response_cache *hot, struct cached_key key,
    struct pw_file *file, struct str head, unsigned asked, uint64_t now_us,
    time_t now)
{
	size_t size = sizeof(struct cached_response) + key.hk_target.s_len +
		      head.s_len + (size_t)file->fil_size;
	struct cached_response *ha, *victims[VICTIMS];
	int n;

	if (asked < RESPONSE_CACHE_ASKED ||
	    file->fil_size > RESPONSE_CACHE_LARGEST || file->fil_stale ||
	    key.hk_target.s_len >= RESPONSE_CACHE_TARGET ||
	    file->fil_ctime.tv_sec > now - RESPONSE_CACHE_SETTLED)
		return NULL;
	n = response_cache_choose(hot, size, asked, now_us, victims);
	ha = n < 0 ? NULL : response_cache_make(hot, key, file, head);
	if (ha == NULL)
		return NULL;
	while (n > 0)
		response_cache_evict(hot, victims[--n]);
	ha->ha_date = now;
	response_cache_count(&ha->ha_uses, now_us, asked);
	response_cache_insert(hot, ha);
	return ha;
}

void *
response_cache_form(struct cached_response *ha, size_t len, uint64_t now_us)
{
	struct response_cache *hot = ha->ha_hot;
	unsigned uses = response_cache_count(&ha->ha_uses, now_us, 0);
	struct cached_response *victims[VICTIMS];
	int n;

	/* It is none of them. */
	ha->ha_refs++;
	n = response_cache_choose(hot, len, uses, now_us, victims);
	ha->ha_refs--;
	if (n < 0)
		return NULL;
	ha->ha_form = malloc(len);
	if (ha->ha_form == NULL)
		return NULL;
	while (n > 0)
		response_cache_evict(hot, victims[--n]);
	ha->ha_form_len = len;
	hot->hot_used += len;
	return ha->ha_form;
}
