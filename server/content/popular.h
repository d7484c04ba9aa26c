/*
 * popular: the paths that a worker is asked for most, in bounded memory: Space-Saving
 * (Metwally, Agrawal, El Abbadi: "Efficient Computation of Frequent and Top-k Elements in Data
 * Streams", ICDT 2005).  There are POPULAR_FACTOR counters for each path that is wanted.  A path
 * that has none takes the least one over, with its count: so a count is too great by that much
 * at most, which is remembered.  With N counters, every path with more than 1/N of the
 * requests has one.
 *
 * All counts are halved every POPULAR_WINDOW_US, so they are those of the last two such times
 * or so.
 *
 * A path is as in the request: not decoded, without its query; what is longer than
 * POPULAR_PATH is not counted.
 *
 * The worker counts, any thread copies.  The worker never waits: while its counters are copied,
 * some 20 us for 100 paths, requests are not counted.
 */
#ifndef SERVER_CONTENT_POPULAR_H
#define SERVER_CONTENT_POPULAR_H

#include <stddef.h>
#include <stdint.h>

#include "lib/util/hash.h"
#include "server/util/str.h"

#define POPULAR_MOST	  1000 /* paths that can be wanted */
#define POPULAR_FACTOR	  4
#define POPULAR_LEAST	  256 /* counters */
#define POPULAR_PATH	  255 /* bytes */
#define POPULAR_WINDOW_US ((uint64_t)60000000)

struct popular;
struct site;

struct popular_path {
	const struct site *pp_site;
	uint64_t pp_hash;  /* of the path, private */
	uint64_t pp_count; /* at most so many requests ... */
	uint64_t pp_error; /* ... less at most so many */
	uint32_t pp_len;
	char pp_path[POPULAR_PATH];
};

/* wanted: paths.  The seed is copied.  NULL: no memory. */
struct popular *popular_create(
    unsigned wanted, const struct seed *, uint64_t now_us);
void popular_destroy(struct popular **);

/* One more request; hash: popular_hash of the path.  The worker's thread. */
void popular_asked(struct popular *, const struct site *, struct str path,
    uint64_t hash, uint64_t now_us);
uint64_t popular_hash(const struct popular *, struct str path);

/* Counters that there are. */
size_t popular_size(const struct popular *);

/* Copies those in use, in no order; returns how many.  Any thread. */
size_t popular_copy(struct popular *, uint64_t now_us, struct popular_path *);

/* Requests that were counted.  Any thread. */
uint64_t popular_counted(const struct popular *);

/*
 * Several workers' lists in one array become one: each path of each site once, those that
 * certainly had the most requests first.  Returns how many.
 */
size_t popular_merge(struct popular_path *, size_t n);

#endif
