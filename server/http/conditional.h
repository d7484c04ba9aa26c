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

/* Validators of the representation, as sent in its fields. */
struct validators {
	struct str va_etag; /* quoted, with "W/" if weak; empty if none */
	time_t va_modified; /* seconds since the epoch; valid if va_dated */
	bool va_dated;	    /* true if there is a modification date */
};

/*
 * Evaluates the four preconditions of a GET or HEAD on an existing representation, in the order of
 * section 13.2.2.  Returns 0 (perform the method), 304 or 412.  Ignores malformed dates; ignores
 * all dates if the representation has no date (13.1.3, 13.1.4).  Compares dates in the future like
 * any other date.
 */
int conditional_eval(
    const struct conditional *, const struct validators *, time_t now);

/*
 * Returns true if If-Range is absent, is a strong entity tag equal to va_etag, or is a date equal
 * to va_modified and at least one second before `now`.  The server may then honour Range.  Only
 * such a date is a strong validator (8.8.2.2).
 */
bool conditional_if_range(
    const struct conditional *, const struct validators *, time_t now);

/*
 * Returns true if If-Range holds for the representation.  Without If-Range, returns true if
 * If-Match lists the entity tag of the representation; an asterisk does not count.
 */
bool conditional_names(
    const struct conditional *, const struct validators *, time_t now);

/* Returns true if the text is exactly one entity tag: "..." or W/"...". */
bool conditional_is_etag(struct str);

#endif
