/*
 * autoindex_validator: see autoindex_validator.h.
 */
#include <stdio.h>
#include <string.h>

#include "lib/util/hash.h"
#include "server/content/autoindex_validator.h"
#include "server/http/conditional.h"

/*
 * A fixed seed, so that each process and each server of a fleet computes the same tag for a
 * listing.
 */
static const struct seed validator_seed = {1, 2};

static void
autoindex_validator_newer(struct listing_validator *lv, time_t t)
{
	if (t > lv->lv_newest)
		lv->lv_newest = t;
}

void
validator_begin(struct listing_validator *lv, const struct stat *dir,
    struct view vw, time_t now)
{
	const uint64_t shown[] = {vw.vw_json, vw.vw_descending, vw.vw_sort};

	*lv = (struct listing_validator){.lv_whole = true, .lv_begun = now};
	lv->lv_sum = hash_bytes(&validator_seed, 0, shown, sizeof(shown));
	autoindex_validator_newer(lv, dir->st_mtim.tv_sec);
	autoindex_validator_newer(lv, dir->st_ctim.tv_sec);
}

void
validator_text(struct listing_validator *lv, const char *text, size_t len)
{
	lv->lv_sum += hash_bytes(&validator_seed, len, text, len);
}

void
validator_row(struct listing_validator *lv, const struct row *row)
{
	const uint64_t shown[] = {row->row_type, row->row_known,
	    (uint64_t)row->row_size, (uint64_t)row->row_mtime};
	uint64_t hash;

	hash = hash_bytes(&validator_seed, 0, shown, sizeof(shown));
	hash = hash_bytes(
	    &validator_seed, hash, row->row_name, strlen(row->row_name));
	hash = hash_bytes(
	    &validator_seed, hash, row->row_digest, strlen(row->row_digest));
	lv->lv_sum += hash;
	autoindex_validator_newer(lv, row->row_changed);
}

size_t
validator_etag(
    const struct listing_validator *lv, char text[static VALIDATOR_ETAG])
{
	return (size_t)snprintf(text, VALIDATOR_ETAG, "W/\"%016llx\"",
	    (unsigned long long)lv->lv_sum);
}

time_t
validator_date(const struct listing_validator *lv)
{
	return conditional_date_sent(lv->lv_newest, lv->lv_begun);
}
