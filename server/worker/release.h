/*
 * release: returns memory of connections to the kernel when most of them have closed.
 *
 * malloc_trim(3) holds the lock of a heap for 20 ms and more for 200 MiB, and the loop would wait for
 * it.  So the loop takes free memory in pieces with malloc(3), a thread of the pool returns the pages
 * of each piece, and the loop frees the pieces at the end.  Small pieces follow when a large one has
 * no pages in memory, for what lies between memory in use.  malloc_trim(3) comes last: for the rest,
 * which takes 0.2 ms, and for the heaps of the threads that compute handshakes.
 *
 * Loop's thread.  While it runs, pw_loop_pending counts it.
 */
#ifndef SERVER_WORKER_RELEASE_H
#define SERVER_WORKER_RELEASE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/pagewise.h"

#include "server/content/service.h"

struct release {
	struct pw_loop *rl_loop;
	struct pw_task rl_task;
	void **rl_pieces;
	size_t rl_count;
	size_t rl_size;	    /* bytes of the next piece; 0: it does not run */
	size_t rl_resident; /* bytes of the last one that were in memory */
	unsigned rl_misses;
	bool rl_trims;	   /* its last step runs */
	unsigned rl_most;  /* highest number of connections lately */
	unsigned rl_ticks; /* calls of release_tick since then */
	bool rl_stopped;
};

void release_init(struct release *, struct pw_loop *);

/* Counts connections that are open at the same time. */
static inline void
release_seen(struct release *rl, unsigned connections)
{
	if (connections > rl->rl_most)
		rl->rl_most = connections;
}

/*
 * Call four times a second, with the number of connections.  With high, returns free memory whatever
 * that number is.
 */
void release_tick(
    struct release *, unsigned connections, bool high, struct service *);

/* Ends it after the piece that a thread has: the worker drains, and waits for nothing else. */
void release_stop(struct release *);

#endif
