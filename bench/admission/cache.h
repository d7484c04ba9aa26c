/*
 * cache: items in lists, most of what a policy is made of.  An item is in one list of a cache or
 * in none; the lists count pages.
 */
#ifndef BENCH_ADMISSION_CACHE_H
#define BENCH_ADMISSION_CACHE_H

#include "bench/admission/sim.h"

#define CACHE_LISTS 4
#define CACHE_NONE  UINT32_MAX

struct node {
	uint32_t nd_next, nd_prev;
	uint8_t nd_list; /* its number + 1; 0: none */
	uint8_t nd_count;
	uint8_t nd_flags;
	uint64_t nd_stamp;
};

struct list {
	uint32_t li_head, li_tail;
	uint64_t li_pages;
};

struct cache {
	const struct catalogue *ch_catalogue;
	uint64_t ch_room;
	struct node *ch_nodes;
	struct list ch_lists[CACHE_LISTS];
};

void cache_init(struct cache *, const struct setting *);
void cache_free(struct cache *);
void cache_push(struct cache *, unsigned list, uint32_t item); /* at the head */
void cache_remove(struct cache *, uint32_t item);

static inline uint32_t
cache_pages(const struct cache *ch, uint32_t item)
{
	return ch->ch_catalogue->ca_pages[item];
}

static inline bool
cache_in(const struct cache *ch, unsigned list, uint32_t item)
{
	return ch->ch_nodes[item].nd_list == list + 1;
}

static inline void
cache_move(struct cache *ch, unsigned list, uint32_t item)
{
	cache_remove(ch, item);
	cache_push(ch, list, item);
}

#endif
