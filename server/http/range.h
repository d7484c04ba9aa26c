/* range: parses the Range field (RFC 9110, section 14).  Pure. */
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
 * Maximum number of members in a set.  A head of the default size has fewer members.  Sorting 8192
 * members takes less than a millisecond.
 */
#define RANGE_MOST 8192

enum range_verdict {
	RANGE_IGNORE,	     /* other unit, malformed or too many: send 200 */
	RANGE_OK,	     /* *n ranges: send 206 */
	RANGE_UNSATISFIABLE, /* send 416 */
};

/*
 * Resolves the field value for a representation of `size` bytes.  Drops unsatisfiable members.
 * Merges overlapping and adjacent ranges into the first of them; otherwise keeps the client's
 * order.  A set of more than `max` members, counted before merging, is ignored as a whole if two of
 * its ranges overlap, or if the ranges together are not smaller than the representation (RFC 9110,
 * 14.2, 17.15).  Range is also ignored if the representation is empty.  *n is 0 unless the result
 * is RANGE_OK.
 */
enum range_verdict range_parse(struct str value, off_t size,
    struct range out[static RANGE_MOST], size_t max, size_t *n);

#endif
