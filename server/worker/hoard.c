/*
 * hoard: see hoard.h.
 */
#include "server/worker/hoard.h"

#define SLOTS ((size_t)2 * HOARD_MAX)

/* Levels of networks. */
static const struct level {
	unsigned lv_bits;   /* low bits of a key that the level omits */
	unsigned lv_weight; /* score of a connection, in eighths */
} levels[] = {{0, 8}, {8, 2}, {16, 1}};

#define LEVELS (sizeof(levels) / sizeof(levels[0]))

/* An address or a network in a hash table. */
struct slot {
	uint16_t sl_count; /* connections; 0 if the slot is free */
	uint16_t sl_first; /* index of the first connection in the list */
};

static uint64_t
hoard_key(const struct hoarded *ho, unsigned bits)
{
	return ho->ho_key >> bits;
}

static struct slot *
hoard_slot(const struct seed *seed, struct slot *slots,
    const struct hoarded *list, size_t i, unsigned bits)
{
	uint64_t key = hoard_key(&list[i], bits);
	size_t at = hash_bytes(seed, 0, &key, sizeof(key)) % SLOTS;

	while (slots[at].sl_count > 0 &&
	       hoard_key(&list[slots[at].sl_first], bits) != key)
		at = (at + 1) % SLOTS;
	return &slots[at];
}

/*
 * Raises the score of each connection to the score of its network at one level.  The level of
 * addresses also sets the counts.
 */
static void
hoard_count(const struct seed *seed, const struct hoarded *list, size_t n,
    const struct level *lv, struct hoard_rank *ranks)
{
	struct slot slots[SLOTS] = {0}, *of[HOARD_MAX];
	unsigned score;
	size_t i;

	for (i = 0; i < n; i++) {
		of[i] = hoard_slot(seed, slots, list, i, lv->lv_bits);
		if (of[i]->sl_count++ == 0)
			of[i]->sl_first = (uint16_t)i;
	}
	for (i = 0; i < n; i++) {
		score = of[i]->sl_count * lv->lv_weight;
		if (score > ranks[i].hr_score)
			ranks[i].hr_score = score;
		if (lv->lv_bits == 0)
			ranks[i].hr_count = of[i]->sl_count;
	}
}

static bool
hoard_before(const struct hoard_rank *a, const struct hoard_rank *b)
{
	return hoard_rank(a) > hoard_rank(b);
}

/*
 * Returns the connection of the highest rank that may be closed, and among equal ranks the oldest.
 */
static size_t
hoard_best(const struct hoarded *list, size_t n, const struct hoard_rank *ranks)
{
	size_t i, best = HOARD_NONE;

	for (i = 0; i < n; i++) {
		if (list[i].ho_spared)
			continue;
		if (best == HOARD_NONE || hoard_before(&ranks[i], &ranks[best]))
			best = i;
	}
	return best;
}

/* Returns true if the best victim must stay until a better one is old enough. */
static bool
hoard_waits(const struct hoard_rank *best, const struct hoard_rank *most,
    const struct hoard_rank *young)
{
	return best->hr_score * 2 < most->hr_score ||
	       (best->hr_few && hoard_before(young, best));
}

static bool
hoard_is_few(const size_t counts[static HOARD_PROGRESSES],
    enum hoard_progress progress, size_t n)
{
	size_t few = counts[HOARD_HANDSHAKE];

	if (progress == HOARD_SECURE_PART)
		few += counts[HOARD_SECURE_PART];
	return progress >= HOARD_HANDSHAKE && few * HOARD_FEW <= n;
}

size_t
hoard_pick(const struct seed *seed, const struct hoarded *list, size_t n,
    size_t ripe, struct hoard_rank *rank)
{
	struct hoard_rank ranks[HOARD_MAX] = {{0}}, most = {0}, young = {0};
	size_t i, best, counts[HOARD_PROGRESSES] = {0};

	for (i = 0; i < n; i++)
		counts[list[i].ho_progress]++;
	for (i = 0; i < n; i++) {
		ranks[i].hr_progress = list[i].ho_progress;
		ranks[i].hr_few = hoard_is_few(counts, list[i].ho_progress, n);
	}
	for (i = 0; i < LEVELS; i++)
		hoard_count(seed, list, n, &levels[i], ranks);
	for (i = 0; i < n; i++) {
		if (hoard_before(&ranks[i], &most))
			most = ranks[i];
		if (i >= ripe && hoard_before(&ranks[i], &young))
			young = ranks[i];
	}
	best = hoard_best(list, ripe < n ? ripe : n, ranks);
	if (best != HOARD_NONE && hoard_waits(&ranks[best], &most, &young))
		best = HOARD_NONE;
	*rank = best == HOARD_NONE ? most : ranks[best];
	return best;
}
