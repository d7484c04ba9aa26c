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

/*
 * Evaluates the four preconditions in the order of section 13.2.2 for a GET or
 * HEAD on an existing representation.  etag is the entity tag with its quotes, and "W/" if
 * it is weak; empty: there is none.  Returns 0 (perform the method), 304 or 412.  Dates that do not
 * parse are ignored; one in the future is compared as any other (13.1.3).
 */
int conditional_eval(
    const struct conditional *, struct str etag, time_t mtime, time_t now);

/*
 * May Range be honoured?  True without If-Range; with an entity tag, if it is
 * strong and equal; with a date, if it equals mtime exactly and mtime lies at
 * least one second back, so that it is a strong validator (8.8.2.2).
 */
bool conditional_if_range(
    const struct conditional *, struct str etag, time_t mtime, time_t now);

#endif
