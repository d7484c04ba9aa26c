/*
 * sweep: the order of reads on a disk that rotates.
 *
 * For each window that is not near the last one the disk seeks, which takes as long as reading 2 MiB.
 * So next windows (JOB_LONG) are read in sweeps: up to SWEEP_JOBS jobs in the order of their places
 * on the disk.  Windows of one transmission in the same sweep are read without a seek.  A job that is
 * queued while the last sweep runs waits for the next sweep, so no transmission can keep the head
 * near its file.
 *
 * A drive prefers the reads near its head, so a sweep would delay a first window elsewhere.  So
 * SWEEP_LONG limits the jobs in flight, and no JOB_LONG begins while a JOB_NEW runs that was queued
 * SWEEP_LATE ago, unless the disk fails to read it (SWEEP_STUCK).
 *
 * A client that requests many ranges at once would take the head from the others.  So while others have
 * JOB_LONG jobs, a client has at most SWEEP_FREE more JOB_NEW jobs than JOB_LONG jobs.  Its further first
 * windows are deferred: they become JOB_LONG jobs, of which SWEEP_RESUMED and a quarter of the number of
 * counted JOB_LONG jobs wait in the sweeps at a time.  Clients take turns to have a job resumed.  Other
 * clients do not join a deferred window.  A proxy counts as one client, but it has the JOB_LONG jobs of all
 * its users, so it may have as many JOB_NEW jobs.  Jobs of client 0 are not counted.
 *
 * sysfs reports most virtual disks as rotating.  So these rules apply only to a disk that was as slow
 * as one with a single head (sw_slow).  The device's lock guards struct sweep, except sw_slow.
 */
#ifndef LIB_DISK_SWEEP_H
#define LIB_DISK_SWEEP_H

#include <stdatomic.h>

#include "lib/disk/pool.h"

#define SWEEP_JOBS    64		/* maximum jobs of a sweep */
#define SWEEP_LONG    ((size_t)8 << 20) /* bytes of JOB_LONG jobs in flight */
#define SWEEP_LATE    100000		/* microseconds */
#define SWEEP_STUCK   1000000		/* microseconds */
#define SWEEP_PLACES  4096		/* size of the table of places */
#define SWEEP_CLIENTS 1024		/* size of the table of clients */
#define SWEEP_WAYS    8			/* entries that a client could have */
#define SWEEP_FREE    8			/* a browser has six connections */
#define SWEEP_RESUMED 4
#define SWEEP_SHARE \
	8 /* part of the device's queue that one client's deferred jobs may fill */

STAILQ_HEAD(jobs, job);

struct sweep {
	atomic_bool sw_slow; /* true if the rules apply */
	struct job *sw_last; /* last queued job, or NULL */
	/* last queued job of the sweeps before the last one, or NULL */
	struct job *sw_before;
	unsigned sw_jobs;     /* jobs of the last sweep */
	bool sw_begun;	      /* true if a job of the last sweep has begun */
	struct jobs sw_news;  /* running JOB_NEW jobs, first begun first */
	unsigned sw_running;  /* running JOB_NEW and JOB_LONG jobs */
	uint64_t sw_since;    /* time up to which sw_busy counts */
	uint64_t sw_busy;     /* time with a running job, microseconds */
	uint64_t sw_measured; /* bytes read in sw_busy, with seeks */
	uint64_t sw_rate;     /* last measured rate, bytes/s, or 0 */
	unsigned sw_longs;    /* counted JOB_LONG jobs, queued and running */
	unsigned sw_resumed;  /* resumed jobs that have not begun */
	/* clients with deferred jobs; the first is next */
	TAILQ_HEAD(, sweep_client) sw_deferring;
	struct sweep_client {
		unsigned sc_client;
		unsigned sc_news; /* queued and running JOB_NEW jobs */
		unsigned
		    sc_longs; /* the same of JOB_LONG, but not of resumed jobs */
		unsigned sc_deferred; /* length of sc_jobs */
		struct jobs sc_jobs;  /* deferred jobs, oldest first */
		TAILQ_ENTRY(sweep_client) sc_link;
	} sw_clients[SWEEP_CLIENTS];
	struct sweep_client
	    sw_rest; /* counts the jobs of all clients that found no entry */
	struct sweep_place {
		uint64_t sp_ino;
		uint64_t sp_start; /* place of the file's first byte */
	} sw_places[SWEEP_PLACES];
};

/* Returns NULL if memory is short.  The caller frees the result (free(3)). */
struct sweep *sweep_create(void);

/*
 * Counts a JOB_NEW or JOB_LONG of a client until sweep_end.  Defers a JOB_NEW of a client that has too many,
 * which becomes a JOB_LONG.  Returns false, and the job is not counted, if the client already has `most`
 * deferred jobs.  Call before sweep_insert.
 */
bool sweep_account(struct sweep *, struct job *, unsigned most);

/*
 * Inserts a job into the queue of its kind, a JOB_LONG of a slow disk at its place in the last sweep.  A
 * deferred job waits for sweep_resume.  The sweep may be NULL.
 */
void sweep_insert(struct sweep *, struct jobs *, struct job *);

/* Resumes deferred jobs: inserts them into the queue of JOB_LONG.  Call before a job is chosen. */
void sweep_resume(struct sweep *, struct jobs *);

/* Call when the job was removed from its queue, and when it has ended. */
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
