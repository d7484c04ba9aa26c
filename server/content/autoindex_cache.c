/*
 * autoindex_cache: see autoindex_cache.h.
 */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/os/seed.h"
#include "lib/util/clock.h"
#include "lib/util/hash.h"
#include "lib/util/timespec.h"

#include "server/content/autoindex_cache.h"

#define BUCKETS	      1024
#define AGED_PER_CALL 16 /* maximum number of expired pages freed per call */

STAILQ_HEAD(waiting, listing);

struct entry {
	LIST_ENTRY(entry) en_hash;
	TAILQ_ENTRY(entry) en_lru; /* link in ls_lru, unless en_making */
	struct autoindex_cache *en_listings;
	/* directory; pl_title is en_title, pl_path is invalid */
	struct place en_place;
	uint64_t en_at;	 /* start of the lifetime, microseconds */
	uint64_t en_age; /* lifetime from en_at, microseconds */
	bool en_making;
	/* true while the page is made only for a client that closed its side */
	bool en_deferred;
	int en_error;
	struct text *en_text;
	struct listing_validator en_validator;

	/*
	 * While en_making is true, the disk thread that makes the page owns en_validator and the
	 * fields from en_task to en_same.  en_waiting lists the requests that wait for the page.
	 */
	struct pw_task en_task;
	const struct place *en_from; /* place of the first request */
	struct buf en_buf;
	bool en_same;
	struct waiting en_waiting;
	atomic_uint en_wanted; /* waiting requests that were not cancelled */

	char en_title[];
};

LIST_HEAD(bucket, entry);

struct autoindex_cache {
	TAILQ_HEAD(, entry) ls_lru;
	size_t ls_bytes;  /* bytes of cached pages */
	size_t ls_alive;  /* bytes of all texts, cached or in flight */
	uint64_t ls_most; /* limit of ls_alive */
	struct seed ls_seed;
	struct bucket ls_buckets[BUCKETS];
};

struct autoindex_cache *
autoindex_cache_create(uint64_t alive)
{
	struct autoindex_cache *ls = calloc(1, sizeof(*ls));

	if (ls == NULL)
		return NULL;
	ls->ls_most =
	    alive < AUTOINDEX_CACHE_ALIVE ? alive : AUTOINDEX_CACHE_ALIVE;
	TAILQ_INIT(&ls->ls_lru);
	seed_draw(&ls->ls_seed);
	return ls;
}

void
autoindex_cache_unref(struct text **txp)
{
	struct text *tx = *txp;

	*txp = NULL;
	if (tx == NULL || --tx->tx_refs > 0)
		return;
	tx->tx_listings->ls_alive -= tx->tx_len;
	free(tx->tx_data);
	free(tx);
}

/* ----------------------------------------------------------------- entries */

static size_t
autoindex_cache_cost(const struct entry *en)
{
	size_t text = en->en_text == NULL ? 0 : en->en_text->tx_len;

	return sizeof(*en) + strlen(en->en_title) + text;
}

static void
autoindex_cache_entry_free(struct entry *en)
{
	LIST_REMOVE(en, en_hash);
	autoindex_cache_unref(&en->en_text);
	free(en);
}

static void
autoindex_cache_forget(struct autoindex_cache *ls, struct entry *en)
{
	ls->ls_bytes -= autoindex_cache_cost(en);
	TAILQ_REMOVE(&ls->ls_lru, en, en_lru);
	autoindex_cache_entry_free(en);
}

static bool
autoindex_cache_too_old(const struct entry *en, uint64_t now_us)
{
	return now_us >= en->en_at + en->en_age;
}

/*
 * Caches a page.  Evicts pages so that AUTOINDEX_CACHE_BYTES suffices.  Also frees up to
 * AGED_PER_CALL expired pages, because they may get no further requests.
 */
static void
autoindex_cache_keep(struct autoindex_cache *ls, struct entry *en)
{
	struct entry *old, *next;
	int aged = 0;

	ls->ls_bytes += autoindex_cache_cost(en);
	for (old = TAILQ_FIRST(&ls->ls_lru);
	     old != NULL && (ls->ls_bytes > AUTOINDEX_CACHE_BYTES ||
				(autoindex_cache_too_old(old, en->en_at) &&
				    aged++ < AGED_PER_CALL));
	     old = next) {
		next = TAILQ_NEXT(old, en_lru);
		autoindex_cache_forget(ls, old);
	}
	TAILQ_INSERT_TAIL(&ls->ls_lru, en, en_lru);
}

bool
autoindex_cache_shrink(struct autoindex_cache *ls, unsigned most)
{
	struct entry *en, *next;

	for (en = TAILQ_FIRST(&ls->ls_lru); en != NULL && most-- > 0;
	     en = next) {
		next = TAILQ_NEXT(en, en_lru);
		autoindex_cache_forget(ls, en);
	}
	return en != NULL;
}

void
autoindex_cache_destroy(struct autoindex_cache **lsp)
{
	struct autoindex_cache *ls = *lsp;

	*lsp = NULL;
	if (ls == NULL)
		return;
	(void)autoindex_cache_shrink(ls, UINT_MAX);
	free(ls);
}

static bool
autoindex_cache_same_page(const struct place *a, const struct place *b)
{
	return a->pl_ino == b->pl_ino && a->pl_dev == b->pl_dev &&
	       a->pl_dotfiles == b->pl_dotfiles &&
	       a->pl_dotnames == b->pl_dotnames &&
	       a->pl_siblings == b->pl_siblings &&
	       a->pl_digests == b->pl_digests && a->pl_header == b->pl_header &&
	       view_same(a->pl_view, b->pl_view) &&
	       timespec_same(&a->pl_mtime, &b->pl_mtime) &&
	       timespec_same(&a->pl_ctime, &b->pl_ctime) &&
	       strcmp(a->pl_title, b->pl_title) == 0;
}

/*
 * Returns the bucket for an inode and a title.  A directory that contains a link to itself has any
 * number of titles, so the hash includes the title.
 */
static struct bucket *
autoindex_cache_bucket(struct autoindex_cache *ls, const struct place *pl)
{
	uint64_t hash = hash_bytes(
	    &ls->ls_seed, pl->pl_ino, pl->pl_title, strlen(pl->pl_title));

	return &ls->ls_buckets[hash % BUCKETS];
}

/* Skips deferred pages, for which another client would wait too long. */
static struct entry *
autoindex_cache_find(struct autoindex_cache *ls, const struct place *pl)
{
	struct entry *en;

	LIST_FOREACH(en, autoindex_cache_bucket(ls, pl), en_hash)
	if (!en->en_deferred && autoindex_cache_same_page(&en->en_place, pl))
		break;
	return en;
}

/*
 * Returns true if the directory changed in this second or in the one before.  Compares whole
 * seconds, because some file systems store only whole seconds.
 */
static bool
autoindex_cache_just_changed(const struct place *pl)
{
	return time(NULL) < pl->pl_ctime.tv_sec + 2;
}

static struct entry *
autoindex_cache_entry_create(
    struct autoindex_cache *ls, const struct place *pl, uint64_t now_us)
{
	size_t len = strlen(pl->pl_title) + 1;
	struct entry *en = calloc(1, sizeof(*en) + len);

	if (en == NULL)
		return NULL;
	memcpy(en->en_title, pl->pl_title, len);
	en->en_place = *pl;
	en->en_place.pl_title = en->en_title;
	en->en_listings = ls;
	en->en_at = now_us;
	en->en_age = autoindex_cache_just_changed(pl) ? AUTOINDEX_CACHE_NEW_US
						      : AUTOINDEX_CACHE_AGE_US;
	STAILQ_INIT(&en->en_waiting);
	LIST_INSERT_HEAD(autoindex_cache_bucket(ls, pl), en, en_hash);
	return en;
}

/* ------------------------------------------------------------------ making */

static struct entry *
autoindex_cache_of_task(struct pw_task *tk)
{
	return (struct entry *)(void *)((char *)tk -
					offsetof(struct entry, en_task));
}

static int
autoindex_cache_make(struct pw_task *tk)
{
	struct entry *en = autoindex_cache_of_task(tk);
	struct buf *b = &en->en_buf;
	char *data;
	int error;

	if (atomic_load(&en->en_wanted) == 0)
		return -ECANCELED;
	error = autoindex_read_whole(
	    en->en_from, b, &en->en_same, &en->en_validator);
	data = error == 0 ? realloc(b->b_data, b->b_len) : NULL;
	if (data != NULL)
		b->b_data = data;
	return error;
}

/*
 * Moves the text of the disk thread from en_buf to en_text.  Fails with -E2BIG if the texts
 * together would exceed ls_most, or with -ENOMEM.
 */
static int
autoindex_cache_take_text(struct entry *en)
{
	struct autoindex_cache *ls = en->en_listings;
	struct text *tx;

	if (ls->ls_alive + en->en_buf.b_len > ls->ls_most)
		return -E2BIG;
	tx = calloc(1, sizeof(*tx));
	if (tx == NULL)
		return -ENOMEM;
	tx->tx_listings = ls;
	tx->tx_refs = 1;
	tx->tx_data = en->en_buf.b_data;
	tx->tx_len = en->en_buf.b_len;
	en->en_buf.b_data = NULL;
	en->en_text = tx;
	ls->ls_alive += tx->tx_len;
	return 0;
}

static void
autoindex_cache_give(const struct entry *en, struct listing *li)
{
	li->li_error = en->en_error;
	li->li_text = en->en_text;
	li->li_validator = en->en_validator;
	if (li->li_text != NULL)
		li->li_text->tx_refs++;
}

/*
 * Returns true if the result may be cached.  Another directory may have replaced the one that was
 * looked up.
 */
static bool
autoindex_cache_worth_keeping(const struct entry *en)
{
	return en->en_error == -EACCES ||
	       (en->en_same && (en->en_error == 0 || en->en_error == -E2BIG));
}

static void
autoindex_cache_made(struct pw_waiter *w)
{
	struct entry *en = autoindex_cache_of_task((struct pw_task *)w);
	struct waiting waiting = STAILQ_HEAD_INITIALIZER(waiting);
	struct listing *li;
	int error = w->wt_error;

	/* A request came after all others were cancelled. */
	if (error == -ECANCELED && atomic_load(&en->en_wanted) > 0) {
		error =
		    pw_task_run(w->wt_loop, en->en_place.pl_dev, &en->en_task);
		if (error == 0)
			return;
	}
	en->en_making = en->en_deferred = false;
	en->en_error = error == 0 ? autoindex_cache_take_text(en) : error;
	free(en->en_buf.b_data);
	en->en_buf = (struct buf){0};
	/* The attempt may have taken seconds, so the lifetime of its error starts now. */
	if (en->en_error == -E2BIG)
		en->en_at = clock_now();
	STAILQ_CONCAT(&waiting, &en->en_waiting);
	STAILQ_FOREACH(li, &waiting, li_link)
	{
		autoindex_cache_give(en, li);
		li->li_entry = NULL;
	}
	if (autoindex_cache_worth_keeping(en))
		autoindex_cache_keep(en->en_listings, en);
	else
		autoindex_cache_entry_free(en);
	while ((li = STAILQ_FIRST(&waiting)) != NULL) {
		STAILQ_REMOVE_HEAD(&waiting, li_link);
		li->li_done(li);
	}
}

static int
autoindex_cache_await(struct entry *en, struct listing *li)
{
	STAILQ_INSERT_TAIL(&en->en_waiting, li, li_link);
	li->li_entry = en;
	atomic_fetch_add(&en->en_wanted, 1);
	return -EINPROGRESS;
}

void
autoindex_cache_leave(struct listing *li)
{
	if (li->li_entry != NULL)
		atomic_fetch_sub(&li->li_entry->en_wanted, 1);
	li->li_entry = NULL;
}

void
autoindex_cache_defer(struct listing *li)
{
	struct entry *en = li->li_entry;

	if (en == NULL || atomic_load(&en->en_wanted) > 1)
		return;
	en->en_deferred = true;
	pw_task_defer(&en->en_task);
}

static int
autoindex_cache_begin(struct autoindex_cache *ls, struct pw_loop *lp,
    struct listing *li, uint64_t now_us, unsigned client)
{
	struct entry *en =
	    autoindex_cache_entry_create(ls, &li->li_place, now_us);
	int error;

	if (en == NULL)
		return -ENOMEM;
	en->en_making = true;
	en->en_from = &li->li_place;
	en->en_task.tk_work = autoindex_cache_make;
	en->en_task.tk_waiter.wt_done = autoindex_cache_made;
	en->en_task.tk_waiter.wt_client = client;
	autoindex_cache_await(en, li); /* before the thread may begin */
	error = pw_task_run(lp, li->li_place.pl_dev, &en->en_task);
	if (error != 0) {
		autoindex_cache_entry_free(en);
		return error;
	}
	return -EINPROGRESS;
}

int
autoindex_cache_get(struct autoindex_cache *ls, struct pw_loop *lp,
    struct listing *li, uint64_t now_us, unsigned client)
{
	struct entry *en = autoindex_cache_find(ls, &li->li_place);

	li->li_error = 0;
	li->li_text = NULL;
	if (en == NULL)
		return autoindex_cache_begin(ls, lp, li, now_us, client);
	if (en->en_making)
		return autoindex_cache_await(en, li);
	if (autoindex_cache_too_old(en, now_us)) {
		autoindex_cache_forget(ls, en);
		return autoindex_cache_begin(ls, lp, li, now_us, client);
	}
	TAILQ_REMOVE(&ls->ls_lru, en, en_lru);
	TAILQ_INSERT_TAIL(&ls->ls_lru, en, en_lru);
	autoindex_cache_give(en, li);
	return 0;
}
