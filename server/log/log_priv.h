/*
 * log_priv: declarations that the files of this directory share.  No other file includes this
 * header.
 *
 *   log.c      the worker's side
 *   journal.c  priorities for journald
 *   start.c    start and shutdown
 *   writer.c   the writer thread
 *
 * Struct log and its sinks belong to the writer thread while it runs.  Of a log_writer's fields
 * only those marked as shared may be used by both threads.
 */
#ifndef SERVER_LOG_LOG_PRIV_H
#define SERVER_LOG_LOG_PRIV_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "lib/os/ring.h"
#include "server/log/format.h"
#include "server/log/log.h"
#include "server/log/sink.h"
#include "server/util/thread.h"

enum kind { KIND_ACCESS, KIND_NOTICE, KIND_ERROR, NKINDS };

/* Queue of lines from one worker to one sink. */
struct lane {
	struct ring *ln_ring; /* NULL if the lane is off */
	struct sink *ln_sink;
	bool ln_nudged; /* true if the writer was woken for a half-full ring */
	atomic_uint_fast64_t ln_lost; /* shared: worker adds, writer reads */
};

struct log_writer {
	/*
	 * Shared: true if the writer thread is about to block and must be woken.  A worker
	 * publishes its record, then reads this flag.  A barrier between the two would slow down
	 * every record; without it, the worker may miss a flag that was set just before.  So the
	 * writer waits for LOG_NAP between setting the flag and its last check of the rings.  Each
	 * worker has its own flag, so that workers share no cache line.
	 */
	alignas(64) atomic_bool lw_idle;
	struct log *lw_log;
	struct lane lw_lanes[NKINDS];
	struct stamp lw_stamps[FORMAT_STAMPS];
};

struct log {
	enum log_format lg_format;
	struct log_fields lg_fields;
	struct sink lg_sinks[NKINDS];
	uint64_t lg_told[NKINDS];    /* losses reported so far */
	uint64_t lg_tell_at[NKINDS]; /* earliest time of the next report, ms */
	/* array; the last writer is the writer thread's */
	struct log_writer *lg_writers;
	unsigned lg_nwriters; /* length of lg_writers */
	int lg_wake[2];	      /* pair of os_wake_create */
	struct thread lg_thread;
	struct thread lg_last; /* thread that reports that lg_thread hangs */
	bool lg_started;
	atomic_uint lg_beat; /* shared: number of finished calls of sink_put */
	/* shared: index in lg_sinks of the file written now or last */
	atomic_int lg_busy;
	atomic_bool lg_want_stop;
};

static inline struct lane *
log_lane(struct log *lg, unsigned slot)
{
	return &lg->lg_writers[slot / NKINDS].lw_lanes[slot % NKINDS];
}

static inline unsigned
log_slots(const struct log *lg)
{
	return lg->lg_nwriters * NKINDS;
}

static inline struct log_writer *
log_own(struct log *lg)
{
	return &lg->lg_writers[lg->lg_nwriters - 1];
}

/* Returns true if `fd`, which is STDOUT_FILENO or STDERR_FILENO, leads to journald. */
bool log_to_journal(int fd);

/* Returns the number of lines of this kind lost so far.  Callable from any thread. */
uint64_t log_lost(struct log *, int kind);

/* Runs the writer thread.  `arg` is the log. */
void log_thread(void *arg);

#endif
