/*
 * conditional: conditional requests (RFC 9110, section 13).  Pure: the clock comes
 * in as now.
 */
#ifndef SERVER_HTTP_CONDITIONAL_H
#define SERVER_HTTP_CONDITIONAL_H

#include <stdbool.h>
#include <time.h>

#include "server/util/str.h"

/* Field values as received; s_ptr NULL where the field is absent. */
struct conditional {
	struct str pre_if_match;
	struct str pre_if_none_match;
	struct str pre_if_modified_since;
	struct str pre_if_unmodified_since;
	struct str pre_if_range;
};

/* Of the representation, as its fields announce them. */
struct validators {
	struct str va_etag; /* with quotes, and "W/" if weak; empty: none */
	time_t va_modified; /* seconds since the epoch, if va_dated */
	bool va_dated;	    /* there is a modification date */
};

/*
 * Evaluates the four preconditions in the order of section 13.2.2 for a GET or
 * HEAD on an existing representation.  Returns 0 (perform the method), 304 or 412.  Dates that do
 * not parse are ignored, and all of them for a representation without a date (13.1.3, 13.1.4); one
 * in the future is compared as any other.
 */
int conditional_eval(
    const struct conditional *, const struct validators *, time_t now);

/*
 * May Range be honoured?  True without If-Range; with an entity tag, if it is
 * strong and equal; with a date, if it equals va_modified exactly and that lies at
 * least one second back, so that it is a strong validator (8.8.2.2).
 */
bool conditional_if_range(
    const struct conditional *, const struct validators *, time_t now);

/*
 * True if If-Range holds for the representation; without that field, if If-Match lists its entity
 * tag.  An asterisk names no representation.
 */
bool conditional_names(
    const struct conditional *, const struct validators *, time_t now);

/* True for one entity tag, "..." or W/"...", and nothing else. */
bool conditional_is_etag(struct str);

#endif
