/*
 * weight: computes a node's weight for a balancer, in percent of its usual share of requests.  Pure.
 *
 * Each resource that can be short has a part from 0 to 1, and the smallest part counts:
 *
 *	budget    for bytes that are fetched and not sent yet: 1 up to half of it, then less,
 *	          a quarter when all is used, as the node still works
 *	disk      500 ms / the mean time from a disk's queue to the completion of a job
 *	silence   while a disk has jobs and completes none: 1 up to 500 ms, then less, 0 after 1 s
 *	lag       10 ms / the mean event-loop iteration, or a tick's delay
 *
 * A sample is taken every WEIGHT_PERIOD_US.  Each one moves the weight half of the distance down,
 * or a sixteenth of it up: a disk that hangs costs most of the weight within a second and a half,
 * and the weight recovers in ten seconds, so that a balancer does not oscillate.  The reported
 * weight changes by at least WEIGHT_STEP points, and is never below 1.
 */
#ifndef SERVER_ADMIN_WEIGHT_H
#define SERVER_ADMIN_WEIGHT_H

#include <stdint.h>

#define WEIGHT_PERIOD_US 250000 /* time between two samples */
#define WEIGHT_STEP	 5	/* least change of wt_said, percent */

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
