/*
 * loop_profile: what the turn of a loop was spent on.  A turn begins with its first callback
 * and ends with its last: waiting for events is not part of it, nor is the loop's
 * own work before the first one.  Pure: times are microseconds of one clock.
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
	LOOP_TURNS,   /* answers that are being sent */
	LOOP_DONE,    /* what the disk has delivered */
	LOOP_TIMERS,  /* time-outs, and what is done a few times a second */
	LOOP_CONTROL, /* what main has said */
	LOOP_PHASES
};

/* Zero it first. */
struct loop_profile {
	enum loop_phase
	    lap_kind;	    /* what it is at; LOOP_NONE: no turn has begun */
	uint64_t lap_begin; /* of the turn */
	uint64_t lap_since; /* of what it is at */
	uint64_t lap_us[LOOP_PHASES];
	unsigned lap_calls[LOOP_PHASES];
};

/* From now on it is at kind. */
void profile_change(struct loop_profile *, enum loop_phase kind, uint64_t now);

/* The length of the turn, which profile_text can still be asked about. */
uint64_t profile_end(struct loop_profile *, uint64_t now);

/*
 * "answers 61 ms (14), requests 2 ms (3)": what took a millisecond or more, or, if
 * nothing did, what took most: "requests 0.7 ms (3)".
 */
void profile_text(const struct loop_profile *, char *text, size_t size);

/* The next turn may begin. */
void profile_clear(struct loop_profile *);

#endif
