/*
 * chash: finds the server that HAProxy chooses for a path with "balance uri path-only" and
 * "hash-type consistent sdbm avalanche".  HAProxy's manual does not describe the points; since
 * version 2.6 a server of weight W and id I has 16 * W points on a circle of 32 bits, at
 * avalanche(4096 * I + 0, 1, 2, ...).  A path belongs to the server whose point is nearest to
 * avalanche(sdbm(path)); if two points are equally near, the preceding point counts.
 *
 * HAProxy 3.0 and later had the points at avalanche(avalanche(I) + 0, 1, 2, ...), by mistake.
 * Commit 03e9a5a1e7 of 2025-10-16 corrected the mistake, in 3.0 to 3.2 as well; Debian 13's 3.0.11
 * is older.
 *
 * Both hashes are in the public domain: sdbm by Ozan Yigit, the avalanche by Bob Jenkins.
 * tests/http/test_tool_assign.py compares the results with HAProxy.  Pure.
 */
#ifndef SERVER_TOOL_CHASH_H
#define SERVER_TOOL_CHASH_H

#include <stddef.h>
#include <stdint.h>

#define CHASH_WEIGHT 256     /* maximum weight; HAProxy's default is 1 */
#define CHASH_ID     1048575 /* maximum id, so that 4096 * ID has 32 bits */

/* Placements of points, each named after the first HAProxy version that has it. */
enum chash_ring { CHASH_2_6, CHASH_3_0 };

struct chash_node {
	const char *cn_name;
	uint32_t cn_id; /* "id" of the server line, or its position from 1 */
	uint32_t cn_weight;
};

struct chash;

/*
 * Creates a ring of n > 0 nodes.  Does not keep the pointer to the nodes.  Returns NULL if memory
 * is short.
 */
struct chash *chash_create(
    enum chash_ring, const struct chash_node *, size_t n);
void chash_destroy(struct chash **);

/* Returns the index of the node that serves the path. */
size_t chash_find(const struct chash *, const char *path, size_t len);

/*
 * Returns the number of bytes of a path that "balance uri depth N" hashes: the bytes before slash
 * number depth + 1, or all bytes if depth is 0.
 */
size_t chash_depth(const char *path, size_t len, unsigned depth);

#endif
