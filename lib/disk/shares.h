/*
 * shares: the order in which the jobs of a device begin.
 *
 * What clients share is the time of the device's threads.  Four rules divide it:
 *
 * Kinds: the kind begins next whose jobs used the least time.  So lookups that read nothing begin at
 * once, and lookups of uncached directories cannot keep windows from the disk.  A kind without queued
 * jobs gains no credit (start-time fair queueing).
 *
 * Clients: within a kind clients take turns, and so do the connections of a client.
 *
 * Crowds: a client that has SHARES_CLIENT lookups and first windows joins the crowd with its further
 * ones.  The crowd has kinds of its own, whose time counts SHARES_COST times, and occupies at most three
 * quarters of the threads, which leaves threads for others.  Where some jobs take longer than SHARES_FAST, each
 * read waits for all reads that were submitted before; so there, while others have jobs, or had one
 * lately, the crowd occupies 1/SHARES_THREADS of the threads.  A connection stays in the crowd until it
 * has no job there, so its requests keep their order.  Jobs of clients that have closed their side
 * (POOL_LAST) are in the crowd as those of one client.
 *
 * Processes: several that use the device may share a struct shares_common.  Then jobs outside the crowd
 * count in whichever process they are, and the crowds of n processes together have the threads that one has
 * beside others.  A crowd whose part is less than a thread has one, which pauses after each job.  A process
 * writes only times that expire, so one that was killed leaves nothing behind.
 *
 * Jobs of client 0 take turns as one client, which never joins the crowd.  The device's lock guards
 * struct shares.
 */
#ifndef LIB_DISK_SHARES_H
#define LIB_DISK_SHARES_H

#include <sys/queue.h>

#include <stdatomic.h>

#include "lib/disk/pool.h"

/* lookups and first windows of a client outside the crowd */
#define SHARES_CLIENT	  4
#define SHARES_COST	  4
#define SHARES_THREADS	  16
#define SHARES_FAST	  5000	   /* microseconds */
#define SHARES_READS	  50	   /* least time of a job that reads, us */
#define SHARES_LATELY	  1000000  /* microseconds */
#define SHARES_HELD	  30000000 /* longest expected time of a job, us */
#define SHARES_PROCESSES  64
#define SHARES_DEVICES	  64
#define SHARES_LONGEST	  1000000 /* a job counts for at most this time, us */
/* jobs that a thread defers without releasing the device's lock */
#define SHARES_DEFERS	  16
#define SHARES_QUEUE	  8 /* 1/SHARES_QUEUE of the queue is for one client */
#define SHARES_CHAINS	  1024
/* low bits of a client's number, which tell its connections apart */
#define SHARES_CONNECTION 12

TAILQ_HEAD(jobs, job);
TAILQ_HEAD(share_ring, share);

/* Jobs of one kind of a client or a connection. */
struct share_line {
	TAILQ_ENTRY(share) li_next; /* link in the client's or device's ring */
	struct share_ring li_ring; /* a client's connections with queued jobs */
	struct jobs li_jobs;	   /* a connection's queued jobs */
};

/* A client or one of its connections; freed with its last job. */
struct share {
	LIST_ENTRY(share) shr_next;
	struct share *shr_client; /* client of a connection, or NULL */
	unsigned shr_number;
	unsigned shr_jobs; /* queued and running jobs */
	unsigned shr_queued;
	unsigned shr_light; /* lookups and first windows outside the crowd */
	unsigned shr_crowd; /* jobs in the crowd */
	struct share_line shr_lines[JOB_KINDS];
};

/* Times until which a process counts for a device, us. */
struct shares_seen {
	_Atomic uint64_t se_others; /* if it has jobs outside the crowd */
	_Atomic uint64_t se_crowd;  /* if it has a crowd */
};

/* Memory of all processes, zeroed at first.  Devices that share an entry count as one. */
struct shares_common {
	struct shares_seen co_seen[SHARES_PROCESSES][SHARES_DEVICES];
};

struct shares {
	/* clients with queued jobs of each kind; the first is next */
	struct share_ring sh_rings[JOB_KINDS];
	/* jobs that have not begun, also those in a sweep */
	unsigned sh_waiting[JOB_KINDS];
	/* time of threads, with the expected time of running jobs, us */
	uint64_t sh_used[JOB_KINDS];
	uint64_t sh_cost[JOB_KINDS]; /* average time of a job, us */
	/* time of the longest of the last lookups and first windows, us */
	uint64_t sh_longest;
	/* sh_used of the kind that began last, before its job */
	uint64_t sh_now;
	/* queued and running jobs of clients outside the crowd */
	unsigned sh_others;
	unsigned sh_last;  /* queued jobs of POOL_LAST */
	unsigned sh_crowd; /* running jobs of the crowd */
	/* time at which a job of the crowd last ended, and for how long it ran, us */
	uint64_t sh_crowd_at, sh_crowd_took;
	struct shares_seen *sh_seen; /* that of this process */
	/* those of all processes, SHARES_DEVICES apart */
	struct shares_seen *sh_all;
	unsigned sh_processes;
	struct shares_seen
	    sh_alone; /* that of a process with memory of its own */
	LIST_HEAD(, share) sh_chains[SHARES_CHAINS];
};

void shares_init(struct shares *);

/* Lets processes share the threads of the device with this number.  Call before the first job. */
void shares_share(
    struct shares *, struct shares_common *, unsigned process, uint64_t device);

/*
 * Queues a job, and changes its kind if it joins the crowd.  Returns 0, -EAGAIN if its client has `most`
 * queued jobs, or -ENOMEM.
 */
int shares_add(struct shares *, struct job *, unsigned most);

/*
 * Moves a job that waits in the crowd to another client, unless that one would crowd, too, and the next window of one
 * client to another that waits for it as its first window.  Call when the client waits for the job as well;
 * `kind` is the kind that a job of its own would have.
 */
void shares_join(struct shares *, struct job *, enum job_kind kind,
    unsigned client, uint64_t now_us);

/* Moves a queued job to the crowd, as one of POOL_LAST.  Returns false if memory is short. */
bool shares_defer(struct shares *, struct job *, uint64_t now_us);

/* Returns the next job of the kind, or NULL. */
struct job *shares_first(const struct shares *, enum job_kind);

/* Returns true if a job of the crowd, which waits, may begin on a device with this many threads. */
bool shares_crowd_may(struct shares *, unsigned threads, uint64_t now_us);

/*
 * Returns the time after which to call shares_crowd_may again although no job ends before, us, or 0: the
 * other processes count this one only for so long.
 */
uint64_t shares_crowd_pause(
    const struct shares *, unsigned threads, uint64_t now_us);

/* Returns true if `a` begins before `b`, where both have jobs. */
bool shares_before(const struct shares *, enum job_kind a, enum job_kind b);

/*
 * shares_take removes a job from the queue, after which the next client and connection have their turn.
 * shares_begin counts the job as running.
 */
void shares_take(struct shares *, struct job *);
void shares_begin(struct shares *, struct job *, uint64_t now_us);

/* Ends a running job.  The time of a job that did not run (job_left) is in no average. */
void shares_end(struct shares *, struct job *, uint64_t now_us);

static inline bool
shares_is_crowd(enum job_kind kind)
{
	return kind == JOB_CROWD_OPEN || kind == JOB_CROWD_NEW;
}

#endif
