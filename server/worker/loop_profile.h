/*
 * loop_profile: measures the phases of an event-loop iteration.  An iteration begins with its first
 * callback and ends with its last.  The wait for events, and the loop's own work before the first
 * callback, are not part of it.  Pure: times are microseconds of one clock.
 */
#ifndef SERVER_WORKER_LOOP_PROFILE_H
#define SERVER_WORKER_LOOP_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum loop_phase {
	LOOP_NONE,
	LOOP_ACCEPT,  /* new connections */
	LOOP_EVENTS,  /* events of connections: requests, writability */
	LOOP_SLICES,  /* responses that are being sent */
	LOOP_DONE,    /* completions of disk waits */
	LOOP_TIMERS,  /* timeouts, and periodic work */
	LOOP_CONTROL, /* commands of main */
	LOOP_PHASES
};

/* Initialise with zeros. */
struct loop_profile {
	enum loop_phase lap_kind;     /* current phase; LOOP_NONE before any */
	uint64_t lap_begin;	      /* time when the iteration began */
	uint64_t lap_since;	      /* time when the current phase began */
	uint64_t lap_us[LOOP_PHASES]; /* duration of each phase */
	unsigned lap_calls[LOOP_PHASES]; /* callbacks in each phase */
};

/* Ends the current phase, and begins the phase `kind`. */
void profile_change(struct loop_profile *, enum loop_phase kind, uint64_t now);

/* Ends the iteration, and returns its duration.  profile_text may be called afterwards. */
uint64_t profile_end(struct loop_profile *, uint64_t now);

/*
 * Writes the phases of 1 ms or more, each with its number of callbacks, such as "responses 61 ms
 * (14), requests 2 ms (3)".  If no phase is so long, writes the longest, such as "requests 0.7 ms
 * (3)".
 */
void profile_text(const struct loop_profile *, char *text, size_t size);

/* Clears the profile for the next iteration. */
void profile_clear(struct loop_profile *);

#endif
