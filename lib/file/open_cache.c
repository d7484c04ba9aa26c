/*
 * open_cache: a loop's cache of open files, by root and path.  Opens a file at once if
 * that does not wait.  Otherwise a disk thread opens the file, and all opens of its
 * path wait for that thread.  The negative cache remembers paths that the disk thread
 * did not find.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "lib/disk/completion.h"
#include "lib/disk/pool.h"
#include "lib/file/file.h"
#include "lib/file/negative_cache.h"
#include "lib/file/slow_clients.h"
#include "lib/os/seed.h"
#include "lib/util/cacheline.h"
#include "lib/util/clock.h"
#include "lib/util/hash.h"

#define CACHE_IDLE_US 10000000 /* time until an unused file is closed, us */
#define CACHE_SIZE    1024
#define AGE_BATCH     64 /* maximum entries closed per tick */

struct entry {
	LIST_ENTRY(entry) en_hash;
	TAILQ_ENTRY(entry) en_lru; /* in fc_lru, least recently used first */
	struct pw_loop *en_loop;
	struct pw_root *en_root; /* referenced root of en_path */
	struct pw_file *en_file; /* NULL until the first lookup ends */
	uint64_t en_used;
	enum os_resolve en_resolve; /* mode of a disk thread's lookup */
	bool en_attribute;	    /* true if lookups read the attribute */
	/* the pending lookup, or NULL; while it is pending, the entry is not on fc_lru */
	struct opening *en_opening;
	struct awaited en_opens;
	char en_path[];
};

LIST_HEAD(bucket, entry);

struct file_cache {
	struct negative_cache *fc_missing;
	struct seed fc_seed;
	TAILQ_HEAD(, entry) fc_lru;
	unsigned fc_count;
	unsigned fc_size;
	uint64_t fc_mask; /* number of buckets, a power of two, less 1 */
	struct slow_clients fc_slow;
	struct bucket fc_buckets[];
};

/*
 * A lookup by a disk thread, which owns this struct until the completion.  The entry and its path stay
 * valid while en_opening is set.
 */
struct opening {
	struct pw_waiter og_waiter;
	struct pw_loop *og_loop;
	struct entry *og_entry;
	bool og_attribute;  /* true if the lookup reads the attribute */
	bool og_had;	    /* true if og_old is set */
	unsigned og_client; /* wt_client of the first open */
	struct pw_device *og_device;
	struct job *og_job;    /* the job until it begins (pool_join) */
	struct pw_file og_old; /* copy of *en_file; owns nothing */
	uint64_t og_began;
	struct found og_found;
};

struct open_job {
	struct job oj_job;
	struct opening *oj_opening;
};

struct file_cache *
file_cache_create(unsigned size)
{
	struct file_cache *fc;
	uint64_t nbuckets = 16;

	if (size == 0)
		size = CACHE_SIZE;
	while (nbuckets < size)
		nbuckets *= 2;
	fc = cacheline_calloc(
	    sizeof(*fc) + nbuckets * sizeof(fc->fc_buckets[0]));
	if (fc == NULL)
		return NULL;
	fc->fc_missing = negative_create();
	if (fc->fc_missing == NULL) {
		free(fc);
		return NULL;
	}
	seed_draw(&fc->fc_seed);
	TAILQ_INIT(&fc->fc_lru);
	fc->fc_size = size;
	fc->fc_mask = nbuckets - 1;
	return fc;
}

static struct bucket *
open_cache_bucket(
    struct file_cache *fc, const struct pw_root *rt, const char *path)
{
	uint64_t hash =
	    hash_bytes(&fc->fc_seed, (uintptr_t)rt, path, strlen(path));

	return &fc->fc_buckets[hash & fc->fc_mask];
}

static struct entry *
open_cache_entry_find(
    struct file_cache *fc, const struct pw_root *rt, const char *path)
{
	struct entry *en;

	LIST_FOREACH(en, open_cache_bucket(fc, rt, path), en_hash)
	if (en->en_root == rt && strcmp(en->en_path, path) == 0)
		break;
	return en;
}

static void
open_cache_entry_list(struct file_cache *fc, struct entry *en)
{
	TAILQ_INSERT_TAIL(&fc->fc_lru, en, en_lru);
	fc->fc_count++;
}

static void
open_cache_entry_unlist(struct file_cache *fc, struct entry *en)
{
	TAILQ_REMOVE(&fc->fc_lru, en, en_lru);
	fc->fc_count--;
}

/* Removes and frees an entry that is on fc_lru. */
static void
open_cache_entry_remove(struct file_cache *fc, struct entry *en)
{
	LIST_REMOVE(en, en_hash);
	open_cache_entry_unlist(fc, en);
	pw_file_unref(&en->en_file);
	file_root_unref(en->en_loop, &en->en_root);
	free(en);
}

static void
open_cache_make_room(struct file_cache *fc)
{
	struct entry *en, *next;

	for (en = TAILQ_FIRST(&fc->fc_lru);
	     en != NULL && fc->fc_count >= fc->fc_size; en = next) {
		next = TAILQ_NEXT(en, en_lru);
		open_cache_entry_remove(fc, en);
	}
}

bool
file_cache_spare(struct file_cache *fc)
{
	struct entry *en;

	TAILQ_FOREACH(en, &fc->fc_lru, en_lru)
	if (en->en_file != NULL && file_priv(en->en_file)->fp_refs == 1 &&
	    en->en_file->fil_fd != -1) {
		open_cache_entry_remove(fc, en);
		return true;
	}
	return false;
}

static struct entry *
open_cache_entry_add(struct pw_loop *lp, struct pw_root *rt, const char *path)
{
	struct file_cache *fc = lp->lp_files;
	size_t len = strlen(path) + 1;
	struct entry *en;

	open_cache_make_room(fc);
	en = calloc(1, sizeof(*en) + len);
	if (en == NULL)
		return NULL;
	en->en_loop = lp;
	en->en_root = rt;
	file_root_ref(rt);
	memcpy(en->en_path, path, len);
	TAILQ_INIT(&en->en_opens.aw_opens);
	LIST_INSERT_HEAD(open_cache_bucket(fc, rt, path), en, en_hash);
	en->en_resolve = OS_ONE_MOUNT;
	open_cache_entry_list(fc, en);
	return en;
}

static void
open_cache_entry_used(struct file_cache *fc, struct entry *en, uint64_t now_us)
{
	if (now_us > en->en_used)
		en->en_used = now_us;
	if (en->en_opening)
		return;
	TAILQ_REMOVE(&fc->fc_lru, en, en_lru);
	TAILQ_INSERT_TAIL(&fc->fc_lru, en, en_lru);
}

void
file_cache_age(struct file_cache *fc, uint64_t now_us)
{
	struct entry *en, *next;
	int n = 0;

	negative_age(fc->fc_missing, now_us);
	for (en = TAILQ_FIRST(&fc->fc_lru); en != NULL; en = next) {
		next = TAILQ_NEXT(en, en_lru);
		if (now_us < en->en_used + CACHE_IDLE_US || n++ == AGE_BATCH)
			return;
		open_cache_entry_remove(fc, en);
	}
}

void
file_cache_destroy(struct file_cache **fcp)
{
	struct file_cache *fc = *fcp;
	struct entry *en, *next;

	if (fc == NULL)
		return;
	*fcp = NULL;
	for (en = TAILQ_FIRST(&fc->fc_lru); en != NULL; en = next) {
		next = TAILQ_NEXT(en, en_lru);
		open_cache_entry_remove(fc, en);
	}
	negative_destroy(&fc->fc_missing);
	free(fc);
}

/* Stores the result of a lookup in the entry.  Returns 0 or -errno. */
static int
open_cache_entry_install(
    struct pw_loop *lp, struct entry *en, struct found *fnd, uint64_t now_us)
{
	struct pw_file *file = en->en_file;
	int error;

	if (file == NULL || !fnd->fnd_same) {
		error = file_create(lp, fnd, &file);
		if (error != 0)
			return error;
		pw_file_unref(&en->en_file);
		en->en_file = file;
	}
	file->fil_checked = now_us;
	return 0;
}

/* Returns true if the file's attribute was read, or is not needed. */
static bool
open_cache_entry_is_whole(const struct entry *en)
{
	return !en->en_attribute || file_priv(en->en_file)->fp_attributed ||
	       en->en_file->fil_fd == -1;
}

static const char *
open_cache_attribute_of(const struct pw_loop *lp, bool wanted)
{
	return wanted ? lp->lp_conf.plc_attribute : NULL;
}

static int
open_cache_open_run(struct job *job)
{
	struct opening *og = ((struct open_job *)job)->oj_opening;
	const struct entry *en = og->og_entry;
	int error;

	og->og_began = clock_now();
	error = file_find(en->en_root, en->en_path, og->og_entry->en_resolve,
	    og->og_had ? &og->og_old : NULL,
	    open_cache_attribute_of(og->og_loop, og->og_attribute),
	    &og->og_found);
	/* Determines the file system on this disk thread, since that may wait. */
	if (error == 0 && og->og_found.fnd_fd != -1)
		device_ask(pool_device(og->og_loop->lp_pool,
			       og->og_found.fnd_stat.st_dev, POOL_FILES),
		    og->og_found.fnd_fd);
	return error;
}

/* Completes all opens that wait for the entry.  May free the entry. */
static void
open_cache_opening_deliver(struct pw_loop *lp, struct entry *en, int error)
{
	struct awaited aw = {.aw_opens = TAILQ_HEAD_INITIALIZER(aw.aw_opens)};
	struct opens *opens = &aw.aw_opens;
	struct pw_open *op;

	en->en_opening = NULL;
	en->en_opens.aw_waiter = NULL;
	open_cache_entry_list(lp->lp_files, en);
	TAILQ_CONCAT(opens, &en->en_opens.aw_opens, op_link);
	TAILQ_FOREACH(op, opens, op_link)
	{
		op->op_others = &aw;
		op->op_file = error == 0 ? en->en_file : NULL;
		if (error == 0)
			pw_file_ref(en->en_file);
	}
	/* A cancelled lookup tells nothing about a file that was found before. */
	if (error != 0 && (error != -ECANCELED || en->en_file == NULL))
		open_cache_entry_remove(lp->lp_files, en);
	while ((op = TAILQ_FIRST(opens)) != NULL) {
		TAILQ_REMOVE(opens, op, op_link);
		op->op_others = NULL;
		op->op_waiter.wt_error = error;
		op->op_waiter.wt_done(&op->op_waiter);
	}
}

/*
 * Submits the lookup to the pool.  Paths on other mounts below the root have a separate queue: if such
 * a mount hangs, the root's own files can still be opened.
 */
static int
open_cache_opening_submit(struct opening *og)
{
	struct pw_loop *lp = og->og_loop;
	enum pool_queue kind =
	    og->og_entry->en_resolve == OS_ANY_MOUNT ? POOL_MOUNTS : POOL_FILES;
	struct open_job *oj = calloc(1, sizeof(*oj));
	int error;

	if (oj == NULL)
		return -ENOMEM;
	oj->oj_job.job_run = open_cache_open_run;
	oj->oj_opening = og;
	oj->oj_job.job_ref = &og->og_job;
	og->og_job = &oj->oj_job;
	og->og_device =
	    pool_device(lp->lp_pool, og->og_entry->en_root->rt_dev, kind);
	og->og_waiter.wt_client = og->og_client;
	oj->oj_job.job_kind =
	    og->og_entry->en_file != NULL ? JOB_AGAIN : JOB_OPEN;
	error = pool_submit(
	    og->og_device, &oj->oj_job, ADMIT_NEW, lp, &og->og_waiter);
	if (error != 0) {
		og->og_job = NULL;
		free(oj);
	}
	return error;
}

/*
 * Looks the path up again, since another open requested the attribute meanwhile.  Returns false if the
 * pool refuses the job.
 */
static bool
open_cache_again_with_attribute(struct opening *og)
{
	struct found first = og->og_found;
	struct pw_file *file;

	og->og_attribute = true;
	og->og_had = false;
	if (open_cache_opening_submit(og) != 0)
		return false;
	/* pw_file_unref closes the first result, and uses the pool if close(2) may wait. */
	if (file_create(og->og_loop, &first, &file) == 0)
		pw_file_unref(&file);
	return true;
}

static void
open_cache_opening_done(struct pw_waiter *w)
{
	struct opening *og = (struct opening *)w;
	struct pw_open *op = TAILQ_FIRST(&og->og_entry->en_opens.aw_opens);
	int error = w->wt_error;

	/* An open came after all others were cancelled. */
	if (error == -ECANCELED && op != NULL) {
		og->og_client = op->op_waiter.wt_client;
		error = open_cache_opening_submit(og);
		if (error == 0)
			return;
	}
	if (error == -EXDEV && og->og_entry->en_resolve == OS_ONE_MOUNT) {
		og->og_entry->en_resolve = OS_ANY_MOUNT;
		error = open_cache_opening_submit(og);
		if (error == 0)
			return;
	}
	if (error == 0 && og->og_entry->en_attribute && !og->og_attribute &&
	    open_cache_again_with_attribute(og))
		return;
	if (error == 0)
		error = open_cache_entry_install(
		    og->og_loop, og->og_entry, &og->og_found, og->og_began);
	else
		negative_add(og->og_loop->lp_files->fc_missing,
		    og->og_entry->en_root, og->og_entry->en_path, error,
		    clock_now());
	open_cache_opening_deliver(og->og_loop, og->og_entry, error);
	free(og);
}

static int
open_cache_opening_start(struct pw_loop *lp, struct entry *en, unsigned client)
{
	struct opening *og = calloc(1, sizeof(*og));
	int error;

	if (og == NULL)
		return -ENOMEM;
	og->og_waiter.wt_done = open_cache_opening_done;
	og->og_loop = lp;
	og->og_entry = en;
	og->og_client = client;
	og->og_attribute = en->en_attribute;
	og->og_had = en->en_file != NULL && open_cache_entry_is_whole(en);
	if (og->og_had)
		og->og_old = *en->en_file;
	error = open_cache_opening_submit(og);
	if (error != 0) {
		free(og);
		return error;
	}
	en->en_opening = og;
	en->en_opens.aw_waiter = &og->og_waiter;
	open_cache_entry_unlist(lp->lp_files, en);
	return 0;
}

static int
open_cache_open_wait(struct entry *en, struct pw_open *op)
{
	TAILQ_INSERT_TAIL(&en->en_opens.aw_opens, op, op_link);
	op->op_others = &en->en_opens;
	return -EINPROGRESS;
}

/* Waits for the pending lookup, which then also belongs to this open's client. */
static int
open_cache_open_join(struct entry *en, struct pw_open *op)
{
	pool_join(en->en_opening->og_device, &en->en_opening->og_job,
	    &en->en_opening->og_waiter, op->op_waiter.wt_client);
	return open_cache_open_wait(en, op);
}

/* Also releases op_file: an open whose completion is being delivered has a reference already. */
int
pw_open_cancel(struct pw_open *op)
{
	struct awaited *aw = op->op_others;

	if (aw == NULL)
		return -EINVAL;
	TAILQ_REMOVE(&aw->aw_opens, op, op_link);
	op->op_others = NULL;
	if (TAILQ_EMPTY(&aw->aw_opens) && aw->aw_waiter != NULL)
		pool_leave(aw->aw_waiter);
	pw_file_unref(&op->op_file);
	return 0;
}

void
pw_open_defer(struct pw_open *op)
{
	struct awaited *aw = op->op_others;

	if (aw != NULL && aw->aw_waiter != NULL &&
	    TAILQ_FIRST(&aw->aw_opens) == op && TAILQ_NEXT(op, op_link) == NULL)
		pool_defer(aw->aw_waiter);
}

static int
open_cache_open_give(struct entry *en, struct pw_open *op)
{
	pw_file_ref(en->en_file);
	op->op_file = en->en_file;
	return 0;
}

/*
 * Opens the path without waiting.  Fails with -EAGAIN or -EXDEV if a disk thread must open the path, or with
 * another -errno.  Sets *enp if the path had no entry.
 */
static int
open_cache_open_now(struct pw_loop *lp, struct pw_root *rt, const char *path,
    uint64_t now_us, const struct pw_open *op, struct entry **enp)
{
	bool attribute = op->op_attribute;
	struct entry *en = *enp;
	const struct pw_file *old = NULL;
	unsigned client = pool_client(&op->op_waiter);
	struct slow_lookup slo;
	struct found fnd;
	int error;

	if (!rt->rt_cached || !slow_clients_begin(&lp->lp_files->fc_slow,
				  client, clock_now(), &slo))
		return -EAGAIN;
	if (en != NULL)
		attribute = en->en_attribute;
	if (en != NULL && open_cache_entry_is_whole(en))
		old = en->en_file;
	error = file_find(rt, path, OS_CACHED, old,
	    open_cache_attribute_of(lp, attribute), &fnd);
	slow_clients_end(&lp->lp_files->fc_slow, &slo);
	if (error != 0)
		return error;
	if (en == NULL) {
		en = open_cache_entry_add(lp, rt, path);
		if (en == NULL) {
			file_found_drop(&fnd);
			return -ENOMEM;
		}
		en->en_used = now_us;
		en->en_attribute = attribute;
		*enp = en;
	}
	return open_cache_entry_install(lp, en, &fnd, now_us);
}

/* Has the pool open the path, or returns the error that the negative cache has.  Returns 0 or -errno. */
static int
open_cache_open_later(struct pw_loop *lp, struct pw_root *rt, const char *path,
    uint64_t now_us, const struct pw_open *op, struct entry **enp)
{
	int error = 0;

	if (*enp == NULL)
		error =
		    negative_find(lp->lp_files->fc_missing, rt, path, now_us);
	if (error != 0)
		return error;
	if (*enp == NULL)
		*enp = open_cache_entry_add(lp, rt, path);
	if (*enp == NULL)
		return -ENOMEM;
	(*enp)->en_used = now_us;
	(*enp)->en_attribute |= op->op_attribute;
	return open_cache_opening_start(lp, *enp, op->op_waiter.wt_client);
}

int
pw_file_open(struct pw_loop *lp, struct pw_root *rt, const char *path,
    uint64_t now_us, struct pw_open *op)
{
	struct entry *en = open_cache_entry_find(lp->lp_files, rt, path);
	int error;

	op->op_file = NULL;
	op->op_others = NULL;
	if (op->op_waiter.wt_done == NULL)
		return -EINVAL;
	if (en != NULL) {
		open_cache_entry_used(lp->lp_files, en, now_us);
		if (op->op_attribute)
			en->en_attribute = true;
		if (en->en_opening)
			return open_cache_open_join(en, op);
		if (now_us < en->en_file->fil_checked + PW_FRESH_US &&
		    open_cache_entry_is_whole(en) && file_is_fresh(en->en_file))
			return open_cache_open_give(en, op);
	}
	error = open_cache_open_now(lp, rt, path, now_us, op, &en);
	if (error == 0)
		return open_cache_open_give(en, op);
	if (error == -EAGAIN || error == -EXDEV) {
		error = open_cache_open_later(lp, rt, path, now_us, op, &en);
		if (error == 0)
			return open_cache_open_wait(en, op);
	}
	if (en != NULL)
		open_cache_entry_remove(lp->lp_files, en);
	return error;
}
