/*
 * gate: lets disk threads on the same processor submit reads one after another, with a
 * pause in between in which other threads may run.
 *
 * A disk that completes many reads at once makes many disk threads runnable at once,
 * each with 0.1 ms of work to submit the next window; a loop on the same processor
 * would wait for all of them, 1.5 ms for 16 threads.
 *
 * A turn is advisory, not a lock: if it is not returned within GATE_LONG, because a submission
 * waits for the disk, the other threads continue without the turn.
 */
#ifndef LIB_DISK_GATE_H
#define LIB_DISK_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define GATE_PAUSE 200	 /* pause between two turns, microseconds */
#define GATE_LONG  10000 /* longest wait for the end of a turn, microseconds */

struct gate {
	pthread_mutex_t gt_lock;
	pthread_cond_t gt_free;
	bool gt_taken;
	unsigned gt_given; /* number of turns that have ended */
	uint64_t gt_next;  /* earliest start of the next turn, microseconds */
};

void gate_init(struct gate *);
void gate_destroy(struct gate *);

/*
 * Waits for the turn.  Returns true if the caller got the turn; the caller then returns it by
 * gate_give.  Any thread.
 */
bool gate_take(struct gate *);
void gate_give(struct gate *);

#endif
