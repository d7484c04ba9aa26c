/*
 * master: handles the signals and timers of the master.  The master waits only in master_await().
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "lib/util/clock.h"

#include "server/log/log.h"
#include "server/process/master.h"
#include "server/process/master_priv.h"
#include "server/process/sd_listen.h"
#include "server/process/sd_notify.h"
#include "server/worker/worker.h"

/*
 * Time between shutdown_timeout and the kill of a process, microseconds.  A process needs this time
 * if a device hangs.
 */
#define LAST_US (10 * MASTER_SECOND)

static volatile sig_atomic_t got_end, got_reload, got_upgrade;

/* ------------------------------------------------------------------ signals */

static void
master_on_signal(int number)
{
	switch (number) {
	case SIGHUP:
		got_reload = 1;
		break;
	case SIGUSR2:
		got_upgrade = 1;
		break;
	case SIGCHLD:
		break;
	default:
		got_end++;
	}
}

/* Installs the signal handlers.  Signals stay blocked except while the master waits. */
static void
master_take_signals(struct master *ms)
{
	static const int ours[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGCHLD};
	struct sigaction sa = {.sa_handler = master_on_signal};
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, NULL, &ms->ms_unblocked);
	for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		sigaddset(&set, ours[i]);
		sigdelset(&ms->ms_unblocked, ours[i]);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		sigaction(ours[i], &sa, NULL);
	/* Makes write(2) return an error; otherwise these signals would kill the process. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	/*
	 * Other servers reopen their logs on SIGUSR1.  Here the signal must not kill the process.
	 */
	signal(SIGUSR1, SIG_IGN);
}

/* --------------------------------------------------------------------- actions */

/* Returns the longest shutdown_timeout of the server processes plus LAST_US, in microseconds. */
static uint64_t
master_patience(const struct master *ms)
{
	const struct child *ch;
	unsigned most = 0;

	TAILQ_FOREACH(ch, &ms->ms_children, ch_entry)
	if (ch->ch_timeout > most)
		most = ch->ch_timeout;
	return most * MASTER_SECOND + LAST_US;
}

/*
 * Handles a further signal to shut down.  Returns false if this signal arrived within a second of
 * the first, as a duplicate does.  Otherwise returns true, and sets ms_kill to at most LAST_US from
 * now.
 */
static bool
master_is_hurried(struct master *ms)
{
	uint64_t now = clock_now(), at = now + LAST_US;

	/* timeout(1) and shells send the signal twice at once for a single request. */
	if (now - ms->ms_asked < MASTER_SECOND)
		return false;
	if (at < ms->ms_kill)
		ms->ms_kill = at;
	return true;
}

/*
 * Begins a shutdown: server processes finish their transfers until ms_kill.  A further call moves
 * ms_kill to at most LAST_US from now, but is ignored within a second of the first call.
 */
static void
master_end(struct master *ms)
{
	struct child *ch;

	if (ms->ms_ending && !master_is_hurried(ms))
		return;
	if (!ms->ms_ending) {
		sd_notify_send(
		    "STOPPING=1\nSTATUS=draining: finishing transfers");
		ms->ms_asked = clock_now();
		ms->ms_kill = ms->ms_asked + master_patience(ms);
	}
	ms->ms_ending = true;
	children_kill_starting(ms);
	upgrade_cancel(ms);
	tickets_forget(ms);
	/*
	 * The master must close these sockets before it sends CHANNEL_STOP.  After that message,
	 * the last process accepts the clients in the backlogs of these sockets, because no process
	 * follows.
	 */
	listen_remove_files(&ms->ms_sockets, &(struct listen_table){0});
	listen_close(&ms->ms_sockets);
	TAILQ_FOREACH(ch, &ms->ms_children, ch_entry)
	if (ch->ch_state != CHILD_KILLED) {
		children_become(ch, CHILD_DRAINING);
		children_tell(ch, CHANNEL_STOP, "");
	}
	ms->ms_serving = NULL;
}

static void
master_kill_the_rest(struct master *ms)
{
	struct child *ch;

	if (!ms->ms_ending || clock_now() < ms->ms_kill)
		return;
	TAILQ_FOREACH(ch, &ms->ms_children, ch_entry)
	if (ch->ch_state != CHILD_KILLED) {
		log_error(NULL,
		    "server process %d does not exit: killing it; check dmesg "
		    "for a disk that hangs",
		    (int)ch->ch_pid);
		kill(ch->ch_pid, SIGKILL);
		children_become(ch, CHILD_KILLED);
		ms->ms_status = 1;
	}
}

static void
master_reload(struct master *ms)
{
	ms->ms_reload = false;
	sd_notify_reloading();
	if (spawn_child(ms))
		ms->ms_done = "reloaded";
	else
		children_refused(ms);
}

/*
 * Starts the next pending action, if no other action is running.  If no process serves, starts a
 * server process first.
 */
static void
master_begin_pending(struct master *ms)
{
	if (ms->ms_starting != NULL || clock_now() < ms->ms_free)
		return;
	ms->ms_free = 0;
	if (ms->ms_serving == NULL) {
		if (clock_now() < ms->ms_restart)
			return;
		ms->ms_restart = 0;
		if (!spawn_child(ms))
			children_start_failed(ms, 1);
	} else if (ms->ms_test != 0)
		return;
	else if (ms->ms_upgrade) {
		ms->ms_upgrade = false;
		upgrade_test(ms);
	} else if (ms->ms_reload)
		master_reload(ms);
}

static bool
master_is_hung(uint64_t since)
{
	return clock_now() - since >= MASTER_HUNG;
}

/*
 * Returns the time at which the master kills the current start or test, because a signal waits for
 * its end.  Returns 0 if no signal waits, or if nothing may be killed.
 */
static uint64_t
master_hung_at(const struct master *ms)
{
	uint64_t since = 0;

	if (!ms->ms_reload && !ms->ms_upgrade)
		return 0;
	if (ms->ms_test != 0)
		since = ms->ms_test_since;
	else if (ms->ms_starting != NULL && ms->ms_serving != NULL)
		since = ms->ms_starting->ch_since;
	return since != 0 ? since + MASTER_WAITED : 0;
}

/* Kills a start or test that hangs, so that the next signal takes effect. */
static void
master_end_hung(struct master *ms)
{
	if (ms->ms_starting != NULL &&
	    master_is_hung(ms->ms_starting->ch_since)) {
		log_error(NULL, "a new server process takes too long to "
				"start: starting another one; check "
				"dmesg for a disk that hangs");
		children_kill_starting(ms);
		/* Repeats the interrupted reload, even before an upgrade, which may fail. */
		if (ms->ms_done != NULL)
			ms->ms_reload = true;
		ms->ms_done = NULL;
	}
	if (ms->ms_test != 0 && master_is_hung(ms->ms_test_since)) {
		log_notice(NULL, "the new program takes too long to test the "
				 "configuration: killing it");
		upgrade_cancel(ms);
	}
}

static void
master_act(struct master *ms)
{
	for (; got_end > 0; got_end--)
		master_end(ms);
	if (got_reload || got_upgrade ||
	    (master_hung_at(ms) != 0 && clock_now() >= master_hung_at(ms)))
		master_end_hung(ms);
	if (got_reload && ms->ms_failures > 0) {
		ms->ms_failures = 0;
		ms->ms_restart = 0;
	}
	ms->ms_reload = ms->ms_reload || got_reload;
	ms->ms_upgrade = ms->ms_upgrade || got_upgrade;
	got_reload = got_upgrade = 0;
	children_reap(ms);
	master_kill_the_rest(ms);
	tickets_renew(ms);
	if (ms->ms_ending || ms->ms_over)
		return;
	children_tell_done(ms);
	master_begin_pending(ms);
}

static bool
master_is_over(const struct master *ms)
{
	const struct child *ch;

	if (ms->ms_over)
		return true;
	if (!ms->ms_ending)
		return false;
	TAILQ_FOREACH(ch, &ms->ms_children, ch_entry)
	if (ch->ch_state != CHILD_KILLED)
		return false;
	return true;
}

static uint64_t
master_next_change(const struct master *ms)
{
	if (ms->ms_ending)
		return ms->ms_kill;
	if (ms->ms_starting != NULL)
		return 0;
	if (ms->ms_free != 0)
		return ms->ms_free;
	if (ms->ms_serving == NULL)
		return ms->ms_restart;
	/* A hanging old process never sends CHANNEL_QUIET, so the master checks once a second. */
	return ms->ms_done != NULL ? clock_now() + MASTER_SECOND : 0;
}

static uint64_t
master_earlier(uint64_t a, uint64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

/*
 * Returns the time at which the master must act even without a signal or a message, or 0 if there
 * is none.
 */
static uint64_t
master_next_time(const struct master *ms)
{
	return master_earlier(
	    master_earlier(master_next_change(ms), master_hung_at(ms)),
	    ms->ms_tickets_renew);
}

static struct timespec
master_until(uint64_t at)
{
	uint64_t now = clock_now(), us = at > now ? at - now : 0;

	return (struct timespec){
	    .tv_sec = (time_t)(us / MASTER_SECOND),
	    .tv_nsec = (long)(us % MASTER_SECOND) * 1000,
	};
}

/* Waits for a signal, for a message of a server process, or for the time of the next action. */
static void
master_await(struct master *ms)
{
	struct child *ch, *next;
	struct pollfd *pfds;
	uint64_t at = master_next_time(ms);
	struct timespec ts = master_until(at);
	nfds_t n = 0, i = 0;

	TAILQ_FOREACH(ch, &ms->ms_children, ch_entry)
	n++;
	pfds = calloc(n + 1, sizeof(*pfds));
	if (pfds == NULL) {
		sleep(1);
		return;
	}
	TAILQ_FOREACH(ch, &ms->ms_children, ch_entry)
	pfds[i++] = (struct pollfd){.fd = ch->ch_channel, .events = POLLIN};
	if (ppoll(pfds, n, at != 0 ? &ts : NULL, &ms->ms_unblocked) > 0) {
		ch = TAILQ_FIRST(&ms->ms_children);
		for (i = 0; i < n; i++, ch = next) {
			next = TAILQ_NEXT(ch, ch_entry);
			if (pfds[i].revents != 0)
				children_hear(ms, ch);
		}
	}
	free(pfds);
}

/* ------------------------------------------------------------- start and exit */

/*
 * Raises the limit of descriptors: each connection needs a descriptor, and so does each cached
 * file.
 */
static void
master_raise_limits(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}

/*
 * Returns the path of the program as argv[0] states it.  An operator can upgrade by switching a
 * symbolic link in this path.
 */
static char *
master_own_path(const char *name)
{
	char dir[4096], path[4096];

	if (name[0] == '/')
		return strdup(name);
	if (strchr(name, '/') != NULL) {
		if (getcwd(dir, sizeof(dir)) == NULL ||
		    snprintf(path, sizeof(path), "%s/%s", dir, name) >=
			(int)sizeof(path))
			return NULL;
		return strdup(path);
	}
	return os_program(path, sizeof(path)) == 0 ? strdup(path) : NULL;
}

static void
master_release(struct master *ms)
{
	children_free_all(ms);
	listen_remove_files(&ms->ms_sockets, &(struct listen_table){0});
	listen_close(&ms->ms_sockets);
	listen_close(&ms->ms_next);
	upgrade_cancel(ms);
	tickets_forget(ms);
	free(ms->ms_program);
}

int
master(int argc, char **argv)
{
	struct master ms = {
	    .ms_argc = argc,
	    .ms_argv = argv,
	    .ms_program = master_own_path(argv[0]),
	    .ms_watchdog = sd_notify_watchdog(),
	    .ms_test_output = -1,
	};

	TAILQ_INIT(&ms.ms_children);
	master_take_signals(&ms);
	master_raise_limits();
	if (upgrade_inherit(&ms)) {
		ms.ms_served = true;
		if (spawn_child(&ms))
			ms.ms_done = "upgraded";
		else
			children_refused(&ms);
	} else if (sd_listen_take(&ms.ms_sockets) == -1)
		return 1;
	for (master_act(&ms); !master_is_over(&ms); master_act(&ms))
		master_await(&ms);
	master_release(&ms);
	return ms.ms_status;
}
