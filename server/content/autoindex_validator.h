/*
 * autoindex_validator: the entity tag and the date of a listing (RFC 9110, 8.8), from what its
 * text shows.  Pure.
 *
 * The times of a directory do not tell the sizes and times of its files, so both are made of each
 * row.  The tag is a sum: rows in another order have the same one, and so a listing that is
 * streamed needs no memory for it.  The date is the newest change (st_ctim) of the directory and
 * of each name in it.
 */
#ifndef SERVER_CONTENT_AUTOINDEX_VALIDATOR_H
#define SERVER_CONTENT_AUTOINDEX_VALIDATOR_H

#include <sys/stat.h>

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "server/content/autoindex_view.h"

#define VALIDATOR_ETAG 24 /* bytes, with the NUL */

/* All zeros: there is none. */
struct listing_validator {
	bool lv_whole;	  /* of all rows */
	uint64_t lv_sum;  /* of what is shown */
	time_t lv_newest; /* seconds since the epoch, as the next one */
	time_t lv_begun;  /* when the reading began */
};

void validator_begin(struct listing_validator *, const struct stat *dir,
    struct view, time_t now);

/* What stands before the rows. */
void validator_text(struct listing_validator *, const char *, size_t len);
void validator_row(struct listing_validator *, const struct row *);

/* Writes the tag, weak, with its quotes; returns its length.  Needs lv_whole, as the next one. */
size_t validator_etag(
    const struct listing_validator *, char text[static VALIDATOR_ETAG]);

/*
 * For Last-Modified.  A second change within the resolution of the times would not be seen, so
 * a listing that changed less than two seconds before it was read has a date before that change:
 * a client that compares dates gets it again.
 */
time_t validator_date(const struct listing_validator *);

#endif
