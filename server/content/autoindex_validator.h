/*
 * autoindex_validator: computes the entity tag and the date of a listing (RFC 9110, 8.8) from the
 * text and rows that it shows.  Pure.
 *
 * The times of a directory do not reflect the sizes and times of its files, so both validators
 * cover each row.  The tag is a sum of hashes, so it does not depend on the order of the rows, and
 * no row need stay in memory for it.  The date is the newest change (st_ctim) of the directory and
 * of each name in it.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_VALIDATOR_H
#define SERVER_CONTENT_AUTOINDEX_VALIDATOR_H

#include <sys/stat.h>

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "server/content/autoindex_view.h"

#define VALIDATOR_ETAG 24 /* bytes, including the NUL */

/* Validators of a listing; all zeros if there are none. */
struct listing_validator {
	bool lv_whole;	  /* true if all rows are covered */
	uint64_t lv_sum;  /* sum of the hashes of the text and all rows */
	time_t lv_newest; /* newest change, seconds since the epoch */
	time_t lv_begun;  /* start of the reading, seconds since the epoch */
};

void validator_begin(struct listing_validator *, const struct stat *dir,
    struct view, time_t now);

/* Adds the text before the rows to the validators. */
void validator_text(struct listing_validator *, const char *, size_t len);
void validator_row(struct listing_validator *, const struct row *);

/* Writes the weak tag with its quotes, and returns its length.  Requires lv_whole. */
size_t validator_etag(
    const struct listing_validator *, char text[static VALIDATOR_ETAG]);

/*
 * Returns the date for Last-Modified.  Requires lv_whole.  A second change within the resolution of
 * the times would go unnoticed, so a listing that changed less than two seconds before it was read
 * gets a date before that change: a client that compares dates fetches it again.
 */
time_t validator_date(const struct listing_validator *);

#endif
