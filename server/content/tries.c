/*
 * tries: see tries.h.
 */
#include "server/content/tries.h"

#define MOST	 (UINT32_C(1) << 24)
#define LEVELS	 3
#define USER	 LEVELS /* salt for users; lower salts are network levels */
#define WEIGHT_0 8

/* Number of low bits of a key that a level ignores, and weight of a try at this level. */
static const struct tries_level {
	unsigned tl_bits;
	unsigned tl_weight;
} levels[LEVELS] = {{0, WEIGHT_0}, {8, 2}, {16, 1}};

static size_t
tries_at(const struct tries *tr, unsigned row, unsigned salt, uint64_t key)
{
	return hash_bytes(&tr->tr_seed, salt * TRIES_ROWS + row + 1, &key,
		   sizeof(key)) %
	       TRIES_CELLS;
}

static unsigned
tries_minutes(const struct tries_cell *tc, uint32_t now_s)
{
	uint32_t minutes = (now_s - tc->tc_last) / TRIES_MINUTE;

	return minutes < 31 ? minutes : 31;
}

/*
 * Returns the count of a key, halved once for each minute since the last try.  Sets *recent to the
 * count if the last try was less than a minute ago, else to 0.
 */
static uint32_t
tries_count(const struct tries *tr, unsigned salt, uint64_t key, uint32_t now_s,
    uint32_t *recent)
{
	const struct tries_cell *tc;
	uint32_t count = UINT32_MAX, n;
	unsigned row, minutes;

	*recent = UINT32_MAX;
	for (row = 0; row < TRIES_ROWS; row++) {
		tc = &tr->tr_cells[row][tries_at(tr, row, salt, key)];
		minutes = tries_minutes(tc, now_s);
		n = tc->tc_count >> minutes;
		if (n < count)
			count = n;
		n = minutes == 0 ? tc->tc_count : 0;
		if (n < *recent)
			*recent = n;
	}
	return count;
}

/*
 * Adds `by` to the count of a key.  Changes only the cells with the lowest count, because the other
 * cells also count other keys.
 */
static void
tries_change(
    struct tries *tr, unsigned salt, uint64_t key, uint32_t now_s, int by)
{
	uint32_t recent, count = tries_count(tr, salt, key, now_s, &recent);
	struct tries_cell *tc;
	unsigned row;

	for (row = 0; row < TRIES_ROWS; row++) {
		tc = &tr->tr_cells[row][tries_at(tr, row, salt, key)];
		tc->tc_count >>= tries_minutes(tc, now_s);
		tc->tc_last = now_s;
		if (tc->tc_count == count &&
		    (by > 0 ? count < MOST : count > 0))
			tc->tc_count += (uint32_t)by;
	}
}

/*
 * Returns the number of levels at which the tries of a client count.  IPv4 has one level, because
 * the clients of an IPv4 network are unrelated.
 */
static unsigned
tries_levels(uint64_t client)
{
	return client >> 32 == 0xffff ? 1 : LEVELS;
}

uint64_t
tries_rank(const struct tries *tr, const struct tries_key *tk, uint32_t now_s)
{
	uint32_t count, recent, ever = 0, score = 0;
	unsigned i;

	for (i = 0; i < tries_levels(tk->tk_client); i++) {
		count = tries_count(
		    tr, i, tk->tk_client >> levels[i].tl_bits, now_s, &recent);
		if (i == 0)
			ever = count;
		if (recent * levels[i].tl_weight > score)
			score = recent * levels[i].tl_weight;
	}
	return (uint64_t)(score / WEIGHT_0) << 32 | ever;
}

unsigned
tries_for_user(
    const struct tries *tr, const struct tries_key *tk, uint32_t now_s)
{
	uint32_t recent, n = tries_count(tr, USER, tk->tk_user, now_s, &recent);
	unsigned magnitude = 0;

	for (n++; n >= 8; n /= 8)
		magnitude++;
	return magnitude;
}

static void
tries_change_all(
    struct tries *tr, const struct tries_key *tk, uint32_t now_s, int by)
{
	unsigned i;

	for (i = 0; i < tries_levels(tk->tk_client); i++)
		tries_change(
		    tr, i, tk->tk_client >> levels[i].tl_bits, now_s, by);
	tries_change(tr, USER, tk->tk_user, now_s, by);
}

void
tries_add(struct tries *tr, const struct tries_key *tk, uint32_t now_s)
{
	tries_change_all(tr, tk, now_s, 1);
}

void
tries_forgive(struct tries *tr, const struct tries_key *tk, uint32_t now_s)
{
	tries_change_all(tr, tk, now_s, -1);
}
