/*
 * range: the Range field (RFC 9110, section 14).  Pure.
 */
#ifndef SERVER_HTTP_RANGE_H
#define SERVER_HTTP_RANGE_H

#include <stddef.h>
#include <sys/types.h>

#include "server/util/str.h"

struct range {
	off_t rng_off; /* first byte */
	off_t rng_len; /* bytes, at least 1 */
};

enum range_verdict {
	RANGE_IGNORE,	     /* not bytes, malformed, too many: answer 200 */
	RANGE_OK,	     /* n ranges: answer 206 */
	RANGE_UNSATISFIABLE, /* answer 416 */
};

/*
 * Resolves the field value against a representation of size bytes.
 * Unsatisfiable members of a set are dropped; overlapping and adjacent ones
 * are merged into the place of the first; the order is otherwise the
 * client's.  A set of more than max members (counted before merging) is
 * ignored as a whole: it is an attack or a mistake (RFC 9110, 14.2, 17.15).
 * So is one with a suffix of an empty representation, which is satisfiable but
 * leaves no byte that Content-Range could name.  out has room for max; n is 0
 * unless RANGE_OK.
 */
enum range_verdict range_parse(
    struct str value, off_t size, struct range *out, size_t max, size_t *n);

#endif
