/*
 * heap_limit: detects that connections use too much memory of the process.
 *
 * The memory of each connection, stream and listing is bounded, but their number is not.  So the
 * server measures the anonymous memory of the process, and above heap_limit_most it refuses new
 * requests until other requests have ended.  The measured memory includes memory that free(3) has
 * not returned to the kernel; above half of the connections' limit, release.h returns such memory.
 *
 * The limit of connections is half of the control group's limit, or of the machine's memory, after
 * subtraction of the response caches and of the memory of the process at its start.  The other half
 * is for pages of files.
 *
 * All workers of the process check one object.  Times are microseconds.
 */
#ifndef SERVER_WORKER_HEAP_LIMIT_H
#define SERVER_WORKER_HEAP_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HEAP_PERIOD_US 5000 /* minimum time between two measurements */
/* number of responses in flight from which a connection is restricted while memory is high */
#define HEAP_FEW       8

struct heap_limit {
	int hl_fd;	   /* negative if memory cannot be measured */
	uint64_t hl_limit; /* memory of group or machine, bytes */
	/* true if hl_limit is the limit of a control group */
	bool hl_grouped;
	uint64_t hl_kept;	   /* size of all response caches, bytes */
	_Atomic uint64_t hl_base;  /* memory when first measured, bytes, or 0 */
	_Atomic uint64_t hl_bytes; /* memory when last measured, bytes */
	_Atomic uint64_t hl_next;  /* time of the next measurement */
	/* true if connections use more than half of their limit */
	atomic_bool hl_high;
	atomic_bool hl_short; /* true above heap_limit_most */
};

/*
 * Creates the limit, and opens the file that heap_limit_look reads.  `kept` is the size of all
 * response caches in bytes.  Returns 0, or -errno, with *out NULL, if memory is short or
 * descriptors run out.
 */
int heap_limit_create(uint64_t kept, struct heap_limit **out);
void heap_limit_destroy(struct heap_limit **);

/*
 * Measures the memory, at most once in HEAP_PERIOD_US, since a measurement takes 2 us.  Returns
 * true, to one caller, when memory becomes short.
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
 * Returns true if connections use more than half of their limit.  Then free memory is returned to
 * the kernel.  Connections with HEAP_FEW responses or more start no further response, and are
 * evicted if they are stalled (stalled.h).
 */
static inline bool
heap_limit_is_high(const struct heap_limit *hl)
{
	return atomic_load_explicit(&hl->hl_high, memory_order_relaxed);
}

#endif
