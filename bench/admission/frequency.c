/*
 * frequency: policies that go by an order of all items: GDSF, LFU with aging (Arlitt et al., 2000),
 * W-TinyLFU (Einziger et al., 2017), and Belady's, which knows the future.
 */
#include <stdlib.h>

#include "bench/admission/cache.h"
#include "bench/admission/policies.h"

/* ------------------------------------------------------------------ heap */

/* The least key on top. */
struct ordered {
	struct cache or_cache; /* list 0 counts what is there */
	double *or_keys;       /* of each item */
	uint32_t *or_heap;
	uint32_t *or_places; /* of each item, + 1; 0: not there */
	uint32_t or_n;
	double or_age;
	const uint32_t *or_next;
	uint64_t or_now;
};

static void *
ordered_create(const struct setting *se)
{
	struct ordered *od = sim_alloc(1, sizeof(*od));
	uint32_t n = se->se_catalogue->ca_items;

	cache_init(&od->or_cache, se);
	od->or_keys = sim_alloc(n, sizeof(double));
	od->or_heap = sim_alloc(n, sizeof(uint32_t));
	od->or_places = sim_alloc(n, sizeof(uint32_t));
	od->or_next = se->se_next;
	return od;
}

static void
ordered_destroy(void *p)
{
	struct ordered *od = p;

	cache_free(&od->or_cache);
	free(od->or_keys);
	free(od->or_heap);
	free(od->or_places);
	free(od);
}

static void
put(struct ordered *od, uint32_t i, uint32_t item)
{
	od->or_heap[i] = item;
	od->or_places[item] = i + 1;
}

static void
sift(struct ordered *od, uint32_t i, uint32_t item)
{
	const double *keys = od->or_keys;
	uint32_t up, down;

	for (; i > 0; i = up) {
		up = (i - 1) / 2;
		if (keys[od->or_heap[up]] <= keys[item])
			break;
		put(od, i, od->or_heap[up]);
	}
	for (; (down = 2 * i + 1) < od->or_n; i = down) {
		if (down + 1 < od->or_n &&
		    keys[od->or_heap[down + 1]] < keys[od->or_heap[down]])
			down++;
		if (keys[od->or_heap[down]] >= keys[item])
			break;
		put(od, i, od->or_heap[down]);
	}
	put(od, i, item);
}

/* Takes the least out. */
static uint32_t
pop(struct ordered *od)
{
	uint32_t item = od->or_heap[0], last = od->or_heap[--od->or_n];

	od->or_places[item] = 0;
	if (od->or_n > 0)
		sift(od, 0, last);
	cache_remove(&od->or_cache, item);
	return item;
}

static void
add(struct ordered *od, uint32_t item)
{
	cache_push(&od->or_cache, 0, item);
	sift(od, od->or_n++, item);
}

static bool
fits(const struct ordered *od, uint32_t item)
{
	return od->or_cache.ch_lists[0].li_pages +
		   cache_pages(&od->or_cache, item) <=
	       od->or_cache.ch_room;
}

/* value: of one use, by page. */
static bool
dual_request(struct ordered *od, uint32_t item, double value)
{
	struct node *nd = &od->or_cache.ch_nodes[item];

	if (od->or_places[item] > 0) {
		od->or_keys[item] = od->or_age + value * ++nd->nd_stamp;
		sift(od, od->or_places[item] - 1, item);
		return true;
	}
	if (cache_pages(&od->or_cache, item) > od->or_cache.ch_room)
		return false;
	while (!fits(od, item))
		od->or_age = od->or_keys[pop(od)];
	nd->nd_stamp = 1;
	od->or_keys[item] = od->or_age + value;
	add(od, item);
	return false;
}

static bool
gdsf_request(void *p, uint32_t item)
{
	struct ordered *od = p;

	return dual_request(
	    od, item, 1.0 / (double)cache_pages(&od->or_cache, item));
}

static bool
lfuda_request(void *p, uint32_t item)
{
	return dual_request(p, item, 1.0);
}

/* What is not asked for again never comes in. */
static bool
belady_request(void *p, uint32_t item)
{
	struct ordered *od = p;
	uint32_t next = od->or_next[od->or_now++];
	bool there = od->or_places[item] > 0;

	od->or_keys[item] = -(double)next;
	if (there) {
		sift(od, od->or_places[item] - 1, item);
		return true;
	}
	if (next == UINT32_MAX ||
	    cache_pages(&od->or_cache, item) > od->or_cache.ch_room)
		return false;
	while (!fits(od, item)) {
		if (od->or_keys[od->or_heap[0]] >= od->or_keys[item])
			return false;
		pop(od);
	}
	add(od, item);
	return false;
}

/* --------------------------------------------------------------- TinyLFU */

enum { WINDOW, PROBATION, PROTECTED };

#define WINDOW_SHARE 100
#define COUNT_MOST   15
#define SAMPLE	     10 /* of room */

struct tiny {
	struct cache ti_cache;
	uint64_t ti_asked; /* pages, since counts were halved */
};

static void *
tiny_create(const struct setting *se)
{
	struct tiny *ti = sim_alloc(1, sizeof(*ti));

	cache_init(&ti->ti_cache, se);
	return ti;
}

static void
tiny_destroy(void *p)
{
	struct tiny *ti = p;

	cache_free(&ti->ti_cache);
	free(ti);
}

/* Exact counts, in place of a sketch. */
static void
tiny_count(struct tiny *ti, uint32_t item)
{
	struct cache *ch = &ti->ti_cache;
	uint32_t i;

	if (ch->ch_nodes[item].nd_count < COUNT_MOST)
		ch->ch_nodes[item].nd_count++;
	ti->ti_asked += cache_pages(ch, item);
	if (ti->ti_asked < SAMPLE * ch->ch_room)
		return;
	ti->ti_asked = 0;
	for (i = 0; i < ch->ch_catalogue->ca_items; i++)
		ch->ch_nodes[i].nd_count /= 2;
}

static uint64_t
tiny_main(const struct cache *ch)
{
	return ch->ch_lists[PROBATION].li_pages +
	       ch->ch_lists[PROTECTED].li_pages;
}

static uint32_t
tiny_victim(const struct cache *ch, uint32_t after)
{
	uint32_t item = after == CACHE_NONE ? ch->ch_lists[PROBATION].li_tail
					    : ch->ch_nodes[after].nd_prev;

	if (item == CACHE_NONE &&
	    (after == CACHE_NONE || cache_in(ch, PROBATION, after)))
		item = ch->ch_lists[PROTECTED].li_tail;
	return item;
}

/*
 * Bytes that were asked for, of the newcomer and of all that would go for it: the aggregated victims
 * of Einziger et al. (ACM Transactions on Storage 18, 2022), by bytes.
 */
static bool
tiny_wins(const struct cache *ch, uint32_t item, uint64_t need)
{
	uint64_t worth = (uint64_t)cache_pages(ch, item) *
			 ch->ch_nodes[item].nd_count,
		 lost = 0, pages = 0;
	uint32_t v = CACHE_NONE;

	while (pages < need) {
		v = tiny_victim(ch, v);
		pages += cache_pages(ch, v);
		lost += (uint64_t)cache_pages(ch, v) * ch->ch_nodes[v].nd_count;
		if (lost >= worth)
			return false;
	}
	return true;
}

/* The oldest of the window goes on, or out. */
static void
tiny_settle(struct cache *ch)
{
	uint64_t most = ch->ch_room - ch->ch_room / WINDOW_SHARE, used;
	uint32_t item = ch->ch_lists[WINDOW].li_tail, pages;

	pages = cache_pages(ch, item);
	used = tiny_main(ch);
	if (pages > most || (used + pages > most &&
				!tiny_wins(ch, item, used + pages - most))) {
		cache_remove(ch, item);
		return;
	}
	while (tiny_main(ch) + pages > most)
		cache_remove(ch, tiny_victim(ch, CACHE_NONE));
	cache_move(ch, PROBATION, item);
}

static bool
tiny_hit(struct cache *ch, uint32_t item)
{
	switch (ch->ch_nodes[item].nd_list) {
	case 0:
		return false;
	case WINDOW + 1:
		cache_move(ch, WINDOW, item);
		return true;
	default:
		cache_move(ch, PROTECTED, item);
		while (ch->ch_lists[PROTECTED].li_pages > ch->ch_room / 5 * 4)
			cache_move(
			    ch, PROBATION, ch->ch_lists[PROTECTED].li_tail);
		return true;
	}
}

static bool
tiny_request(void *p, uint32_t item)
{
	struct tiny *ti = p;
	struct cache *ch = &ti->ti_cache;

	tiny_count(ti, item);
	if (tiny_hit(ch, item))
		return true;
	cache_push(ch, WINDOW, item);
	while (ch->ch_lists[WINDOW].li_pages > ch->ch_room / WINDOW_SHARE)
		tiny_settle(ch);
	return false;
}

#define ORDERED(request) ordered_create, request, ordered_destroy, NULL, NULL

const struct policy frequency_policies[] = {
    {"gdsf", "GDSF", ORDERED(gdsf_request), 0, false, false},
    {"lfu-da", "LFU-DA", ORDERED(lfuda_request), 0, false, false},
    {"tinylfu", "W-TinyLFU, by bytes", tiny_create, tiny_request, tiny_destroy,
	NULL, NULL, 0, false, false},
    {"belady", "Belady, which knows the future", ORDERED(belady_request), 0,
	true, false},
    {0},
};
