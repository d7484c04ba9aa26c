/*
 * popular: finds the paths that clients request most from a worker, in bounded memory, with the
 * algorithm Space-Saving (Metwally, Agrawal, El Abbadi: "Efficient Computation of Frequent and
 * Top-k Elements in Data Streams", ICDT 2005).  There are POPULAR_FACTOR counters for each wanted
 * path.  A path without a counter takes over the counter with the lowest count, and keeps this
 * count.  So a count may be too high by at most that much, which pp_error records.  With N
 * counters, every path with more than 1/N of the requests has a counter.
 *
 * All counts are halved every POPULAR_WINDOW_US, so they cover about the last two such windows.
 *
 * A path is counted as in the request: not decoded, without its query.  Paths longer than
 * POPULAR_PATH are not counted.
 *
 * The worker counts; any thread may copy the counters.  The worker never waits: it does not count
 * requests while another thread copies its counters, which takes some 20 us for 100 paths.
 */
#ifndef SERVER_CONTENT_POPULAR_H
#define SERVER_CONTENT_POPULAR_H

#include <stddef.h>
#include <stdint.h>

#include "lib/util/hash.h"
#include "server/util/str.h"

#define POPULAR_MOST	  1000 /* largest number of wanted paths */
#define POPULAR_FACTOR	  4
#define POPULAR_LEAST	  256 /* smallest number of counters */
#define POPULAR_PATH	  255 /* maximum bytes of a path */
#define POPULAR_WINDOW_US ((uint64_t)60000000)

struct popular;
struct site;

struct popular_path {
	const struct site *pp_site;
	uint64_t pp_hash;  /* hash of the path, private */
	uint64_t pp_count; /* upper bound of the requests */
	uint64_t pp_error; /* largest excess of pp_count */
	uint32_t pp_len;
	char pp_path[POPULAR_PATH];
};

/*
 * Creates the counters for `wanted` paths, and copies the seed.  Returns NULL if memory is short.
 */
struct popular *popular_create(
    unsigned wanted, const struct seed *, uint64_t now_us);
void popular_destroy(struct popular **);

/* Counts a request.  `hash` is popular_hash of the path.  The worker's thread only. */
void popular_asked(struct popular *, const struct site *, struct str path,
    uint64_t hash, uint64_t now_us);
uint64_t popular_hash(const struct popular *, struct str path);

/* Returns the number of counters. */
size_t popular_size(const struct popular *);

/* Copies the counters with a count above 0, unsorted, and returns their number.  Any thread. */
size_t popular_copy(struct popular *, uint64_t now_us, struct popular_path *);

/* Returns the number of counted requests.  Any thread. */
uint64_t popular_counted(const struct popular *);

/*
 * Merges the lists of several workers, which are in one array.  Afterwards the array has each path
 * of each site once, the paths with the most certain requests (pp_count - pp_error) first.  Returns
 * the new length.
 */
size_t popular_merge(struct popular_path *, size_t n);

#endif
