/*
 * release: returns memory of connections to the kernel when most of them have closed.
 *
 * malloc_trim(3) holds the lock of a heap for 20 ms and more for 200 MiB, and the loop would wait for
 * it.  So the loop takes free memory in pieces with malloc(3), a thread of the pool returns the pages
 * of each piece, and the loop frees the pieces at the end.  Small pieces follow when a large one has
 * no pages in memory, for what lies between memory in use.
 *
 * Loop's thread.  While it runs, pw_loop_pending counts it.
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
	unsigned rl_most;  /* highest number of connections lately */
	unsigned rl_ticks; /* calls of release_tick since then */
};

void release_init(struct release *, struct pw_loop *);

/* Call four times a second, with the number of connections and the blocks that are kept for them. */
void release_tick(struct release *, unsigned connections, struct buf_list *);

#endif
