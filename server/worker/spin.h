/*
 * spin: does a loop compute without anything coming of it?  Such a loop turns, so its ticks alone
 * would say that all is well.  Pure: times are microseconds.
 */
#ifndef SERVER_WORKER_SPIN_H
#define SERVER_WORKER_SPIN_H

#include <stdbool.h>
#include <stdint.h>

/* Zero it first. */
struct spin {
	uint64_t sp_done; /* as of the last look, as are the next two */
	uint64_t sp_cpu;
	uint64_t sp_now;
};

/*
 * Some times a second.  done: a sum that grows with every byte received or sent, connection
 * accepted, wait ended; cpu: time that the thread has computed.  Returns true if it has computed
 * for a sixteenth of the time since the last look or more, and done is what it was.
 */
bool spin_look(struct spin *, uint64_t done, uint64_t cpu, uint64_t now);

#endif
