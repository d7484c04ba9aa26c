/*
 * tier_seen: see tier_seen.h.
 */
#include <stdlib.h>

#include "lib/disk/tier_seen.h"

#define TIER_SEEN_UNIT \
	((uint64_t)4096) /* bytes of se_when, so that it wraps after 16 TiB */

#define TIER_SEEN_PART	((uint64_t)256 << 10) /* bytes of a part of a window */
#define TIER_SEEN_PARTS 0xffU

struct tier_seen_entry {
	/* upper 24 bits of the hash, and a bit for each part that was missed; 0 if the entry is free */
	uint32_t se_tag;
	uint32_t
	    se_when; /* missed bytes at the note, in units of TIER_SEEN_UNIT */
};

struct tier_seen {
	uint64_t sn_missed; /* bytes missed so far */
	uint32_t sn_reach;  /* in units of TIER_SEEN_UNIT */
	uint32_t sn_mask;   /* number of entries, less one */
	struct tier_seen_entry *sn_entries;
};

struct tier_seen *
tier_seen_create(uint32_t most, uint64_t reach)
{
	struct tier_seen *sn = calloc(1, sizeof(*sn));
	uint32_t entries = 1;

	if (sn == NULL)
		return NULL;
	while (entries < most)
		entries *= 2;
	reach /= TIER_SEEN_UNIT;
	sn->sn_reach =
	    reach > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)reach;
	sn->sn_mask = entries - 1;
	sn->sn_entries = calloc(entries, sizeof(*sn->sn_entries));
	if (sn->sn_entries == NULL)
		tier_seen_destroy(&sn);
	return sn;
}

void
tier_seen_destroy(struct tier_seen **snp)
{
	struct tier_seen *sn = *snp;

	*snp = NULL;
	if (sn == NULL)
		return;
	free(sn->sn_entries);
	free(sn);
}

/* Returns a bit for each part of a window that the range touches. */
static uint32_t
tier_seen_parts(uint64_t off, uint64_t len)
{
	uint64_t first = off / TIER_SEEN_PART,
		 last = (off + len - 1) / TIER_SEEN_PART;

	return (uint32_t)((2U << last) - (1U << first)) & TIER_SEEN_PARTS;
}

bool
tier_seen_note(struct tier_seen *sn, uint64_t hash, uint64_t off, uint64_t len)
{
	struct tier_seen_entry *se =
	    &sn->sn_entries[(uint32_t)hash & sn->sn_mask];
	const uint32_t now = (uint32_t)(sn->sn_missed / TIER_SEEN_UNIT),
		       tag = (uint32_t)(hash >> 32) & ~TIER_SEEN_PARTS,
		       parts = tier_seen_parts(off, len);
	uint32_t missed = 0;

	if ((se->se_tag & ~TIER_SEEN_PARTS) == tag &&
	    now - se->se_when <= sn->sn_reach)
		missed = se->se_tag & TIER_SEEN_PARTS;
	*se = (struct tier_seen_entry){
	    .se_tag = tag | missed | parts, .se_when = now};
	sn->sn_missed += len;
	return (missed & parts) != 0;
}
