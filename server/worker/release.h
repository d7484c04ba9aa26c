/*
 * release: returns memory of connections to the kernel when most of them have closed.
 *
 * malloc_trim(3) holds the lock of a heap for 20 ms and more for 200 MiB, and the loop would wait
 * for that lock.  So the loop allocates free memory in pieces with malloc(3), a pool thread returns
 * the pages of each piece to the kernel, and the loop frees the pieces at the end.  When large
 * pieces have few resident pages, small pieces follow, to find free memory between memory in use.
 * malloc_trim(3) runs last: it returns the rest in 0.2 ms, and trims the heaps of the threads that
 * compute handshakes.
 *
 * The functions run on the loop's thread.  pw_loop_pending counts a release that is in progress.
 */
#ifndef SERVER_WORKER_RELEASE_H
#define SERVER_WORKER_RELEASE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/pagewise.h"

#include "server/content/service.h"

/* Start of a piece of free memory; stays resident, in contrast to the rest. */
struct release_piece {
	struct release_piece *pc_next;
};

struct release {
	struct pw_loop *rl_loop;
	struct pw_task rl_task;
	struct release_piece *rl_pieces; /* the last piece, or NULL */
	size_t rl_count;		 /* number of pieces */
	size_t rl_size;	    /* bytes of the next piece; 0 if no release runs */
	size_t rl_resident; /* resident bytes of the last piece */
	unsigned rl_misses; /* pieces of this size with few resident pages */
	bool rl_trims;	    /* true while malloc_trim(3) runs */
	unsigned rl_most;   /* recent highest number of connections */
	unsigned rl_ticks;  /* successive ticks that justify a release */
	bool rl_stopped;    /* true after release_stop */
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
 * Begins to return free memory to the kernel when half of the connections or more have been closed
 * for 2 s, or if high is true for 1 s.  Call four times a second.
 */
void release_tick(
    struct release *, unsigned connections, bool high, struct service *);

/*
 * release_now begins to return free memory to the kernel, unless a release runs or was stopped.
 * release_all returns it before it returns itself.  Call release_all when the loop has ended.
 */
void release_now(struct release *);
void release_all(struct release *);

/*
 * Stops a release after its current piece, and prevents further ones.  Call when a draining worker
 * has no connection left, so that its end waits for one piece or one malloc_trim(3) at most.
 */
void release_stop(struct release *);

#endif
