/*
 * tier_index: see tier_index.h.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/disk/tier_index.h"

#define NONE UINT32_MAX /* end of a hash chain */

struct tier_slot {
	struct tier_record ts_record; /* tr_len is 0 if the slot is free */
	uint32_t ts_next;	      /* next slot of the hash chain, or NONE */
};

struct tier_index {
	uint64_t tx_size;
	uint64_t tx_head; /* bytes appended so far, including gaps */
	/* Range of record numbers, [tx_oldest, tx_next), in which the present records are. */
	uint64_t tx_oldest;
	uint64_t tx_next;
	uint32_t tx_most; /* number of slots */
	uint32_t tx_count;
	uint32_t tx_mask;    /* number of hash chains, less one */
	uint32_t *tx_chains; /* first slot of each chain, or NONE */
	struct tier_slot *tx_slots;
};

struct tier_index *
tier_index_create(uint64_t size, uint32_t most)
{
	struct tier_index *tx = calloc(1, sizeof(*tx));
	uint32_t chains = 1;

	if (tx == NULL)
		return NULL;
	while (chains < most)
		chains *= 2;
	tx->tx_size = size;
	tx->tx_most = most;
	tx->tx_mask = chains - 1;
	tx->tx_oldest = tx->tx_next = 1;
	tx->tx_chains = malloc(chains * sizeof(*tx->tx_chains));
	tx->tx_slots = calloc(most, sizeof(*tx->tx_slots));
	if (tx->tx_chains == NULL || tx->tx_slots == NULL) {
		tier_index_destroy(&tx);
		return NULL;
	}
	memset(tx->tx_chains, 0xff, chains * sizeof(*tx->tx_chains));
	return tx;
}

void
tier_index_destroy(struct tier_index **txp)
{
	struct tier_index *tx = *txp;

	*txp = NULL;
	if (tx == NULL)
		return;
	free(tx->tx_chains);
	free(tx->tx_slots);
	free(tx);
}

uint32_t
tier_index_slot(const struct tier_index *tx, uint64_t number)
{
	return (uint32_t)(number % tx->tx_most);
}

uint32_t
tier_index_count(const struct tier_index *tx)
{
	return tx->tx_count;
}

uint64_t
tier_index_padded(uint64_t len)
{
	return (len + TIER_BLOCK - 1) / TIER_BLOCK * TIER_BLOCK;
}

uint64_t
tier_index_hash(const struct tier_id *id)
{
	uint64_t hash = (id->id_ino * 0x9e3779b97f4a7c15U + id->id_dev) *
			0x9e3779b97f4a7c15U;

	hash = (hash ^ (id->id_off >> 21)) * 0x9e3779b97f4a7c15U;
	return hash ^ hash >> 32;
}

static uint32_t *
tier_index_chain(const struct tier_index *tx, const struct tier_id *id)
{
	return &tx->tx_chains[(uint32_t)tier_index_hash(id) & tx->tx_mask];
}

/* Returns the slot of a record, or NULL if the record is not present. */
static struct tier_slot *
tier_index_at(const struct tier_index *tx, uint64_t number)
{
	struct tier_slot *ts = &tx->tx_slots[tier_index_slot(tx, number)];

	return ts->ts_record.tr_number == number && ts->ts_record.tr_len > 0
		   ? ts
		   : NULL;
}

static struct tier_slot *
tier_index_lookup(const struct tier_index *tx, const struct tier_id *id)
{
	uint32_t slot = *tier_index_chain(tx, id);

	while (slot != NONE && memcmp(&tx->tx_slots[slot].ts_record.tr_id, id,
				   sizeof(*id)) != 0)
		slot = tx->tx_slots[slot].ts_next;
	return slot == NONE ? NULL : &tx->tx_slots[slot];
}

const struct tier_record *
tier_index_find(const struct tier_index *tx, const struct tier_id *id)
{
	struct tier_slot *ts = tier_index_lookup(tx, id);

	return ts == NULL ? NULL : &ts->ts_record;
}

bool
tier_index_has(const struct tier_index *tx, uint64_t number)
{
	return tier_index_at(tx, number) != NULL;
}

static void
tier_index_link(struct tier_index *tx, struct tier_slot *ts)
{
	uint32_t *chain = tier_index_chain(tx, &ts->ts_record.tr_id);

	ts->ts_next = *chain;
	*chain = (uint32_t)(ts - tx->tx_slots);
	tx->tx_count++;
}

void
tier_index_remove(struct tier_index *tx, uint64_t number)
{
	struct tier_slot *ts = tier_index_at(tx, number);
	uint32_t *link;

	if (ts == NULL)
		return;
	link = tier_index_chain(tx, &ts->ts_record.tr_id);
	while (&tx->tx_slots[*link] != ts)
		link = &tx->tx_slots[*link].ts_next;
	*link = ts->ts_next;
	ts->ts_record.tr_len = 0;
	tx->tx_count--;
}

/*
 * Returns the position of a new window of `len` bytes: behind the last window, or at the ring's
 * start if the new window would cross the ring's end.
 */
static uint64_t
tier_index_begin(const struct tier_index *tx, uint64_t len)
{
	uint64_t left = tx->tx_size - tx->tx_head % tx->tx_size;

	return tier_index_padded(len) > left ? tx->tx_head + left : tx->tx_head;
}

/*
 * Returns true if the record `number` must be evicted before the ring is filled up to `end`, or is not
 * present.
 */
static bool
tier_index_is_in_the_way(
    const struct tier_index *tx, uint64_t number, uint64_t end)
{
	const struct tier_slot *ts = tier_index_at(tx, number);

	return tx->tx_next - number >= tx->tx_most || ts == NULL ||
	       ts->ts_record.tr_at + tx->tx_size < end;
}

void
tier_index_reserve(
    struct tier_index *tx, uint64_t len, struct tier_record *record)
{
	uint64_t at = tier_index_begin(tx, len),
		 end = at + tier_index_padded(len);

	while (tx->tx_oldest < tx->tx_next &&
	       tier_index_is_in_the_way(tx, tx->tx_oldest, end))
		tier_index_remove(tx, tx->tx_oldest++);
	record->tr_number = tx->tx_next++;
	record->tr_at = at;
	record->tr_len = len;
	tx->tx_head = end;
}

void
tier_index_add(struct tier_index *tx, const struct tier_record *record)
{
	struct tier_slot *ts = tier_index_lookup(tx, &record->tr_id);

	if (ts != NULL)
		tier_index_remove(tx, ts->ts_record.tr_number);
	ts = &tx->tx_slots[tier_index_slot(tx, record->tr_number)];
	ts->ts_record = *record;
	tier_index_link(tx, ts);
}

void
tier_index_load(struct tier_index *tx, const struct tier_record *record)
{
	uint64_t end = record->tr_at + tier_index_padded(record->tr_len);

	tx->tx_slots[tier_index_slot(tx, record->tr_number)].ts_record =
	    *record;
	if (record->tr_number >= tx->tx_next)
		tx->tx_next = record->tr_number + 1;
	if (end > tx->tx_head)
		tx->tx_head = end;
}

/*
 * Links a loaded record, unless its bytes were overwritten, or a newer record of the same window is
 * loaded.
 */
static void
tier_index_admit(struct tier_index *tx, struct tier_slot *ts)
{
	const struct tier_record *tr = &ts->ts_record;
	const struct tier_slot *other;

	if (tr->tr_number < tx->tx_oldest ||
	    tr->tr_at + tx->tx_size < tx->tx_head) {
		ts->ts_record.tr_len = 0;
		return;
	}
	other = tier_index_lookup(tx, &tr->tr_id);
	if (other != NULL && other->ts_record.tr_number > tr->tr_number) {
		ts->ts_record.tr_len = 0;
		return;
	}
	if (other != NULL)
		tier_index_remove(tx, other->ts_record.tr_number);
	tier_index_link(tx, ts);
}

void
tier_index_loaded(struct tier_index *tx)
{
	uint32_t i;

	tx->tx_oldest =
	    tx->tx_next > tx->tx_most ? tx->tx_next - tx->tx_most : 1;
	for (i = 0; i < tx->tx_most; i++)
		if (tx->tx_slots[i].ts_record.tr_len > 0)
			tier_index_admit(tx, &tx->tx_slots[i]);
}
