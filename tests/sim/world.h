/*
 * world: a simulated machine with one processor, for the library and the server as they ship.  Its
 * threads are coroutines of one real thread, its clock is virtual, and everything that happens is
 * drawn from a seed.  Seeds that are even have a program that uses the library, others the server.
 * All objects, and those of libevent, libnghttp2 and http-parser, are linked with --wrap, so each of
 * their system calls, clock reads and pthread functions is a function of tests/sim/, and a place at
 * which another thread may continue (world_point).
 *
 *   world    scheduler, clock, random numbers, events, locks (threads.c)
 *   kernel   files, page cache, disks, descriptors (kernel.c, pages.c, disk.c, calls.c, maps.c)
 *   socket   sockets, pipes and the clients at their other end (socket.c)
 *   machine  /proc, /sys, limits, heap (machine.c)
 *   net      what a server needs besides: listening, receiving, poll(2), epoll(7), its master
 *   scene    loops and clients that use lib/pagewise.h, and writers (scene.c, client.c)
 *   served   the server from serve() on, and its master's orders (served.c)
 *   peer     clients that speak HTTP/1 and HTTP/2, and the check of responses (peer.c, answer.c)
 *   story    what happened, the table of what was covered (story.c)
 *   main     seeds, shrinking (main.c)
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define US	  UINT64_C(1000) /* nanoseconds */
#define MS	  (1000 * US)
#define SECOND	  (1000 * MS)
#define NEVER	  UINT64_MAX
#define TASKS_MAX 160
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

/* What may go wrong in a world. */
enum fault {
	FAULT_RECLAIM, /* the kernel reclaims pages at any moment */
	FAULT_WRITERS, /* files are overwritten, grow, are truncated, replaced */
	FAULT_SLOW,    /* disks take long */
	FAULT_HANG,    /* disks hang for seconds and come back */
	FAULT_ERRORS,  /* reads fail */
	FAULT_SHORT,   /* reads are short */
	FAULT_RESETS,  /* clients leave */
	FAULT_STALLS,  /* clients do not read */
	FAULT_PREEMPT, /* threads lose the processor for long */
	FAULT_MEMORY,  /* malloc(3) fails */
	FAULT_THREADS, /* no thread can be started */
	FAULT_LOOKUPS, /* names leave the cache of names */
	FAULT_REFUSED, /* calls that file systems and filters refuse */
	FAULTS
};

/* Worlds in which certain races are likely; some are mixed. */
enum flavour {
	POPULAR, /* all clients want the same files of another owner */
	STALLED, /* clients that do not read hold the budget */
	QUEUES,	 /* small files beside downloads, on a slow file server */
	DROPS,	 /* files are dropped while other loops send them */
	COLD,	 /* many small files that nobody has read */
	FLAVOURS,
	MIXED = FLAVOURS
};

/* Sizes of a world, drawn from the seed, then lowered by the command line. */
struct plan {
	uint64_t pl_seed;
	unsigned pl_order; /* number of the order in which threads run */
	unsigned pl_loops, pl_clients, pl_files, pl_disks, pl_requests;
	unsigned pl_threads, pl_queue;
	unsigned pl_faults; /* bits */
	unsigned pl_paths;  /* bits: send paths that clients may use */
	bool pl_pct;	    /* order by priorities that change seldom */
	/*
	 * What this world has of the rest, in bits: a world that has only one kind of file, reader or cache meets
	 * their races more often than one that has them all.
	 */
	unsigned pl_caches, pl_readers, pl_sinks, pl_sizes, pl_kinds;
	unsigned pl_reclaims, pl_preempts; /* one in so many calls */
	enum flavour pl_flavour;
	bool pl_pieces; /* disks end parts of a read at different times */
	bool
	    pl_early; /* a loop ends when its clients have gone, a server while clients are there */
	bool pl_server; /* a server runs: served.c */
};

struct task;
typedef void task_f(void *arg);
typedef void event_f(void *arg);

extern struct plan plan;
extern uint64_t world_now; /* nanoseconds */
extern struct task *world_me;

static inline bool
has_fault(enum fault f)
{
	return (plan.pl_faults >> f & 1) != 0;
}

void world_begin(void);
/* Runs tasks until the task that began the world ends. */
void world_run(task_f *first, void *arg);

/* Random numbers: below n; true once in n calls; between two times. */
uint64_t world_random(void);
unsigned world_below(unsigned n);
bool world_once_in(unsigned n);
/* Returns the number of a random bit that is set below n. */
unsigned world_one_of(unsigned bits, unsigned n);
uint64_t world_between(uint64_t least, uint64_t most);

/* Starts a task.  `loop` is the number of a loop, which must not wait, or -1. */
struct task *world_start(const char *name, int loop, task_f *f, void *arg);
const char *task_name(const struct task *);
int task_loop(const struct task *);
void task_rename(const char *name);
/* Makes the present task the loop of this number. */
void task_become_loop(int loop);
bool task_is_loop(void);
/* Prints where each task is. */
void tasks_print(void);
/* Time at which the loop's step began, see scene.c. */
uint64_t *task_step(void);
uint64_t *task_switches(void);

/* A place at which others may run.  Called at the start of each wrapped call. */
void world_point(const char *call);

/* Waits until world_wake of `what`, or until the time.  Returns false at the time. */
bool world_wait(const void *what, uint64_t until);
/* Wakes up to `most` tasks that wait for `what`, in any order. */
void world_wake(const void *what, unsigned most);
void world_yield(void);
void world_sleep(uint64_t ns);

/* Calls f at the time, on no task.  f must not wait. */
void world_at(uint64_t when, event_f *f, void *arg);

/* Ends the world: prints why, and the story if this run has one. */
_Noreturn void world_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* Locks that are held: by the present task; fails if any lock is left at the end. */
unsigned locks_held(void);
void locks_check_end(void);
/* Fails if a loop waits for a lock of the present task, which now waits for a disk. */
void locks_check_io(void);

/* ------------------------------------------------------------------- story */
void story(const char *format, ...) __attribute__((format(printf, 1, 2)));
void story_print(void);
extern bool story_kept;

/* Rows of the table of what was covered, counted over all seeds. */
#define COVER_ROWS 400
struct cover_row {
	char cr_name[40];
	uint64_t cr_count;
};
extern struct shared {
	char sh_why[512];
	uint64_t sh_steps, sh_virtual, sh_bytes;
	unsigned sh_rows;
	struct cover_row sh_cover[COVER_ROWS];
} * shared;
void covered(const char *format, ...) __attribute__((format(printf, 1, 2)));
void covered_calls(const char *before, const char *after);
void cover_print(void);

#endif
