/*
 * popular: see popular.h.  The counters form a heap with the lowest count at the top.  A table with
 * chains finds the counter of a path by site and hash.  The seed of the hash is secret, so that
 * clients cannot choose paths with equal hashes.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util/counter.h"
#include "server/content/popular.h"

#define NONE UINT32_MAX

struct entry {
	/* path; the count is in po_heap, not in pp_count */
	struct popular_path en_path;
	uint32_t en_place; /* index in the heap */
	uint32_t en_next;  /* next entry of the chain, or NONE */
};

struct place {
	uint32_t pl_count;
	uint32_t pl_entry;
};

struct popular {
	struct seed po_seed;
	uint64_t po_begin;
	uint32_t po_size;
	uint32_t po_mask; /* mask for po_table */
	_Atomic uint64_t po_counted;

	pthread_mutex_t po_lock; /* guards the fields below */
	uint64_t po_window;	 /* number of the current window */
	uint32_t po_used;
	uint32_t *po_table; /* first entry of each chain, or NONE */
	struct place *po_heap;
	struct entry *po_entries;
};

struct popular *
popular_create(unsigned wanted, const struct seed *seed, uint64_t now)
{
	struct popular *po = calloc(1, sizeof(*po));
	uint32_t table = 1;

	if (po == NULL)
		return NULL;
	pthread_mutex_init(&po->po_lock, NULL);
	po->po_seed = *seed;
	po->po_begin = now;
	po->po_size = POPULAR_FACTOR * wanted;
	if (po->po_size < POPULAR_LEAST)
		po->po_size = POPULAR_LEAST;
	while (table < 2 * po->po_size)
		table *= 2;
	po->po_mask = table - 1;
	po->po_table = calloc(table, sizeof(*po->po_table));
	po->po_heap = calloc(po->po_size, sizeof(*po->po_heap));
	po->po_entries = calloc(po->po_size, sizeof(*po->po_entries));
	if (po->po_table == NULL || po->po_heap == NULL ||
	    po->po_entries == NULL) {
		popular_destroy(&po);
		return NULL;
	}
	memset(po->po_table, 0xff, table * sizeof(*po->po_table));
	return po;
}

void
popular_destroy(struct popular **pop)
{
	struct popular *po = *pop;

	if (po == NULL)
		return;
	*pop = NULL;
	pthread_mutex_destroy(&po->po_lock);
	free(po->po_table);
	free(po->po_heap);
	free(po->po_entries);
	free(po);
}

/* ------------------------------------------------------------------- the heap */

static void
popular_put(struct popular *po, uint32_t at, struct place pl)
{
	po->po_heap[at] = pl;
	po->po_entries[pl.pl_entry].en_place = at;
}

/* Moves a counter down the heap after its count has grown. */
static void
popular_sink(struct popular *po, uint32_t at)
{
	struct place pl = po->po_heap[at];
	uint32_t child;

	while ((child = 2 * at + 1) < po->po_used) {
		if (child + 1 < po->po_used && po->po_heap[child + 1].pl_count <
						   po->po_heap[child].pl_count)
			child++;
		if (po->po_heap[child].pl_count >= pl.pl_count)
			break;
		popular_put(po, at, po->po_heap[child]);
		at = child;
	}
	popular_put(po, at, pl);
}

static void
popular_rise(struct popular *po, uint32_t at)
{
	struct place pl = po->po_heap[at];
	uint32_t parent;

	for (; at > 0; at = parent) {
		parent = (at - 1) / 2;
		if (po->po_heap[parent].pl_count <= pl.pl_count)
			break;
		popular_put(po, at, po->po_heap[parent]);
	}
	popular_put(po, at, pl);
}

/*
 * Halves all counts once for each elapsed window.  The order of the counters stays the same.  The
 * caller must hold the lock.
 */
static void
popular_grow_old(struct popular *po, uint64_t now)
{
	uint64_t window = (now - po->po_begin) / POPULAR_WINDOW_US, times;

	/* `now` is the start of a request.  A request counted before may have started later. */
	if (now < po->po_begin || window <= po->po_window)
		return;
	times = window - po->po_window;
	po->po_window = window;
	if (times > 31)
		times = 31;
	for (uint32_t i = 0; i < po->po_used; i++) {
		po->po_heap[i].pl_count >>= times;
		po->po_entries[i].en_path.pp_error >>= times;
	}
}

/* ------------------------------------------------------------------- counting */

static uint32_t *
popular_chain(struct popular *po, uint64_t hash)
{
	return &po->po_table[hash & po->po_mask];
}

static uint32_t
popular_find(struct popular *po, const struct site *site, uint64_t hash)
{
	uint32_t i = *popular_chain(po, hash);

	while (i != NONE && (po->po_entries[i].en_path.pp_hash != hash ||
				po->po_entries[i].en_path.pp_site != site))
		i = po->po_entries[i].en_next;
	return i;
}

static void
popular_unlink_entry(struct popular *po, uint32_t entry)
{
	uint32_t *link =
	    popular_chain(po, po->po_entries[entry].en_path.pp_hash);

	while (*link != entry)
		link = &po->po_entries[*link].en_next;
	*link = po->po_entries[entry].en_next;
}

/*
 * Assigns a path an unused counter, or the counter with the lowest count, which keeps this count.
 */
static uint32_t
popular_take_over(
    struct popular *po, const struct site *site, struct str path, uint64_t hash)
{
	uint32_t i = po->po_heap[0].pl_entry, *head = popular_chain(po, hash);
	struct entry *en;

	if (po->po_used < po->po_size) {
		i = po->po_used++;
		popular_put(po, i, (struct place){0, i});
		popular_rise(po, i);
	} else
		popular_unlink_entry(po, i);
	en = &po->po_entries[i];
	en->en_path.pp_site = site;
	en->en_path.pp_hash = hash;
	en->en_path.pp_error = po->po_heap[en->en_place].pl_count;
	en->en_path.pp_len = (uint32_t)path.s_len;
	memcpy(en->en_path.pp_path, path.s_ptr, path.s_len);
	en->en_next = *head;
	*head = i;
	return i;
}

uint64_t
popular_hash(const struct popular *po, struct str path)
{
	return hash_bytes(&po->po_seed, 0, path.s_ptr, path.s_len);
}

void
popular_asked(struct popular *po, const struct site *site, struct str path,
    uint64_t hash, uint64_t now)
{
	uint32_t i, at;

	if (path.s_len > POPULAR_PATH ||
	    pthread_mutex_trylock(&po->po_lock) != 0)
		return;
	popular_grow_old(po, now);
	i = popular_find(po, site, hash);
	if (i == NONE)
		i = popular_take_over(po, site, path, hash);
	at = po->po_entries[i].en_place;
	if (po->po_heap[at].pl_count < UINT32_MAX) {
		po->po_heap[at].pl_count++;
		popular_sink(po, at);
	}
	pthread_mutex_unlock(&po->po_lock);
	counter_add(&po->po_counted, 1);
}

/* ------------------------------------------------------------------ results */

size_t
popular_size(const struct popular *po)
{
	return po->po_size;
}

uint64_t
popular_counted(const struct popular *po)
{
	return counter_get(&po->po_counted);
}

size_t
popular_copy(struct popular *po, uint64_t now, struct popular_path *to)
{
	size_t n = 0;

	pthread_mutex_lock(&po->po_lock);
	popular_grow_old(po, now);
	for (uint32_t i = 0; i < po->po_used; i++) {
		uint32_t count =
		    po->po_heap[po->po_entries[i].en_place].pl_count;

		if (count == 0)
			continue;
		to[n] = po->po_entries[i].en_path;
		to[n++].pp_count = count;
	}
	pthread_mutex_unlock(&po->po_lock);
	return n;
}

static int
popular_compare_bytes(
    const struct popular_path *a, const struct popular_path *b)
{
	int order = memcmp(a->pp_path, b->pp_path,
	    a->pp_len < b->pp_len ? a->pp_len : b->pp_len);

	return order != 0 ? order
			  : (a->pp_len > b->pp_len) - (a->pp_len < b->pp_len);
}

static int
popular_by_name(const void *one, const void *other)
{
	const struct popular_path *a = one, *b = other;

	if (a->pp_site != b->pp_site)
		return a->pp_site < b->pp_site ? -1 : 1;
	return popular_compare_bytes(a, b);
}

static int
popular_by_count(const void *one, const void *other)
{
	const struct popular_path *a = one, *b = other;
	uint64_t m = a->pp_count - a->pp_error, n = b->pp_count - b->pp_error;

	if (m != n)
		return m > n ? -1 : 1;
	return popular_by_name(a, b);
}

size_t
popular_merge(struct popular_path *list, size_t n)
{
	size_t kept = 0;

	if (n == 0)
		return 0;
	qsort(list, n, sizeof(*list), popular_by_name);
	for (size_t i = 1; i < n; i++) {
		if (popular_by_name(&list[kept], &list[i]) == 0) {
			list[kept].pp_count += list[i].pp_count;
			list[kept].pp_error += list[i].pp_error;
		} else if (++kept != i)
			list[kept] = list[i];
	}
	qsort(list, kept + 1, sizeof(*list), popular_by_count);
	return kept + 1;
}
