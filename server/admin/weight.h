/*
 * weight: how much of its share of requests a node asks a balancer for, in percent.  Pure.
 *
 * Each of the things that a node can lack gives a part of 1, and the least one counts:
 *
 *	budget    for bytes that are fetched and not sent yet: 1 up to half of it, then less,
 *	          a quarter when all is used: the node still works
 *	disk      500 ms / the mean time from a disk's queue to the end of a job
 *	silence   while a disk has jobs and ends none: 1 up to 500 ms, then less, 0 after 1 s
 *	lag       10 ms / the mean event-loop iteration, or a tick's delay
 *
 * A sample is taken every WEIGHT_PERIOD_US.  Each moves the share half of the distance down, or a
 * sixteenth of it up: a disk that hangs costs most of the share within a second and a half, and it
 * comes back in ten seconds, so that a balancer does not swing.  What is said changes
 * by WEIGHT_STEP points at least, and never goes below 1.
 */
#ifndef SERVER_ADMIN_WEIGHT_H
#define SERVER_ADMIN_WEIGHT_H

#include <stdint.h>

#define WEIGHT_PERIOD_US 250000
#define WEIGHT_STEP	 5

struct weight {
	double wt_now;	  /* smoothed, 0 to 1 */
	unsigned wt_said; /* percent */
};

/* Each is a part of 1; times are microseconds. */
double weight_of_budget(uint64_t used, uint64_t limit);
double weight_of_wait(uint64_t mean_us);
double weight_of_silence(uint64_t us);
double weight_of_lag(uint64_t us);

/* It lacks nothing. */
void weight_init(struct weight *);

/* Once for each period, with the least part. */
void weight_add(struct weight *, double part);

#endif
