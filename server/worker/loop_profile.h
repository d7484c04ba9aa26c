/*
 * loop_profile: the work of an event-loop iteration.  An iteration begins with its first
 * callback and ends with its last: waiting for events is not part of it, nor is the
 * loop's own work before the first one.  Pure: times are microseconds of one clock.
 */
#ifndef SERVER_WORKER_LOOP_PROFILE_H
#define SERVER_WORKER_LOOP_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum loop_phase {
	LOOP_NONE,
	LOOP_ACCEPT,  /* new connections */
	LOOP_EVENTS,  /* of connections: requests, writability */
	LOOP_SLICES,  /* answers that are being sent */
	LOOP_DONE,    /* completions of disk waits */
	LOOP_TIMERS,  /* timeouts, and periodic work */
	LOOP_CONTROL, /* commands of main */
	LOOP_PHASES
};

/* Zero it first. */
struct loop_profile {
	enum loop_phase
	    lap_kind; /* current phase; LOOP_NONE: no iteration has begun */
	uint64_t lap_begin; /* of the iteration */
	uint64_t lap_since; /* of the current phase */
	uint64_t lap_us[LOOP_PHASES];
	unsigned lap_calls[LOOP_PHASES];
};

/* The current phase is kind from now on. */
void profile_change(struct loop_profile *, enum loop_phase kind, uint64_t now);

/* The duration of the iteration; profile_text can still be called. */
uint64_t profile_end(struct loop_profile *, uint64_t now);

/*
 * "answers 61 ms (14), requests 2 ms (3)": the phases of a millisecond or more, or, if
 * there are none, the longest: "requests 0.7 ms (3)".
 */
void profile_text(const struct loop_profile *, char *text, size_t size);

/* The next iteration may begin. */
void profile_clear(struct loop_profile *);

#endif
