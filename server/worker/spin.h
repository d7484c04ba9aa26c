/*
 * spin: detects a loop that computes without a result.  Such a loop iterates, so its ticks alone
 * would look healthy.  Pure: times are microseconds.
 */
#ifndef SERVER_WORKER_SPIN_H
#define SERVER_WORKER_SPIN_H

#include <stdbool.h>
#include <stdint.h>

/* Initialise with zeros. */
struct spin {
	uint64_t sp_done; /* done at the last call */
	uint64_t sp_cpu;  /* cpu at the last call */
	uint64_t sp_now;  /* now at the last call */
};

/*
 * Call some times a second.  done is a sum that grows with every byte received or sent, connection
 * accepted and wait ended; cpu is the thread's processor time, microseconds.  Returns true if the
 * thread has computed for a sixteenth or more of the time since the last call, and done has not
 * changed.
 */
bool spin_look(struct spin *, uint64_t done, uint64_t cpu, uint64_t now);

#endif
