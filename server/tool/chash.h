/*
 * chash: which server HAProxy chooses for a path by consistent hashing: hash-type consistent sdbm
 * avalanche, balance uri path-only, as in its configuration manual, and with the numbers of its
 * 2.6 and later, which the manual does not have: a server of weight W and id I has 16 * W points on
 * a circle of 32 bits, at avalanche(4096 * I + 0, 1, 2, ...).  A path belongs to the server whose
 * point is nearest to avalanche(sdbm(path)), before it if two are equally near.
 *
 * From 3.0 on the points were at avalanche(avalanche(I) + 0, 1, 2, ...), by mistake.  It was mended
 * on 2025-10-16, by commit 03e9a5a1e7, in 3.0 to 3.2 as well; Debian 13's 3.0.11 is older.
 *
 * Both hashes are in the public domain: sdbm by Ozan Yigit, the avalanche by Bob Jenkins.
 * tests/http/test_tool_assign.py compares it with HAProxy.  Pure.
 */
#ifndef SERVER_TOOL_CHASH_H
#define SERVER_TOOL_CHASH_H

#include <stddef.h>
#include <stdint.h>

#define CHASH_WEIGHT 256     /* at most; HAProxy's default is 1 */
#define CHASH_ID     1048575 /* at most, so that keys differ */

/* By the first version of HAProxy that has it. */
enum chash_ring { CHASH_2_6, CHASH_3_0 };

struct chash_node {
	const char *cn_name;
	uint32_t
	    cn_id; /* HAProxy's: "id" of its line, or its place in the backend, from 1 */
	uint32_t cn_weight;
};

struct chash;

/* The nodes stay the caller's; n > 0.  NULL: no memory. */
struct chash *chash_create(
    enum chash_ring, const struct chash_node *, size_t n);
void chash_destroy(struct chash **);

/* Which one. */
size_t chash_find(const struct chash *, const char *path, size_t len);

/*
 * How many bytes of a path count with "balance uri depth N": those before its slash number
 * depth + 1; 0: all.
 */
size_t chash_depth(const char *path, size_t len, unsigned depth);

#endif
