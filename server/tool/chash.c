/*
 * chash: see chash.h.
 */
#include "server/tool/chash.h"

#include <stdlib.h>

#define SCALE	 16   /* points per unit of weight */
#define ID_RANGE 4096 /* SCALE * CHASH_WEIGHT: points per id */

struct point {
	uint32_t pt_key;
	uint32_t pt_node; /* index of the node */
};

struct chash {
	size_t ch_count;
	struct point ch_points[];
};

static uint32_t
chash_sdbm(const char *text, size_t len)
{
	uint32_t hash = 0;

	for (size_t i = 0; i < len; i++)
		hash =
		    (unsigned char)text[i] + (hash << 6) + (hash << 16) - hash;
	return hash;
}

/*
 * Mixes the bits as Bob Jenkins' function does (http://burtleburtle.net/bob/hash/integer.html);
 * HAProxy added the last step.
 */
static uint32_t
chash_avalanche(uint32_t a)
{
	a = a + 0x7ed55d16 + (a << 12);
	a = a ^ 0xc761c23c ^ a >> 19;
	a = a + 0x165667b1 + (a << 5);
	a = (a + 0xd3a2646c) ^ a << 9;
	a = a + 0xfd7046c5 + (a << 3);
	a = a ^ 0xb55a4f09 ^ a >> 16;
	return a * 3221225473U;
}

static int
chash_compare(const void *one, const void *other)
{
	const struct point *a = one, *b = other;

	if (a->pt_key != b->pt_key)
		return a->pt_key < b->pt_key ? -1 : 1;
	return (a->pt_node > b->pt_node) - (a->pt_node < b->pt_node);
}

/* Returns the first point of a server, before the avalanche. */
static uint32_t
chash_first_point(enum chash_ring ring, uint32_t id)
{
	return ring == CHASH_3_0 ? chash_avalanche(id) : id * ID_RANGE;
}

struct chash *
chash_create(enum chash_ring ring, const struct chash_node *nodes, size_t n)
{
	struct chash *ch;
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += (size_t)nodes[i].cn_weight * SCALE;
	ch = calloc(1, sizeof(*ch) + count * sizeof(ch->ch_points[0]));
	if (ch == NULL)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < nodes[i].cn_weight * SCALE; j++)
			ch->ch_points[ch->ch_count++] = (struct point){
			    chash_avalanche(
				chash_first_point(ring, nodes[i].cn_id) + j),
			    i};
	qsort(ch->ch_points, count, sizeof(ch->ch_points[0]), chash_compare);
	return ch;
}

void
chash_destroy(struct chash **chp)
{
	free(*chp);
	*chp = NULL;
}

/* Returns the index of the first point that is not less than `key`, or 0 if there is none. */
static size_t
chash_not_before(const struct chash *ch, uint32_t key)
{
	size_t low = 0, high = ch->ch_count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (ch->ch_points[middle].pt_key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ch->ch_count ? low : 0;
}

size_t
chash_find(const struct chash *ch, const char *path, size_t len)
{
	uint32_t key = chash_avalanche(chash_sdbm(path, len));
	size_t next = chash_not_before(ch, key);
	size_t last = next > 0 ? next - 1 : ch->ch_count - 1;

	/* Distances on a circle: the subtractions wrap. */
	return key - ch->ch_points[last].pt_key <=
		       ch->ch_points[next].pt_key - key
		   ? ch->ch_points[last].pt_node
		   : ch->ch_points[next].pt_node;
}

size_t
chash_depth(const char *path, size_t len, unsigned depth)
{
	unsigned slashes = 0;
	size_t i;

	for (i = 0; i < len; i++)
		if (path[i] == '/' && slashes++ == depth && depth > 0)
			break;
	return i;
}
