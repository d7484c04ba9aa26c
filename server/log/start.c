/*
 * start: creates the log with its files, rings and thread, and closes it.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "server/log/log_priv.h"

#define LOG_RING_ACCESS	 (1024 * 1024)
#define LOG_RING_MESSAGE (64 * 1024)
#define LOG_HUNG	 1000000 /* maximum time of one write at shutdown, us */

/*
 * ------------------------------------------------------ the main thread's
 */
/* Opens stdout or stderr.  A daemon may run without them; its lines are then discarded. */
static int
log_open_std(struct sink *sk, const char *name, int fd)
{
	int error = sink_open_fd(sk, name, fd);

	sk->sk_journal = log_to_journal(fd);
	return error == -EBADF ? 0 : error;
}

static int
log_open_sinks(struct log *lg, const char *path, bool to_stdout)
{
	struct sink *sinks = lg->lg_sinks;
	int error;

	error = log_open_std(&sinks[KIND_NOTICE], "stdout", STDOUT_FILENO);
	if (error == 0)
		error =
		    log_open_std(&sinks[KIND_ERROR], "stderr", STDERR_FILENO);
	if (error != 0)
		return error;
	if (path == NULL)
		return 0;
	if (to_stdout)
		return sink_open_fd(
		    &sinks[KIND_ACCESS], "stdout", STDOUT_FILENO);
	return sink_open_path(&sinks[KIND_ACCESS], path);
}

static int
log_init_writer(struct log_writer *w, struct log *lg, bool notices_to_stderr)
{
	struct lane *ln;
	int kind, error;

	w->lw_log = lg;
	atomic_init(&w->lw_idle, false);
	for (kind = 0; kind < NKINDS; kind++) {
		ln = &w->lw_lanes[kind];
		atomic_init(&ln->ln_lost, 0);
		ln->ln_sink = &lg->lg_sinks[kind];
		if (kind == KIND_NOTICE && notices_to_stderr)
			ln->ln_sink = &lg->lg_sinks[KIND_ERROR];
		if (ln->ln_sink->sk_fd == -1)
			continue;
		if (w == log_own(lg) && kind != KIND_ERROR)
			continue;
		error = ring_create(
		    kind == KIND_ACCESS ? LOG_RING_ACCESS : LOG_RING_MESSAGE,
		    &ln->ln_ring);
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
		error =
		    log_init_writer(&lg->lg_writers[i], lg, notices_to_stderr);
		if (error != 0)
			return error;
	}
	return 0;
}

void
log_set_fields(struct log *lg, const struct log_fields *fields)
{
	lg->lg_fields = *fields;
}

/* Blocks all signals in the thread, even SIGXFSZ, so that write(2) returns the error. */
int
log_start(struct log *lg)
{
	sigset_t all, old;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = thread_start(&lg->lg_thread, log_thread, lg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	lg->lg_started = error == 0;
	return error;
}

int
log_limit_rights(struct log *lg)
{
	int kind, error = 0;

	for (kind = 0; kind < NKINDS && error == 0; kind++)
		if (lg->lg_sinks[kind].sk_fd != -1)
			error = os_limit_rights(
			    lg->lg_sinks[kind].sk_fd, OS_RIGHTS_LOG);
	return error;
}

static void
log_free(struct log *lg)
{
	unsigned slot;
	int kind;

	for (slot = 0; slot < log_slots(lg); slot++)
		ring_destroy(&log_lane(lg, slot)->ln_ring);
	for (kind = 0; kind < NKINDS; kind++)
		sink_close(&lg->lg_sinks[kind]);
	if (lg->lg_wake[0] != -1)
		os_wake_close(lg->lg_wake);
	free(lg->lg_writers);
	free(lg);
}

int
log_create(const char *access_path, enum log_format format, unsigned nwriters,
    struct log **out, bool *opened)
{
	bool to_stdout = access_path != NULL && strcmp(access_path, "-") == 0;
	struct log *lg;
	int kind, error;

	tzset();
	*opened = true;
	lg = calloc(1, sizeof(*lg));
	if (lg == NULL)
		return -ENOMEM;
	lg->lg_format = format;
	lg->lg_wake[0] = -1;
	for (kind = 0; kind < NKINDS; kind++)
		lg->lg_sinks[kind].sk_fd = -1;
	error = os_wake_create(lg->lg_wake);
	if (error != 0)
		goto fail;
	error = log_open_sinks(lg, access_path, to_stdout);
	*opened = error == 0;
	if (error != 0)
		goto fail;
	error = log_init_writers(lg, nwriters + 1, to_stdout);
	if (error != 0)
		goto fail;
	*out = lg;
	return 0;
fail:
	log_free(lg);
	return error;
}

/* Joins the thread.  Returns false if the thread hangs in a write to a file. */
static bool
log_join(struct log *lg)
{
	unsigned beat, before;

	beat = atomic_load(&lg->lg_beat);
	do {
		before = beat;
		if (thread_join(&lg->lg_thread, LOG_HUNG))
			return true;
		beat = atomic_load(&lg->lg_beat);
	} while (beat != before);
	return false;
}

static void
log_report_hung(void *arg)
{
	struct log *lg = arg;
	const char *path = lg->lg_sinks[atomic_load(&lg->lg_busy)].sk_path;

	log_error(NULL,
	    "%s: a write does not return: exiting without the last lines; "
	    "repair the disk of this log, or start its reader",
	    path != NULL ? path : "the log");
}

/* Abandons the thread.  Another thread reports that, because stderr may be on the same disk. */
static void
log_abandon(struct log *lg)
{
	thread_abandon(&lg->lg_thread);
	if (thread_start(&lg->lg_last, log_report_hung, lg) == 0 &&
	    !thread_join(&lg->lg_last, LOG_HUNG))
		thread_abandon(&lg->lg_last);
}

void
log_destroy(struct log **lgp)
{
	struct log *lg = *lgp;

	*lgp = NULL;
	if (lg == NULL)
		return;
	atomic_store(&lg->lg_want_stop, true);
	(void)os_wake_signal(lg->lg_wake[1]);
	if (!lg->lg_started || log_join(lg))
		log_free(lg);
	else
		log_abandon(lg);
}
