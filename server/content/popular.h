/*
 * popular: finds the paths that clients request most from a worker, in limited memory.  Uses the
 * algorithm Space-Saving (Metwally, Agrawal, El Abbadi: "Efficient Computation of Frequent and
 * Top-k Elements in Data Streams", ICDT 2005), with POPULAR_FACTOR counters for each wanted path.
 * A path without a counter takes over the counter with the lowest count, and continues from this
 * count.  So the count of this path may be too high, by at most the count that was taken over,
 * which pp_error stores.  With N counters, each path with more than 1/N of the requests has a
 * counter.
 *
 * All counts are halved every POPULAR_WINDOW_US, so they represent about the last two windows.
 *
 * A path is counted as in the request: not decoded, without its query.  A path longer than
 * POPULAR_PATH is not counted.
 *
 * The worker counts, and any thread may copy the counters.  The worker never waits for the lock: it
 * does not count requests while another thread copies the counters, which takes some 20 us for 100
 * paths.
 */
#ifndef SERVER_CONTENT_POPULAR_H
#define SERVER_CONTENT_POPULAR_H

#include <stddef.h>
#include <stdint.h>

#include "lib/util/hash.h"
#include "server/util/str.h"

#define POPULAR_MOST	  1000 /* maximum number of wanted paths */
#define POPULAR_FACTOR	  4
#define POPULAR_LEAST	  256 /* minimum number of counters */
#define POPULAR_PATH	  255 /* maximum bytes of a path */
#define POPULAR_WINDOW_US ((uint64_t)60000000)

struct popular;
struct site;

struct popular_path {
	const struct site *pp_site;
	uint64_t pp_hash;  /* hash of the path, private */
	uint64_t pp_count; /* number of requests; may be too high */
	uint64_t pp_error; /* maximum excess of pp_count */
	uint32_t pp_len;
	char pp_path[POPULAR_PATH];
};

/* Creates the counters for `wanted` paths.  Copies the seed.  Returns NULL if memory is short. */
struct popular *popular_create(
    unsigned wanted, const struct seed *, uint64_t now_us);
void popular_destroy(struct popular **);

/* Counts a request.  `hash` is the popular_hash of the path.  Call on the worker's thread. */
void popular_asked(struct popular *, const struct site *, struct str path,
    uint64_t hash, uint64_t now_us);
uint64_t popular_hash(const struct popular *, struct str path);

size_t popular_size(const struct popular *);

/*
 * Copies the counters with a count above 0, unsorted, to an array of popular_size elements.
 * Returns the number of copied counters.  Thread-safe.
 */
size_t popular_copy(struct popular *, uint64_t now_us, struct popular_path *);

/* Returns the number of counted requests.  Thread-safe. */
uint64_t popular_counted(const struct popular *);

/*
 * Merges the lists of several workers in one array, so that it has each path of each site once.
 * Sorts the array by certain requests (pp_count - pp_error), highest first.  Returns the new
 * length.
 */
size_t popular_merge(struct popular_path *, size_t n);

#endif
