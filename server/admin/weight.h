/*
 * weight: computes a node's weight for a balancer, in percent of its usual share of requests.
 * Pure.
 *
 * Each resource that can be short has a part from 0 to 1, and the smallest part counts:
 *
 *	budget    1 while at most half of the budget for unsent bytes is used, then less, and 1/4
 *	          when all of it is used, since the node still works
 *	disk      500 ms / the mean time from a disk's queue to the completion of a job
 *	silence   1 if a disk with jobs completed a job within 500 ms, then less, 0 after 1 s
 *	lag       10 ms / the mean event-loop iteration, or a tick's delay
 *
 * The agent takes a sample every WEIGHT_PERIOD_US.  A lower sample moves the weight by half of the
 * distance, a higher sample by a sixteenth.  So a disk that hangs costs most of the weight within a
 * second and a half, but the weight recovers in ten seconds, so that a balancer does not oscillate.
 * The reported weight changes by at least WEIGHT_STEP points, or to 1 or 100, and is never below 1.
 */
#ifndef SERVER_ADMIN_WEIGHT_H
#define SERVER_ADMIN_WEIGHT_H

#include <stdint.h>

#define WEIGHT_PERIOD_US 250000 /* time between two samples */
#define WEIGHT_STEP	 5	/* minimum change of wt_said, percent */

struct weight {
	double wt_now;	  /* smoothed weight, 0 to 1 */
	unsigned wt_said; /* reported weight, percent */
};

/*
 * Return the weight that one resource permits, from 0 (overloaded) to 1.  Times are in
 * microseconds.
 */
double weight_of_budget(uint64_t used, uint64_t limit);
double weight_of_wait(uint64_t mean_us);
double weight_of_silence(uint64_t us);
double weight_of_lag(uint64_t us);

/* Sets the weight to 100 %. */
void weight_init(struct weight *);

/* Adds a sample: `part` is the smallest part of all resources.  Call once per WEIGHT_PERIOD_US. */
void weight_add(struct weight *, double part);

#endif
