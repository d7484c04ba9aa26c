/*
 * negative_cache: see negative_cache.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/file/file.h"
#include "lib/file/negative_cache.h"
#include "lib/os/seed.h"
#include "lib/util/hash.h"

#define BUCKETS	  1024
#define AGE_BATCH 256 /* maximum paths removed per tick */

/*
 * A path and the error of its lookup.  Refers to the root by its inode and rule for links, without a
 * reference, so that a root that was opened again still matches.
 */
struct path {
	LIST_ENTRY(path) pa_hash;
	TAILQ_ENTRY(path) pa_age; /* list of all paths, oldest first */
	dev_t pa_dev;
	ino_t pa_ino;
	int pa_links;
	uint64_t pa_at;
	int pa_error;
	char pa_path[];
};

LIST_HEAD(chain, path);

struct negative_cache {
	TAILQ_HEAD(, path) ms_age;
	size_t ms_bytes;
	struct seed ms_seed;
	struct chain ms_chains[BUCKETS];
};

struct negative_cache *
negative_create(void)
{
	struct negative_cache *ms = calloc(1, sizeof(*ms));

	if (ms == NULL)
		return NULL;
	TAILQ_INIT(&ms->ms_age);
	seed_draw(&ms->ms_seed);
	return ms;
}

static size_t
negative_cache_bytes(const struct path *pa)
{
	return sizeof(*pa) + strlen(pa->pa_path) + 1;
}

static void
negative_cache_forget(struct negative_cache *ms, struct path *pa)
{
	ms->ms_bytes -= negative_cache_bytes(pa);
	LIST_REMOVE(pa, pa_hash);
	TAILQ_REMOVE(&ms->ms_age, pa, pa_age);
	free(pa);
}

void
negative_destroy(struct negative_cache **msp)
{
	struct negative_cache *ms = *msp;
	struct path *pa, *next;

	if (ms == NULL)
		return;
	*msp = NULL;
	for (pa = TAILQ_FIRST(&ms->ms_age); pa != NULL; pa = next) {
		next = TAILQ_NEXT(pa, pa_age);
		negative_cache_forget(ms, pa);
	}
	free(ms);
}

static struct chain *
negative_cache_chain(
    struct negative_cache *ms, const struct pw_root *rt, const char *path)
{
	uint64_t hash =
	    hash_bytes(&ms->ms_seed, rt->rt_ino, path, strlen(path));

	return &ms->ms_chains[hash % BUCKETS];
}

static bool
negative_cache_is_fresh(const struct path *pa, uint64_t now_us)
{
	return now_us < pa->pa_at + NEGATIVE_FRESH_US;
}

static struct path *
negative_cache_find(
    struct negative_cache *ms, const struct pw_root *rt, const char *path)
{
	struct path *pa;

	LIST_FOREACH(pa, negative_cache_chain(ms, rt, path), pa_hash)
	if (pa->pa_ino == rt->rt_ino && pa->pa_dev == rt->rt_dev &&
	    pa->pa_links == rt->rt_links && strcmp(pa->pa_path, path) == 0)
		break;
	return pa;
}

static void
negative_cache_make_room(struct negative_cache *ms, size_t size)
{
	struct path *pa, *next;

	for (pa = TAILQ_FIRST(&ms->ms_age);
	     pa != NULL && ms->ms_bytes + size > NEGATIVE_BYTES; pa = next) {
		next = TAILQ_NEXT(pa, pa_age);
		negative_cache_forget(ms, pa);
	}
}

static bool
negative_cache_is_lasting(int error)
{
	switch (error) {
	case -ENOENT:
	case -ENOTDIR:
	case -EACCES:
	case -EPERM:
	case -ELOOP:
	case -EXDEV:
	case -ENAMETOOLONG:
		return true;
	default:
		return false;
	}
}

void
negative_add(struct negative_cache *ms, const struct pw_root *rt,
    const char *path, int error, uint64_t now_us)
{
	size_t len = strlen(path) + 1, size = sizeof(struct path) + len;
	struct path *pa = negative_cache_find(ms, rt, path);

	if (pa != NULL)
		negative_cache_forget(ms, pa);
	if (!negative_cache_is_lasting(error) || size > NEGATIVE_BYTES)
		return;
	negative_cache_make_room(ms, size);
	pa = malloc(size);
	if (pa == NULL)
		return;
	pa->pa_dev = rt->rt_dev;
	pa->pa_ino = rt->rt_ino;
	pa->pa_links = rt->rt_links;
	pa->pa_at = now_us;
	pa->pa_error = error;
	memcpy(pa->pa_path, path, len);
	LIST_INSERT_HEAD(negative_cache_chain(ms, rt, path), pa, pa_hash);
	TAILQ_INSERT_TAIL(&ms->ms_age, pa, pa_age);
	ms->ms_bytes += size;
}

int
negative_find(struct negative_cache *ms, const struct pw_root *rt,
    const char *path, uint64_t now_us)
{
	const struct path *pa = negative_cache_find(ms, rt, path);

	return pa != NULL && negative_cache_is_fresh(pa, now_us) ? pa->pa_error
								 : 0;
}

void
negative_age(struct negative_cache *ms, uint64_t now_us)
{
	struct path *pa, *next;
	int n = 0;

	for (pa = TAILQ_FIRST(&ms->ms_age); pa != NULL; pa = next) {
		next = TAILQ_NEXT(pa, pa_age);
		if (negative_cache_is_fresh(pa, now_us) || n++ == AGE_BATCH)
			return;
		negative_cache_forget(ms, pa);
	}
}
