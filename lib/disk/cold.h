/*
 * cold: counts the calls of FreeBSD's sendfile(2) whose disk reads may be in flight.
 *
 * For each read in flight the kernel (vnode_pager_generic_getpages) needs a buffer of a zone with
 * vm.vnode_pbufs buffers, which all processes share.  When the zone is empty, sendfile(2), and with
 * it the loop, waits until another read ends.  So all loops of a pool together have at most co_most
 * such calls, half of the zone.  The other half is for other processes, such as the old server
 * during a reload, and for calls that need more than one buffer: a call needs one for each
 * contiguous piece of the file, and for each kern.maxphys bytes.  While the limit is reached, a
 * disk thread reads the bytes first, by read(2), which needs no buffer of this zone.
 */
#ifndef LIB_DISK_COLD_H
#define LIB_DISK_COLD_H

#include <stdatomic.h>
#include <stdbool.h>

struct cold {
	atomic_uint co_calls;
	unsigned co_most; /* limit of co_calls; constant; 0 on Linux */
};

/*
 * Counts a call.  Returns false if co_most calls are counted already.  If the bytes of the call
 * were resident before (`before`), the call probably needs no read, and the limit is half as much
 * again.  Any thread may call cold_take and cold_give.
 */
static inline bool
cold_take(struct cold *co, bool before)
{
	unsigned most = co->co_most + (before ? co->co_most / 2 : 0);

	if (atomic_fetch_add(&co->co_calls, 1) < most)
		return true;
	atomic_fetch_sub(&co->co_calls, 1);
	return false;
}

static inline void
cold_give(struct cold *co)
{
	atomic_fetch_sub(&co->co_calls, 1);
}

#endif
