/*
 * release: returns memory of connections to the kernel when most of them have closed.
 *
 * malloc_trim(3) holds the lock of a heap for 20 ms and more for 200 MiB, and the loop would wait for
 * it.  So the loop allocates free memory in pieces with malloc(3), a thread of the pool returns the
 * pages of each piece, and the loop frees the pieces at the end.  When large pieces have few resident
 * pages, small ones follow, to find free memory between memory in use.  malloc_trim(3) comes last, for
 * the rest, which takes 0.2 ms, and for the heaps of the threads that compute handshakes.
 *
 * Runs on the loop's thread.  pw_loop_pending counts a release that is in progress.
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
	size_t rl_size;	    /* bytes of the next piece; 0 if no release runs */
	size_t rl_resident; /* resident bytes of the last piece */
	unsigned rl_misses;
	bool rl_trims;	   /* true while malloc_trim(3) runs */
	unsigned rl_most;  /* recent highest number of connections */
	unsigned rl_ticks; /* calls of release_tick with few connections */
	bool rl_stopped;
};

void release_init(struct release *, struct pw_loop *);

/* Records the number of open connections. */
static inline void
release_seen(struct release *rl, unsigned connections)
{
	if (connections > rl->rl_most)
		rl->rl_most = connections;
}

/*
 * Begins to return free memory to the kernel when most connections have closed, or, if high is true,
 * with any number of connections.  Call four times a second.
 */
void release_tick(
    struct release *, unsigned connections, bool high, struct service *);

/*
 * Stops a release after its current piece.  Call when the worker drains, so that it waits for no more
 * than that piece.
 */
void release_stop(struct release *);

#endif
