/*
 * cache: see cache.h.
 */
#include <err.h>
#include <stdlib.h>

#include "bench/admission/cache.h"

void *
sim_alloc(size_t n, size_t size)
{
	void *p = calloc(n > 0 ? n : 1, size);

	if (p == NULL)
		err(1, NULL);
	return p;
}

void
cache_init(struct cache *ch, const struct setting *se)
{
	unsigned i;

	ch->ch_catalogue = se->se_catalogue;
	ch->ch_room = se->se_room;
	ch->ch_nodes =
	    sim_alloc(se->se_catalogue->ca_items, sizeof(*ch->ch_nodes));
	for (i = 0; i < CACHE_LISTS; i++)
		ch->ch_lists[i] = (struct list){CACHE_NONE, CACHE_NONE, 0};
}

void
cache_free(struct cache *ch)
{
	free(ch->ch_nodes);
}

void
cache_push(struct cache *ch, unsigned list, uint32_t item)
{
	struct list *li = &ch->ch_lists[list];
	struct node *nd = &ch->ch_nodes[item];

	nd->nd_list = (uint8_t)(list + 1);
	nd->nd_prev = CACHE_NONE;
	nd->nd_next = li->li_head;
	if (li->li_head != CACHE_NONE)
		ch->ch_nodes[li->li_head].nd_prev = item;
	else
		li->li_tail = item;
	li->li_head = item;
	li->li_pages += cache_pages(ch, item);
}

void
cache_remove(struct cache *ch, uint32_t item)
{
	struct node *nd = &ch->ch_nodes[item];
	struct list *li = &ch->ch_lists[nd->nd_list - 1];

	if (nd->nd_prev != CACHE_NONE)
		ch->ch_nodes[nd->nd_prev].nd_next = nd->nd_next;
	else
		li->li_head = nd->nd_next;
	if (nd->nd_next != CACHE_NONE)
		ch->ch_nodes[nd->nd_next].nd_prev = nd->nd_prev;
	else
		li->li_tail = nd->nd_prev;
	li->li_pages -= cache_pages(ch, item);
	nd->nd_list = 0;
}
