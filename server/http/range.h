/*
 * range: the Range field (RFC 9110, section 14).  Pure.
 */
#ifndef SERVER_HTTP_RANGE_H
#define SERVER_HTTP_RANGE_H

#include <stddef.h>
#include <sys/types.h>

#include "server/util/str.h"

struct range {
	off_t rng_off; /* offset of the first byte */
	off_t rng_len; /* bytes, at least 1 */
};

/*
 * Maximum number of members in a set.  A head of the default size has fewer; this many, from a
 * larger head, are sorted within a millisecond.
 */
#define RANGE_MOST 8192

enum range_verdict {
	RANGE_IGNORE, /* another unit, malformed or too many: respond 200 */
	RANGE_OK,     /* n ranges: respond 206 */
	RANGE_UNSATISFIABLE, /* respond 416 */
};

/*
 * Resolves the field value against a representation of `size` bytes.  Drops unsatisfiable members
 * of a set; merges overlapping and adjacent ones into the position of the first; otherwise keeps
 * the client's order.  A set of more than `max` members (counted before merging) is honoured if no
 * two of them overlap and together they are smaller than the representation; otherwise it is
 * ignored as a whole (RFC 9110, 14.2, 17.15).  An empty representation has no ranges, so the field
 * is ignored.  *n is 0 unless the result is RANGE_OK.
 */
enum range_verdict range_parse(struct str value, off_t size,
    struct range out[static RANGE_MOST], size_t max, size_t *n);

#endif
