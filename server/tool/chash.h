/*
 * chash: which server HAProxy chooses for a path by consistent hashing: hash-type consistent sdbm
 * avalanche, balance uri path-only, as in its configuration manual, and with the numbers of its
 * 2.6 and later, which the manual lacks: a server of weight W and id I has 16 * W points on
 * a circle of 32 bits, at avalanche(4096 * I + 0, 1, 2, ...).  A path belongs to the server whose
 * point is nearest to avalanche(sdbm(path)); of two equally near points the preceding one counts.
 *
 * HAProxy 3.0 and later had the points at avalanche(avalanche(I) + 0, 1, 2, ...), by mistake.
 * Commit 03e9a5a1e7 of 2025-10-16 corrected it, in 3.0 to 3.2 as well; Debian 13's 3.0.11 is older.
 *
 * Both hashes are in the public domain: sdbm by Ozan Yigit, the avalanche by Bob Jenkins.
 * tests/http/test_tool_assign.py compares it with HAProxy.  Pure.
 */
#ifndef SERVER_TOOL_CHASH_H
#define SERVER_TOOL_CHASH_H

#include <stddef.h>
#include <stdint.h>

#define CHASH_WEIGHT 256     /* maximum; HAProxy's default is 1 */
#define CHASH_ID     1048575 /* maximum, so that keys differ */

/* Placement of points, named after the first version of HAProxy with it. */
enum chash_ring { CHASH_2_6, CHASH_3_0 };

struct chash_node {
	const char *cn_name;
	uint32_t cn_id; /* "id" of the server line, or its position from 1 */
	uint32_t cn_weight;
};

struct chash;

/* Creates a ring of n > 0 nodes, which the caller keeps.  Returns NULL if memory is short. */
struct chash *chash_create(
    enum chash_ring, const struct chash_node *, size_t n);
void chash_destroy(struct chash **);

/* Returns the index of the node that serves the path. */
size_t chash_find(const struct chash *, const char *path, size_t len);

/*
 * Returns the number of bytes of a path that "balance uri depth N" hashes: those before its slash
 * number depth + 1, or all if depth is 0.
 */
size_t chash_depth(const char *path, size_t len, unsigned depth);

#endif
