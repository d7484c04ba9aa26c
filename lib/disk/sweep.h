/*
 * sweep: the order of reads on a disk that rotates.
 *
 * For each window that is not near the last one the disk seeks, which takes as long as reading 2 MiB.
 * So next windows (JOB_LONG) are read in sweeps: up to SWEEP_JOBS jobs, which clients have chosen by turns
 * (shares.h), in the order of their places on the disk.  Windows of one transmission in the same sweep are
 * read without a seek.  A job that is queued while a sweep runs waits for the next sweep, so no
 * transmission can keep the head near its file.
 *
 * A drive prefers the reads near its head, so a sweep would delay a first window elsewhere.  So
 * SWEEP_LONG limits the jobs in flight, and no JOB_LONG begins while a JOB_NEW runs that was queued
 * SWEEP_LATE ago, unless the disk fails to read it (SWEEP_STUCK).
 *
 * sysfs reports most virtual disks as rotating.  So these rules apply only to a disk that was as slow
 * as one with a single head (sw_slow).  The device's lock guards struct sweep, except sw_slow.
 */
#ifndef LIB_DISK_SWEEP_H
#define LIB_DISK_SWEEP_H

#include <stdatomic.h>

#include "lib/disk/shares.h"

#define SWEEP_JOBS   64		       /* maximum jobs of a sweep */
#define SWEEP_LONG   ((size_t)8 << 20) /* bytes of JOB_LONG jobs in flight */
#define SWEEP_LATE   100000	       /* microseconds */
#define SWEEP_STUCK  1000000	       /* microseconds */
#define SWEEP_PLACES 4096	       /* size of the table of places */

struct sweep {
	atomic_bool sw_slow;  /* true if the rules apply */
	struct jobs sw_jobs;  /* the sweep: its jobs that have not begun */
	struct jobs sw_news;  /* running JOB_NEW jobs, first begun first */
	unsigned sw_running;  /* running JOB_NEW and JOB_LONG jobs */
	uint64_t sw_since;    /* time up to which sw_busy counts */
	uint64_t sw_busy;     /* time with a running job, microseconds */
	uint64_t sw_measured; /* bytes read in sw_busy, with seeks */
	uint64_t sw_rate;     /* last measured rate, bytes/s, or 0 */
	struct sweep_place {
		uint64_t sp_ino;
		uint64_t sp_start; /* place of the file's first byte */
	} sw_places[SWEEP_PLACES];
};

/* Returns NULL if memory is short.  The caller frees the result (free(3)). */
struct sweep *sweep_create(void);

/*
 * Returns the next job of the sweep, or NULL.  Starts a sweep with queued JOB_LONG jobs if the last one has
 * ended and the disk is slow.
 */
struct job *sweep_first(struct sweep *, struct shares *);

/* Call when a job begins, which removes it from the sweep, and when it has ended. */
void sweep_begin(struct sweep *, struct job *, uint64_t now_us);
void sweep_end(struct sweep *, const struct job *, uint64_t now_us);

/*
 * Returns the maximum bytes of JOB_LONG jobs in flight on a slow disk.  Returns 0 if `waits` is true and
 * the running JOB_NEW jobs are late.
 */
size_t sweep_long(const struct sweep *, bool waits);

/* Notes that the byte at `off` of the file is at this place of the disk. */
void sweep_learn(struct sweep *, uint64_t ino, off_t off, uint64_t place);

/* Returns the place of the byte at `off` if the file is contiguous, or 0 if its place is unknown. */
uint64_t sweep_place(const struct sweep *, uint64_t ino, off_t off);

#endif
