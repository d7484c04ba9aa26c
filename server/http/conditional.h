/*
 * conditional: conditional requests (RFC 9110, section 13).  Pure: the caller passes the time in
 * `now`.
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
	time_t va_modified; /* seconds since the epoch, if va_dated */
	bool va_dated;	    /* true if there is a modification date */
};

/*
 * Evaluates the four preconditions in the order of section 13.2.2 for a GET or HEAD on an existing
 * representation.  Returns 0 (perform the method), 304 or 412.  Ignores dates that do not parse,
 * and all dates for a representation without a date (13.1.3, 13.1.4); compares a date in the future
 * like any other.
 */
int conditional_eval(
    const struct conditional *, const struct validators *, time_t now);

/*
 * Returns true if Range may be honoured.  That is so if If-Range is absent, is a strong entity tag
 * equal to va_etag, or is a date that equals va_modified and lies at least one second before `now`,
 * so that it is a strong validator (8.8.2.2).
 */
bool conditional_if_range(
    const struct conditional *, const struct validators *, time_t now);

/*
 * Returns true if If-Range holds for the representation or, without that field, if If-Match lists
 * its entity tag.  An asterisk in If-Match does not count.
 */
bool conditional_names(
    const struct conditional *, const struct validators *, time_t now);

/* Returns true if the text is exactly one entity tag, "..." or W/"...". */
bool conditional_is_etag(struct str);

#endif
