/*
 * log: every worker has a ring of finished lines for each file they may go to,
 * so that a file that takes nothing holds back no other; the writer thread
 * hands them to the kernel from where they are.  Struct log and its sinks
 * belong to the writer; of a log_writer's fields, those marked so are shared.
 */
#include <sys/eventfd.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/ring.h"
#include "log.h"
#include "logline.h"
#include "logsink.h"

#define LOG_RING_ACCESS	 (1024 * 1024)
#define LOG_RING_MESSAGE (64 * 1024)
#define LOG_NAP		 20   /* ms between two looks at the rings */
#define LOG_IDLE	 1000 /* ms without a record before it blocks */
#define LOG_TELL	 1000 /* ms between two reports of losses */
#define LOG_DRAIN	 1000 /* ms without progress before it ends */
#define LOG_HUNG	 1    /* s in one call, before it is left behind */

enum kind { KIND_ACCESS, KIND_NOTICE, KIND_ERROR, NKINDS };

/* Lines on their way from one worker to one sink. */
struct stream {
	struct ring *st_ring; /* NULL: nobody wants them */
	struct sink *st_sink;
	bool st_nudged; /* the writer was told that it is half full */
	atomic_uint_fast64_t st_lost; /* shared: worker adds, writer reads */
};

struct log_writer {
	/*
	 * Shared: the writer thread is about to block and wants to be woken.
	 * Only ever exchanged, on both sides: whoever comes second sees what
	 * the first one did, so either the worker sees the flag or the writer
	 * sees the record.  One flag per worker, so that they share no line.
	 */
	alignas(64) atomic_bool lw_idle;
	struct log *lw_log;
	struct stream lw_streams[NKINDS];
	struct stamp lw_stamps[LOGLINE_STAMPS];
};

struct log {
	struct sink lg_sinks[NKINDS];
	uint64_t lg_told[NKINDS];      /* losses reported so far */
	uint64_t lg_tell_at[NKINDS];   /* ms, not before */
	struct log_writer *lg_writers; /* the last one is the thread's own */
	unsigned lg_nwriters;	       /* with that one */
	int lg_wake;		       /* eventfd */
	pthread_t lg_thread;
	atomic_uint lg_beat; /* shared: how often it came back from a file */
	atomic_int lg_busy;  /* shared: the kind of that file */
	atomic_bool lg_want_reopen;
	atomic_bool lg_want_stop;
};

static uint64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void
log_wake(struct log *lg)
{
	/* EAGAIN: so many wakes are due already that one more is no matter. */
	(void)eventfd_write(lg->lg_wake, 1);
}

/*
 * ------------------------------------------------------ the worker's side
 */
struct log_writer *
log_writer(struct log *lg, unsigned i)
{
	return i + 1 < lg->lg_nwriters ? &lg->lg_writers[i] : NULL;
}

bool
log_access_on(const struct log_writer *w)
{
	return w->lw_streams[KIND_ACCESS].st_ring != NULL;
}

static char *
stream_reserve(struct stream *st, size_t len)
{
	char *p;

	p = ring_reserve(st->st_ring, len);
	if (p == NULL)
		atomic_fetch_add_explicit(
		    &st->st_lost, 1, memory_order_relaxed);
	return p;
}

static void
stream_commit(struct log_writer *w, struct stream *st, size_t len)
{
	bool above;

	ring_commit(st->st_ring, len);
	above = ring_above(st->st_ring, ring_size(st->st_ring) / 2);
	if (atomic_exchange_explicit(&w->lw_idle, false, memory_order_acq_rel))
		log_wake(w->lw_log);
	else if (above && !st->st_nudged)
		log_wake(w->lw_log);
	st->st_nudged = above;
}

void
log_access(struct log_writer *w, const struct log_record *rec)
{
	struct stream *st = &w->lw_streams[KIND_ACCESS];
	char *p;

	if (st->st_ring == NULL)
		return;
	p = stream_reserve(st, logline_bound(rec));
	if (p != NULL)
		stream_commit(w, st, logline_access(p, rec, w->lw_stamps));
}

static void
log_message(
    struct log_writer *w, enum kind kind, const char *label, struct str text)
{
	char line[LOGLINE_MESSAGE], *p;
	struct stream *st;
	int fd;

	if (w == NULL) {
		fd = kind == KIND_NOTICE ? STDOUT_FILENO : STDERR_FILENO;
		sink_write_fd(fd, line, logline_message(line, label, text));
		return;
	}
	st = &w->lw_streams[kind];
	if (st->st_ring == NULL)
		return;
	p = stream_reserve(st, LOGLINE_FIXED + 4 * text.s_len);
	if (p != NULL)
		stream_commit(w, st, logline_message(p, label, text));
}

static void __attribute__((format(printf, 4, 0)))
log_vmessage(struct log_writer *w, enum kind kind, const char *label,
    const char *fmt, va_list ap)
{
	char text[LOGLINE_FIELD + 1];
	int len;

	len = vsnprintf(text, sizeof(text), fmt, ap);
	if (len < 0)
		return;
	if ((size_t)len >= sizeof(text))
		len = sizeof(text) - 1;
	log_message(w, kind, label, (struct str){text, (size_t)len});
}

void
log_notice(struct log_writer *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_vmessage(w, KIND_NOTICE, "", fmt, ap);
	va_end(ap);
}

void
log_warn(struct log_writer *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_vmessage(w, KIND_ERROR, "warning: ", fmt, ap);
	va_end(ap);
}

void
log_error(struct log_writer *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_vmessage(w, KIND_ERROR, "", fmt, ap);
	va_end(ap);
}

/*
 * ------------------------------------------------------ the writer's side
 */
static struct stream *
log_stream(struct log *lg, unsigned slot)
{
	return &lg->lg_writers[slot / NKINDS].lw_streams[slot % NKINDS];
}

static unsigned
log_slots(const struct log *lg)
{
	return lg->lg_nwriters * NKINDS;
}

static size_t
stream_backlog(const struct stream *st)
{
	size_t len = 0;

	if (st->st_ring != NULL)
		ring_peek(st->st_ring, &len);
	return len;
}

static size_t
log_backlog(struct log *lg)
{
	size_t sum = 0;
	unsigned slot;

	for (slot = 0; slot < log_slots(lg); slot++)
		sum += stream_backlog(log_stream(lg, slot));
	return sum;
}

/* The disk may hang in here: log_destroy wants to know. */
static bool
log_put(struct log *lg, struct sink *sk, struct ring *rg)
{
	bool taken;

	atomic_store(&lg->lg_busy, (int)(sk - lg->lg_sinks));
	taken = sink_put(sk, rg);
	atomic_fetch_add(&lg->lg_beat, 1);
	return taken;
}

/*
 * Every worker has its turn: one that logs faster than a slow pipe takes must
 * not starve the others.  A line that was begun is finished first.
 */
static void
log_flush_sink(struct log *lg, struct sink *sk)
{
	unsigned i, slots = log_slots(lg);
	struct stream *st;
	bool taken;

	for (i = 0; i < slots; i++) {
		st = log_stream(lg, sk->sk_turn);
		taken = true;
		if (st->st_sink == sk && stream_backlog(st) > 0)
			taken = log_put(lg, sk, st->st_ring);
		if (sk->sk_midline)
			return;
		sk->sk_turn = (sk->sk_turn + 1) % slots;
		if (!taken)
			return;
	}
}

static struct log_writer *
log_own(struct log *lg)
{
	return &lg->lg_writers[lg->lg_nwriters - 1];
}

static void
log_do_reopen(struct log *lg)
{
	struct sink *sk = &lg->lg_sinks[KIND_ACCESS];
	int error;

	atomic_store(&lg->lg_busy, KIND_ACCESS);
	error = sink_reopen(sk, log_stream(lg, sk->sk_turn)->st_ring);
	atomic_fetch_add(&lg->lg_beat, 1);
	if (error != 0)
		log_error(log_own(lg),
		    "access log: %s: cannot re-open, "
		    "the old file stays in use: %s",
		    sk->sk_path, strerror(-error));
}

static void
log_flush(struct log *lg)
{
	int kind;

	for (kind = 0; kind < NKINDS; kind++)
		log_flush_sink(lg, &lg->lg_sinks[kind]);
	/* What was logged before a rotation is in the old file now. */
	if (atomic_exchange(&lg->lg_want_reopen, false))
		log_do_reopen(lg);
}

static uint64_t
log_lost(struct log *lg, int kind)
{
	uint64_t lost = 0;
	unsigned i;

	for (i = 0; i < lg->lg_nwriters; i++)
		lost += atomic_load_explicit(
		    &lg->lg_writers[i].lw_streams[kind].st_lost,
		    memory_order_relaxed);
	/* Where stderr itself fails there is nobody to tell. */
	if (kind != KIND_ERROR)
		lost += lg->lg_sinks[kind].sk_dropped;
	return lost;
}

static void
log_tell(struct log *lg, int kind, uint64_t lost)
{
	static const char *const names[NKINDS] = {
	    "access log", "stdout", "stderr"};
	struct sink *sk = &lg->lg_sinks[kind];

	if (sk->sk_error == 0)
		log_error(log_own(lg), "%s: %" PRIu64 " records lost",
		    names[kind], lost);
	else
		log_error(log_own(lg), "%s: %" PRIu64 " records lost: %s: %s",
		    names[kind], lost, sk->sk_path, strerror(sk->sk_error));
	sk->sk_error = 0;
}

/* Reports losses that are due; false if some must wait. */
static bool
log_report(struct log *lg, uint64_t now)
{
	bool told = true;
	uint64_t lost;
	int kind;

	for (kind = 0; kind < NKINDS; kind++) {
		lost = log_lost(lg, kind);
		if (lost == lg->lg_told[kind])
			continue;
		if (now < lg->lg_tell_at[kind] ||
		    lg->lg_sinks[KIND_ERROR].sk_full) {
			told = false;
			continue;
		}
		log_tell(lg, kind, lost - lg->lg_told[kind]);
		lg->lg_told[kind] = lost;
		lg->lg_tell_at[kind] = now + LOG_TELL;
	}
	return told;
}

/* Until somebody wakes us, a file takes more, or timeout ms (-1: none). */
static void
log_wait(struct log *lg, int timeout)
{
	struct pollfd pfd[1 + NKINDS];
	eventfd_t wakes;
	nfds_t n = 0;
	int kind;

	pfd[n++] = (struct pollfd){.fd = lg->lg_wake, .events = POLLIN};
	for (kind = 0; kind < NKINDS; kind++)
		if (lg->lg_sinks[kind].sk_full)
			pfd[n++] = (struct pollfd){
			    .fd = lg->lg_sinks[kind].sk_fd, .events = POLLOUT};
	poll(pfd, n, timeout);
	(void)eventfd_read(lg->lg_wake, &wakes);
}

static void
log_set_idle(struct log *lg, bool idle)
{
	unsigned i;

	for (i = 0; i < lg->lg_nwriters; i++)
		atomic_exchange_explicit(
		    &lg->lg_writers[i].lw_idle, idle, memory_order_acq_rel);
}

static void
log_sleep(struct log *lg)
{
	log_set_idle(lg, true);
	log_wait(lg, log_backlog(lg) == 0 ? -1 : LOG_NAP);
	log_set_idle(lg, false);
}

/* The end: files that take nothing any more are not waited for for ever. */
static void
log_drain(struct log *lg)
{
	uint64_t now = now_ms(), deadline = now + LOG_DRAIN;
	size_t left, before = SIZE_MAX;
	struct stream *st;
	unsigned slot;

	for (;; now = now_ms()) {
		log_flush(lg);
		left = log_backlog(lg);
		if (left < before)
			deadline = now + LOG_DRAIN;
		if (left == 0 || now >= deadline)
			break;
		before = left;
		log_wait(lg, LOG_NAP);
	}
	for (slot = 0; slot < log_slots(lg); slot++) {
		st = log_stream(lg, slot);
		if (stream_backlog(st) > 0)
			sink_drop(st->st_sink, st->st_ring);
	}
	log_report(lg, UINT64_MAX);
	log_flush_sink(lg, &lg->lg_sinks[KIND_ERROR]);
}

static void *
log_thread(void *arg)
{
	struct log *lg = arg;
	uint64_t now = now_ms(), busy_at = now;
	bool told;

	while (!atomic_load(&lg->lg_want_stop)) {
		if (log_backlog(lg) > 0)
			busy_at = now;
		log_flush(lg);
		told = log_report(lg, now);
		if (told && now - busy_at >= LOG_IDLE)
			log_sleep(lg);
		else
			log_wait(lg, LOG_NAP);
		now = now_ms();
	}
	log_drain(lg);
	return NULL;
}

/*
 * ------------------------------------------------------ the main thread's
 */
static int
log_open_sinks(struct log *lg, const char *path, bool to_stdout)
{
	struct sink *sinks = lg->lg_sinks;

	/* Daemons may run without these two: their lines then go nowhere. */
	(void)sink_open_fd(&sinks[KIND_NOTICE], "stdout", STDOUT_FILENO);
	(void)sink_open_fd(&sinks[KIND_ERROR], "stderr", STDERR_FILENO);
	if (path == NULL)
		return 0;
	if (to_stdout)
		return sink_open_fd(
		    &sinks[KIND_ACCESS], "stdout", STDOUT_FILENO);
	return sink_open_path(&sinks[KIND_ACCESS], path);
}

static int
writer_init(struct log_writer *w, struct log *lg, bool notices_to_stderr)
{
	struct stream *st;
	int kind, error;

	w->lw_log = lg;
	atomic_init(&w->lw_idle, false);
	for (kind = 0; kind < NKINDS; kind++) {
		st = &w->lw_streams[kind];
		atomic_init(&st->st_lost, 0);
		st->st_sink = &lg->lg_sinks[kind];
		if (kind == KIND_NOTICE && notices_to_stderr)
			st->st_sink = &lg->lg_sinks[KIND_ERROR];
		if (st->st_sink->sk_fd == -1)
			continue;
		if (w == log_own(lg) && kind != KIND_ERROR)
			continue;
		error = ring_create(
		    kind == KIND_ACCESS ? LOG_RING_ACCESS : LOG_RING_MESSAGE,
		    &st->st_ring);
		if (error != 0)
			return error;
	}
	return 0;
}

static int
log_init_writers(struct log *lg, unsigned n, bool notices_to_stderr)
{
	unsigned i;
	int error;

	lg->lg_writers = aligned_alloc(
	    alignof(struct log_writer), n * sizeof(*lg->lg_writers));
	if (lg->lg_writers == NULL)
		return -ENOMEM;
	memset(lg->lg_writers, 0, n * sizeof(*lg->lg_writers));
	lg->lg_nwriters = n;
	for (i = 0; i < n; i++) {
		error = writer_init(&lg->lg_writers[i], lg, notices_to_stderr);
		if (error != 0)
			return error;
	}
	return 0;
}

/* Signals are for the main thread. */
static int
log_start(struct log *lg)
{
	sigset_t all, old;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&lg->lg_thread, NULL, log_thread, lg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -error;
}

static void
log_free(struct log *lg)
{
	unsigned slot;
	int kind;

	for (slot = 0; slot < log_slots(lg); slot++)
		ring_destroy(&log_stream(lg, slot)->st_ring);
	for (kind = 0; kind < NKINDS; kind++)
		sink_close(&lg->lg_sinks[kind]);
	if (lg->lg_wake != -1)
		close(lg->lg_wake);
	free(lg->lg_writers);
	free(lg);
}

int
log_create(const char *access_path, unsigned nwriters, struct log **out)
{
	bool to_stdout = access_path != NULL && strcmp(access_path, "-") == 0;
	struct log *lg;
	int kind, error;

	tzset();
	lg = calloc(1, sizeof(*lg));
	if (lg == NULL)
		return -ENOMEM;
	for (kind = 0; kind < NKINDS; kind++)
		lg->lg_sinks[kind].sk_fd = -1;
	lg->lg_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (lg->lg_wake == -1) {
		error = -errno;
		goto fail;
	}
	error = log_open_sinks(lg, access_path, to_stdout);
	if (error != 0)
		goto fail;
	error = log_init_writers(lg, nwriters + 1, to_stdout);
	if (error != 0)
		goto fail;
	error = log_start(lg);
	if (error != 0)
		goto fail;
	*out = lg;
	return 0;
fail:
	log_free(lg);
	return error;
}

void
log_reopen(struct log *lg)
{
	atomic_store(&lg->lg_want_reopen, true);
	log_wake(lg);
}

static bool
join_in_time(pthread_t thread)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += LOG_HUNG;
	return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &end) == 0;
}

/* False: no file has let it go for a while. */
static bool
log_join(struct log *lg)
{
	unsigned beat, before;

	beat = atomic_load(&lg->lg_beat);
	do {
		before = beat;
		if (join_in_time(lg->lg_thread))
			return true;
		beat = atomic_load(&lg->lg_beat);
	} while (beat != before);
	return false;
}

static void *
last_words(void *arg)
{
	struct log *lg = arg;
	const char *path = lg->lg_sinks[atomic_load(&lg->lg_busy)].sk_path;

	log_error(NULL,
	    "%s does not answer: ending without it, its last lines are lost",
	    path != NULL ? path : "the log");
	return NULL;
}

/* By a thread of its own: stderr may be on the same disk. */
static void
log_abandon(struct log *lg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, last_words, lg) == 0)
		join_in_time(thread);
}

void
log_destroy(struct log **lgp)
{
	struct log *lg = *lgp;

	*lgp = NULL;
	if (lg == NULL)
		return;
	atomic_store(&lg->lg_want_stop, true);
	log_wake(lg);
	if (log_join(lg))
		log_free(lg);
	else
		log_abandon(lg);
}
