/*
 * simple: LRU, LRU behind a filter, SIEVE, S3-FIFO.
 *
 * SIEVE: Zhang et al., NSDI 2024.  S3-FIFO: Yang et al., SOSP 2023; sizes count in both, as in the
 * authors' simulator: the small queue has a tenth of the pages, the ghosts as many as the main one.
 */
#include <math.h>
#include <stdlib.h>

#include "bench/admission/cache.h"
#include "bench/admission/policies.h"

struct simple {
	struct cache sp_cache;
	double sp_parameter;
	uint64_t sp_random;
	uint64_t sp_asked; /* pages, in all */
	uint32_t sp_hand;
};

static void *
simple_create(const struct setting *se)
{
	struct simple *sp = sim_alloc(1, sizeof(*sp));

	cache_init(&sp->sp_cache, se);
	sp->sp_parameter = se->se_parameter;
	sp->sp_random = 1;
	sp->sp_hand = CACHE_NONE;
	return sp;
}

static void
simple_destroy(void *p)
{
	struct simple *sp = p;

	cache_free(&sp->sp_cache);
	free(sp);
}

/* ------------------------------------------------------------------- LRU */

/* True: it was there, and is the youngest now. */
static bool
lru_hit(struct cache *ch, uint32_t item)
{
	if (!cache_in(ch, 0, item))
		return false;
	cache_move(ch, 0, item);
	return true;
}

static void
lru_insert(struct cache *ch, uint32_t item)
{
	if (cache_pages(ch, item) > ch->ch_room)
		return;
	cache_push(ch, 0, item);
	while (ch->ch_lists[0].li_pages > ch->ch_room)
		cache_remove(ch, ch->ch_lists[0].li_tail);
}

static bool
lru_request(void *p, uint32_t item)
{
	struct cache *ch = &((struct simple *)p)->sp_cache;

	if (lru_hit(ch, item))
		return true;
	lru_insert(ch, item);
	return false;
}

/*
 * Admitted at its second miss, if that is not too long after the first: what two Bloom filters
 * in turn do without an error, each for four times the room.
 */
static bool
second_request(void *p, uint32_t item)
{
	struct simple *sp = p;
	struct cache *ch = &sp->sp_cache;
	struct node *nd = &ch->ch_nodes[item];
	uint64_t turn;
	bool seen;

	sp->sp_asked += cache_pages(ch, item);
	if (lru_hit(ch, item))
		return true;
	turn = sp->sp_asked / (4 * ch->ch_room) + 1;
	seen = nd->nd_stamp > 0 && nd->nd_stamp + 1 >= turn;
	nd->nd_stamp = turn;
	if (seen)
		lru_insert(ch, item);
	return false;
}

/* exp(-size / c): AdaptSize (Berger et al., NSDI 2017), c in pages and constant. */
static bool
sized_request(void *p, uint32_t item)
{
	struct simple *sp = p;
	struct cache *ch = &sp->sp_cache;
	double chance;

	if (lru_hit(ch, item))
		return true;
	sp->sp_random =
	    sp->sp_random * 6364136223846793005U + 1442695040888963407U;
	chance = (double)(sp->sp_random >> 11) / (double)(1ULL << 53);
	if (chance < exp(-(double)cache_pages(ch, item) / sp->sp_parameter))
		lru_insert(ch, item);
	return false;
}

/* ----------------------------------------------------------------- SIEVE */

static void
sieve_evict(struct simple *sp)
{
	struct cache *ch = &sp->sp_cache;
	uint32_t at = sp->sp_hand;

	if (at == CACHE_NONE)
		at = ch->ch_lists[0].li_tail;
	while (ch->ch_nodes[at].nd_flags != 0) {
		ch->ch_nodes[at].nd_flags = 0;
		at = ch->ch_nodes[at].nd_prev;
		if (at == CACHE_NONE)
			at = ch->ch_lists[0].li_tail;
	}
	sp->sp_hand = ch->ch_nodes[at].nd_prev;
	cache_remove(ch, at);
}

static bool
sieve_request(void *p, uint32_t item)
{
	struct simple *sp = p;
	struct cache *ch = &sp->sp_cache;
	uint32_t pages = cache_pages(ch, item);

	if (cache_in(ch, 0, item)) {
		ch->ch_nodes[item].nd_flags = 1;
		return true;
	}
	if (pages > ch->ch_room)
		return false;
	while (ch->ch_lists[0].li_pages + pages > ch->ch_room)
		sieve_evict(sp);
	ch->ch_nodes[item].nd_flags = 0;
	cache_push(ch, 0, item);
	return false;
}

/* --------------------------------------------------------------- S3-FIFO */

enum { SMALL, MAIN, GHOST };

static void
ghost_add(struct cache *ch, uint32_t item)
{
	uint64_t most = ch->ch_room - ch->ch_room / 10;

	cache_move(ch, GHOST, item);
	while (ch->ch_lists[GHOST].li_pages > most)
		cache_remove(ch, ch->ch_lists[GHOST].li_tail);
}

static void
s3_evict(struct cache *ch)
{
	uint32_t item = ch->ch_lists[SMALL].li_tail;

	if (item != CACHE_NONE &&
	    (ch->ch_lists[SMALL].li_pages >= ch->ch_room / 10 ||
		ch->ch_lists[MAIN].li_pages == 0)) {
		if (ch->ch_nodes[item].nd_count > 1) {
			ch->ch_nodes[item].nd_count = 0;
			cache_move(ch, MAIN, item);
		} else
			ghost_add(ch, item);
		return;
	}
	item = ch->ch_lists[MAIN].li_tail;
	if (ch->ch_nodes[item].nd_count > 0) {
		ch->ch_nodes[item].nd_count--;
		cache_move(ch, MAIN, item);
	} else
		cache_remove(ch, item);
}

static bool
s3_request(void *p, uint32_t item)
{
	struct cache *ch = &((struct simple *)p)->sp_cache;
	struct node *nd = &ch->ch_nodes[item];
	uint32_t pages = cache_pages(ch, item);
	bool ghost = cache_in(ch, GHOST, item);

	if (nd->nd_list != 0 && !ghost) {
		if (nd->nd_count < 3)
			nd->nd_count++;
		return true;
	}
	if (pages > ch->ch_room)
		return false;
	if (ghost)
		cache_remove(ch, item);
	while (
	    ch->ch_lists[SMALL].li_pages + ch->ch_lists[MAIN].li_pages + pages >
	    ch->ch_room)
		s3_evict(ch);
	nd->nd_count = 0;
	cache_push(ch, ghost ? MAIN : SMALL, item);
	return false;
}

#define SIMPLE(request) simple_create, request, simple_destroy, NULL, NULL
#define SIZED(c)                                                        \
	{                                                               \
		"size-" #c, "LRU, admitted with exp(-size/" #c " KiB)", \
		    SIMPLE(sized_request), (c) / 4.0, false, false      \
	}

const struct policy simple_policies[] = {
    {"lru", "LRU", SIMPLE(lru_request), 0, false, false},
    {"lru-second", "LRU, admitted at the second request",
	SIMPLE(second_request), 0, false, false},
    SIZED(64),
    SIZED(512),
    SIZED(4096),
    SIZED(32768),
    SIZED(262144),
    {"sieve", "SIEVE", SIMPLE(sieve_request), 0, false, false},
    {"s3-fifo", "S3-FIFO", SIMPLE(s3_request), 0, false, false},
    {0},
};
