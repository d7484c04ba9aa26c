/*
 * tries: counts the passwords that each client tried and the passwords that were tried for each
 * user.  The verifier orders passwords by these counts.  The caller must hold vr_lock (verifier.c).
 *
 * The counts are a count-min sketch (Cormode, Muthukrishnan: "An Improved Data Stream Summary",
 * 2005): a key has one cell in each row, and its count is the lowest count of its cells.  So 256
 * KiB suffice for any number of addresses.  With very many addresses a count may be too high, but
 * never too low.  Each minute without a try halves a count.
 */
#ifndef SERVER_CONTENT_TRIES_H
#define SERVER_CONTENT_TRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util/hash.h"

#define TRIES_ROWS   4
#define TRIES_CELLS  ((size_t)8192) /* cells per row */
#define TRIES_MINUTE 60		    /* interval of halving, seconds */

struct tries_cell {
	uint32_t tc_count;
	uint32_t tc_last; /* time of the last try, seconds */
};

/* The caller must zero the structure and draw tr_seed. */
struct tries {
	struct seed tr_seed;
	struct tries_cell tr_cells[TRIES_ROWS][TRIES_CELLS];
};

struct tries_key {
	uint64_t tk_client; /* client_key of the address */
	uint64_t tk_user;   /* hash of the user's name and the file */
};

/*
 * Returns the rank of the next try of a client.  Call before tries_add.  Lower ranks are verified
 * first.  Fewer recent tries mean a lower rank; among equal numbers, fewer tries in total.  Tries
 * are recent until a minute passes without a try.  The tries of an IPv6 client count as at least a
 * quarter of the tries of its /56 and an eighth of the tries of its /48.  0 means no tries.
 */
uint64_t tries_rank(
    const struct tries *, const struct tries_key *, uint32_t now_s);

/*
 * Returns the magnitude of the number of tries for the user: 0 below 7, 1 below 63, 2 below 511 and
 * so on.
 */
unsigned tries_for_user(
    const struct tries *, const struct tries_key *, uint32_t now_s);

void tries_add(struct tries *, const struct tries_key *, uint32_t now_s);

/* Subtracts a try from the counts, because the password was right. */
void tries_forgive(struct tries *, const struct tries_key *, uint32_t now_s);

#endif
