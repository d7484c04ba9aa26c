/*
 * heap_limit: whether connections have taken too much memory of the process.
 *
 * What a connection, a stream or a listing holds has a bound each, but their number has none.  So
 * the anonymous memory of the process is measured, and above heap_limit_most new requests are
 * refused until some of the others have ended.  That includes what free(3) has not returned to the
 * kernel: above half of what connections
 * may have, free memory is returned (release.h).
 *
 * Connections may have half of what the process at its start and its hot sets leave: of the control
 * group's limit, or of the machine's memory.  The rest is for pages of files.
 *
 * One object for the process, which all workers check.  Times are microseconds.
 */
#ifndef SERVER_WORKER_HEAP_LIMIT_H
#define SERVER_WORKER_HEAP_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HEAP_PERIOD_US 5000 /* microseconds between two measurements */
#define HEAP_FEW       8 /* responses of a connection: see heap_limit_is_high */

struct heap_limit {
	int hl_fd;		  /* -1 if not measurable: nothing is refused */
	uint64_t hl_limit;	  /* bytes of the group or the machine */
	bool hl_grouped;	  /* true for a control group */
	uint64_t hl_kept;	  /* bytes of the hot sets */
	_Atomic uint64_t hl_base; /* bytes at the first measurement, or 0 */
	_Atomic uint64_t hl_bytes; /* bytes at the last measurement */
	_Atomic uint64_t hl_next;  /* time of the next measurement */
	atomic_bool hl_high;
	atomic_bool hl_short;
};

/*
 * Creates the limit.  kept is the size of all hot sets in bytes.  Opens a file.  Returns -errno, with
 * *out NULL, if memory is short or descriptors run out.
 */
int heap_limit_create(uint64_t kept, struct heap_limit **out);
void heap_limit_destroy(struct heap_limit **);

/*
 * Measures at most once in HEAP_PERIOD_US, since that takes 2 us.  Returns true, to one caller, when
 * memory begins to be short.
 */
bool heap_limit_look(struct heap_limit *, uint64_t now);

/* Returns the bytes above which requests are refused, or UINT64_MAX if no request is refused. */
uint64_t heap_limit_most(const struct heap_limit *);

static inline bool
heap_limit_is_short(const struct heap_limit *hl)
{
	return atomic_load_explicit(&hl->hl_short, memory_order_relaxed);
}

/*
 * Returns true above half of what connections may have.  Then free memory is returned to the kernel,
 * connections with HEAP_FEW responses get no more, and stalled connections are evicted (stalled.h).
 */
static inline bool
heap_limit_is_high(const struct heap_limit *hl)
{
	return atomic_load_explicit(&hl->hl_high, memory_order_relaxed);
}

#endif
