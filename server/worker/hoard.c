/*
 * hoard: see hoard.h.
 */
#include "server/worker/hoard.h"

#define SLOTS ((size_t)2 * HOARD_MAX)

/* An address: found by its first connection in the list. */
struct slot {
	uint16_t sl_count; /* 0: the slot is free */
	uint16_t sl_first;
};

static struct slot *
slot_of(const struct seed *seed, struct slot *slots, const struct hoarded *list,
    size_t i)
{
	uint64_t key = list[i].ho_key;
	size_t at = hash_bytes(seed, 0, &key, sizeof(key)) % SLOTS;

	while (slots[at].sl_count > 0 && list[slots[at].sl_first].ho_key != key)
		at = (at + 1) % SLOTS;
	return &slots[at];
}

/* Fills of[i] with the slot of each; returns the greatest count. */
static unsigned
count(const struct seed *seed, const struct hoarded *list, size_t n,
    struct slot *slots, struct slot **of)
{
	unsigned most = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		of[i] = slot_of(seed, slots, list, i);
		if (of[i]->sl_count++ == 0)
			of[i]->sl_first = (uint16_t)i;
		if (of[i]->sl_count > most)
			most = of[i]->sl_count;
	}
	return most;
}

size_t
hoard_pick(const struct seed *seed, const struct hoarded *list, size_t n,
    size_t ripe, unsigned *most)
{
	struct slot slots[SLOTS] = {0}, *of[HOARD_MAX];
	size_t i, pick = HOARD_NONE;

	*most = count(seed, list, n, slots, of);
	for (i = 0; i < ripe && i < n; i++) {
		if (of[i]->sl_count < *most || list[i].ho_spared)
			continue;
		if (!list[i].ho_begun)
			return i;
		if (pick == HOARD_NONE)
			pick = i;
	}
	return pick;
}
