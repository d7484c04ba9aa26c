/*
 * conditional: evaluates conditional requests (RFC 9110, section 13).  Pure: `now` is the current
 * time.
 */
#ifndef SERVER_HTTP_CONDITIONAL_H
#define SERVER_HTTP_CONDITIONAL_H

#include <stdbool.h>
#include <time.h>

#include "server/util/str.h"

/* Field values as received; s_ptr is NULL if the field is absent. */
struct conditional {
	struct str pre_if_match;
	struct str pre_if_none_match;
	struct str pre_if_modified_since;
	struct str pre_if_unmodified_since;
	struct str pre_if_range;
};

/* Validators of the representation. */
struct validators {
	struct str va_etag; /* quoted, with "W/" if weak; empty if none */
	/* time of the modification, seconds since the epoch; valid if va_dated */
	time_t va_modified;
	bool va_dated; /* true if there is a modification date */
};

/*
 * Evaluates the four preconditions of a GET or HEAD on an existing representation, in the order of
 * section 13.2.2.  Returns 0 (perform the method), 304 or 412.  Ignores malformed dates; ignores
 * all dates if the representation has no date (13.1.3, 13.1.4).  The date in If-Modified-Since must be
 * exactly va_modified, since a file may go back to an earlier version.  A date equal to va_modified
 * matches only if it is at least two seconds before `now`, since the file may change twice in a second.
 */
int conditional_eval(
    const struct conditional *, const struct validators *, time_t now);

/*
 * Returns true if If-Range is absent, is a strong entity tag equal to va_etag, or is a date that
 * matches as in conditional_eval.  The server may then honour Range.
 */
bool conditional_if_range(
    const struct conditional *, const struct validators *, time_t now);

/*
 * Returns true if If-Range holds for the representation.  Without If-Range, returns true if
 * If-Match lists the entity tag of the representation; an asterisk does not count.
 */
bool conditional_names(
    const struct conditional *, const struct validators *, time_t now);

/*
 * Returns the date for Last-Modified of a response that is sent at `now`.  If the representation was modified
 * less than two seconds ago, or in the future, it may be modified again in the same second; the result is
 * then an earlier date, which no condition will match.  So each date that matches later is a strong
 * validator (8.8.2.2), and is never later than Date (8.8.2.1).
 */
time_t conditional_date_sent(time_t modified, time_t now);

/* Returns true if the text is exactly one entity tag: "..." or W/"...". */
bool conditional_is_etag(struct str);

#endif
