/*
 * heap_limit: whether connections have taken too much memory of the process.
 *
 * What a connection, a stream or a listing holds has a bound each, but their number has none.  So
 * the memory that the process has beside files is measured, and above heap_limit_most new requests are
 * refused until some of the others have ended.  It counts what free(3) has not given back to the
 * kernel as well: above half of that the free memory is given back (release.h).
 *
 * Connections may have half of what the process at its start and its hot sets leave: of the control
 * group's limit, or of the machine's memory.  The rest is for pages of files.
 *
 * One of the process; all workers look.  Times are microseconds.
 */
#ifndef SERVER_WORKER_HEAP_LIMIT_H
#define SERVER_WORKER_HEAP_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HEAP_PERIOD_US 5000 /* between two looks */
#define HEAP_FEW       8 /* responses of a connection: see heap_limit_is_high */

struct heap_limit {
	int hl_fd; /* -1: it cannot be measured, and nothing is refused */
	uint64_t hl_limit;	   /* bytes, of the group or the machine */
	bool hl_grouped;	   /* of a control group */
	uint64_t hl_kept;	   /* bytes of the hot sets */
	_Atomic uint64_t hl_base;  /* bytes at the first look; 0: before it */
	_Atomic uint64_t hl_bytes; /* at the last one */
	_Atomic uint64_t hl_next;  /* the next one is due */
	atomic_bool hl_high;
	atomic_bool hl_short;
};

/* kept: bytes of all hot sets.  Opens a file.  Returns -errno, with *out NULL, without memory or descriptors. */
int heap_limit_create(uint64_t kept, struct heap_limit **out);
void heap_limit_destroy(struct heap_limit **);

/*
 * Measures, at most once in HEAP_PERIOD_US: that takes 2 us.  Returns true, to one caller, when memory
 * begins to be short.
 */
bool heap_limit_look(struct heap_limit *, uint64_t now);

/* Bytes above which requests are refused; UINT64_MAX: none are. */
uint64_t heap_limit_most(const struct heap_limit *);

static inline bool
heap_limit_is_short(const struct heap_limit *hl)
{
	return atomic_load_explicit(&hl->hl_short, memory_order_relaxed);
}

/*
 * Returns true above half of what connections may have: free memory is to go back, connections with
 * HEAP_FEW streams get no more, and those that have stalled end (stalled.h).
 */
static inline bool
heap_limit_is_high(const struct heap_limit *hl)
{
	return atomic_load_explicit(&hl->hl_high, memory_order_relaxed);
}

#endif
