/*
 * spin: detects an event loop that computes without a result.  Such a loop iterates, so its ticks
 * alone would look healthy.  Pure: times are microseconds.
 */
#ifndef SERVER_WORKER_SPIN_H
#define SERVER_WORKER_SPIN_H

#include <stdbool.h>
#include <stdint.h>

/* Initialise with zeros. */
struct spin {
	uint64_t sp_done; /* `done` of the last call */
	uint64_t sp_cpu;  /* `cpu` of the last call */
	uint64_t sp_now;  /* `now` of the last call; 0 before the first */
};

/*
 * Returns true if, since the last call, the thread has computed for a sixteenth or more of the time
 * while `done` has not changed.  `done` is a sum that grows with every socket read, byte sent,
 * connection accepted and completion handled; `cpu` is the thread's processor time.  Call four
 * times a second.
 */
bool spin_look(struct spin *, uint64_t done, uint64_t cpu, uint64_t now);

#endif
