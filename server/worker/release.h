/*
 * release: gives memory back to the kernel that connections have used, when most of them are gone.
 *
 * malloc_trim(3) would do it, but holds the lock of a heap for as long as that takes: 20 ms and
 * more for 200 MiB, and the loop would wait.  So the loop takes free memory in pieces with malloc(3),
 * a thread of the pool gives the pages of each back, and the loop frees the pieces in the end.
 * It goes on until a piece has no pages.  Small pieces follow, for what lies between memory in use.
 *
 * Loop's thread.  It is a wait of the loop while it runs: pw_loop_pending counts it.
 */
#ifndef SERVER_WORKER_RELEASE_H
#define SERVER_WORKER_RELEASE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/pagewise.h"

#include "server/util/buf.h"

struct release {
	struct pw_loop *rl_loop;
	struct pw_task rl_task;
	void **rl_pieces;
	size_t rl_count;
	size_t rl_size;	    /* bytes of the next piece; 0: it does not run */
	size_t rl_resident; /* bytes of the last one that were in memory */
	unsigned rl_misses;
	unsigned rl_most;  /* connections of late */
	unsigned rl_ticks; /* since there were most */
};

void release_init(struct release *, struct pw_loop *);

/* Four times a second: so many connections there are, and blocks are kept for them. */
void release_tick(struct release *, unsigned connections, struct buf_list *);

#endif
