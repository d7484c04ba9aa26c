/*
 * autoindex_validator: computes the entity tag and the date of a listing (RFC 9110, 8.8) from its
 * text and its rows.  Pure.
 *
 * A change of a file's size or time does not change the times of the directory, so both validators
 * include each row.  The tag is a sum of hashes.  So the order of the rows does not matter, and the
 * server need not keep the rows in memory.  The date is the newest change (st_ctim) of the directory
 * and of all names in it.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_VALIDATOR_H
#define SERVER_CONTENT_AUTOINDEX_VALIDATOR_H

#include <sys/stat.h>

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "server/content/autoindex_view.h"

#define VALIDATOR_ETAG 24 /* bytes, including the NUL */

/* Validators of a listing; all zero if there are none. */
struct listing_validator {
	bool lv_whole;	  /* true if all rows are included */
	uint64_t lv_sum;  /* sum of the hashes of the text and all rows */
	time_t lv_newest; /* newest change, seconds since the epoch */
	time_t lv_begun;  /* start of the reading, seconds since the epoch */
};

void validator_begin(struct listing_validator *, const struct stat *dir,
    struct view, time_t now);

/* Adds the text before the rows to the validators. */
void validator_text(struct listing_validator *, const char *, size_t len);
void validator_row(struct listing_validator *, const struct row *);

/* Writes the weak tag with its quotes.  Returns its length.  Requires lv_whole. */
size_t validator_etag(
    const struct listing_validator *, char text[static VALIDATOR_ETAG]);

/*
 * Returns the date for Last-Modified.  Requires lv_whole.  If the listing changed less than two
 * seconds before it was read, a further change could have the same time.  The result is then a date
 * before the change, so that a client that compares dates fetches the listing again.
 */
time_t validator_date(const struct listing_validator *);

#endif
