/*
 * children: handles messages and exits of server processes.  An attacker may control a process
 * that has clients.  So the master accepts only CHANNEL_ALIVE and CHANNEL_STUCK from the serving
 * process, CHANNEL_QUIET from a draining process, and CHANNEL_WITHDRAW from both, whose drain or
 * undrain the process could send to balancers anyway.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/util/clock.h"
#include "server/log/log.h"
#include "server/process/master_priv.h"
#include "server/process/sd_notify.h"
#include "server/worker/worker.h"

/* the master exits after MASTER_DEATHS deaths within this time, microseconds */
#define PERIOD_US	 (60 * MASTER_SECOND)
#define HEAR_MOST	 64 /* maximum messages per process in a row */
#define PAUSE_MOST	 30 /* maximum pause between failed starts, seconds */
/* time after a reload in which an old process may send CHANNEL_WITHDRAW, microseconds */
#define WITHDRAW_LATE_US (2 * MASTER_SECOND)

/* ------------------------------------------------------- starts and switches */

/*
 * Returns true if an old process may still accept clients.  If the process has not sent
 * CHANNEL_QUIET within MASTER_HUNG, it hangs and accepts no clients.
 */
static bool
children_accepts(const struct child *ch)
{
	return ch->ch_state == CHILD_DRAINING && !ch->ch_quiet &&
	       clock_now() - ch->ch_since < MASTER_HUNG;
}

void
children_tell_done(struct master *ms)
{
	const struct child *ch;

	if (ms->ms_done == NULL || ms->ms_serving == NULL ||
	    ms->ms_starting != NULL)
		return;
	TAILQ_FOREACH(ch, &ms->ms_children, ch_entry)
	if (children_accepts(ch))
		return;
	children_tell(ms->ms_serving, CHANNEL_SAY, ms->ms_done);
	ms->ms_done = NULL;
	sd_notify_send("READY=1\nSTATUS=serving");
}

void
children_refused(struct master *ms)
{
	log_error(NULL, "the old configuration stays in use");
	sd_notify_send("READY=1\nSTATUS=serving; the last reload was refused");
	ms->ms_done = NULL;
}

/*
 * Handles the death of a serving process.  Starts the next process at once, because one death may
 * be an accident.  Each further death within PERIOD_US delays the next start by one more second.
 */
static void
children_serving_died(struct master *ms)
{
	uint64_t now = clock_now(), oldest;
	unsigned n = ms->ms_ndeaths++;

	oldest = ms->ms_deaths[(n + 1) % MASTER_DEATHS];
	ms->ms_deaths[n % MASTER_DEATHS] = now;
	if (n + 1 >= MASTER_DEATHS && now - oldest < PERIOD_US) {
		log_error(NULL,
		    "server processes died %d times within a minute: exiting; "
		    "see the messages above for the cause",
		    MASTER_DEATHS);
		ms->ms_status = 1;
		ms->ms_over = true;
		return;
	}
	for (oldest = 0, n = 0; n < MASTER_DEATHS; n++)
		if (ms->ms_deaths[n] != 0 && now - ms->ms_deaths[n] < PERIOD_US)
			oldest++;
	ms->ms_restart = now + (oldest - 1) * MASTER_SECOND;
}

/*
 * Closes the sockets of the starting process, and removes their files, except files of sockets in
 * ms_sockets.
 */
static void
children_close_next(struct master *ms)
{
	listen_remove_files(&ms->ms_next, &ms->ms_sockets);
	listen_close(&ms->ms_next);
}

/*
 * Schedules another start after a failed start.  A failed start does not count as a death, because
 * the operator may still correct the configuration.
 */
static void
children_try_again(struct master *ms)
{
	unsigned seconds = 1U << ms->ms_failures;
	char text[64];

	if (seconds > PAUSE_MOST)
		seconds = PAUSE_MOST;
	else
		ms->ms_failures++;
	snprintf(text, sizeof(text),
	    "no server process is running: trying again in %u s", seconds);
	log_error(NULL, "%s", text);
	sd_notify_status(text);
	ms->ms_restart = clock_now() + seconds * MASTER_SECOND;
}

void
children_start_failed(struct master *ms, int code)
{
	children_close_next(ms);
	if (ms->ms_ending)
		return;
	if (!ms->ms_served) {
		ms->ms_status = code;
		ms->ms_over = true;
	} else if (ms->ms_serving != NULL)
		children_refused(ms);
	else
		children_try_again(ms);
}

void
children_kill_starting(struct master *ms)
{
	struct child *ch = ms->ms_starting;

	if (ch == NULL)
		return;
	kill(ch->ch_pid, SIGKILL);
	children_become(ch, CHILD_KILLED);
	ms->ms_free = ch->ch_since + MASTER_HUNG;
	ms->ms_starting = NULL;
	children_close_next(ms);
}

static void
children_give_up(
    struct master *ms, const char *what, const char *name, int error)
{
	log_error(NULL, "cannot %s%s: %s", what, name, strerror(-error));
	children_kill_starting(ms);
	children_start_failed(ms, 1);
}

/*
 * If more than MASTER_OLD processes drain, has the oldest close its connections.  Otherwise clients that
 * read slowly would let each reload take memory for as long as drain_timeout.
 */
static void
children_bound_old(struct master *ms)
{
	struct child *ch, *oldest = NULL;
	unsigned n = 0;

	TAILQ_FOREACH(ch, &ms->ms_children, ch_entry)
	if (ch->ch_state == CHILD_DRAINING && !ch->ch_cut && n++ == 0)
		oldest = ch;
	if (n <= MASTER_OLD)
		return;
	log_warn(NULL,
	    "%u old server processes still have clients: closing the "
	    "connections of the oldest, %d; lower drain_timeout, or reload "
	    "less often",
	    n, (int)oldest->ch_pid);
	oldest->ch_cut = true;
	children_tell(oldest, CHANNEL_STOP, "");
	children_tell(oldest, CHANNEL_STOP, "");
}

static void
children_switch(struct master *ms, struct child *ch)
{
	struct child *old = ms->ms_serving;

	ms->ms_starting = NULL;
	ms->ms_serving = ch;
	ms->ms_changed = clock_now();
	ms->ms_restart = 0;
	ms->ms_failures = 0;
	children_become(ch, CHILD_SERVING);
	if (!ch->ch_tickets)
		tickets_forget(ms);
	listen_remove_files(&ms->ms_sockets, &ms->ms_next);
	listen_close(&ms->ms_sockets);
	ms->ms_sockets = ms->ms_next;
	ms->ms_next = (struct listen_table){0};
	if (old != NULL) {
		children_become(old, CHILD_DRAINING);
		children_tell(old, CHANNEL_DRAIN, "");
		children_bound_old(ms);
	}
	if (!ms->ms_served)
		sd_notify_send("READY=1\nSTATUS=serving");
	else if (ms->ms_done == NULL)
		sd_notify_status(
		    "serving"); /* else sent by children_tell_done */
	ms->ms_served = true;
}

/*
 * Makes a starting process serve.  The process has no clients yet, so no client is lost if this
 * fails.
 */
static void
children_became_ready(struct master *ms, struct child *ch, const char *timeout)
{
	const struct sock *sk;
	unsigned long seconds = strtoul(timeout, NULL, 10);
	int error = listen_listen(&ms->ms_next, &sk);

	if (error != 0) {
		children_give_up(ms, "listen on ", sk->sk_name, error);
		return;
	}
	if (withdraw_now(ms) != NULL)
		(void)children_tell(ch, CHANNEL_WITHDRAW, withdraw_now(ms));
	error = children_tell(ch, CHANNEL_SERVE, "");
	if (error == -EPIPE)
		return; /* children_reap handles the exit */
	if (error != 0) {
		children_give_up(ms, "send to a server process", "", error);
		return;
	}
	ch->ch_timeout =
	    seconds < MASTER_WAITS ? (unsigned)seconds : MASTER_WAITS;
	children_switch(ms, ch);
}

/*
 * Adds a socket of a starting process to ms_next.  Without the master's copy, the socket would
 * close with the process.
 */
static void
children_take_socket(struct master *ms, const char *text, int fd)
{
	struct sock sk;
	int error = fd == -1 ? -EMFILE : listen_unpack(text, &sk);

	if (error == 0) {
		sk.sk_fd = fd;
		error = listen_genuine(&sk) ? listen_add(&ms->ms_next, &sk)
					    : -EINVAL;
	}
	if (error == 0)
		return;
	if (fd != -1)
		close(fd);
	children_give_up(
	    ms, "receive a listening socket from a server process", "", error);
}

static void
children_give_tickets(struct master *ms, struct child *ch)
{
	int error = tickets_give(ms, ch);

	if (error != 0)
		children_give_up(
		    ms, "create the keys of session tickets", "", error);
}

/* ------------------------------------------------------------------- messages */

static void
children_heard_starting(struct master *ms, struct child *ch,
    const struct channel_message *cm, int fd)
{
	if (cm->cm_kind == CHANNEL_SOCKET) {
		children_take_socket(ms, cm->cm_text, fd);
		return;
	}
	if (fd != -1)
		close(fd);
	if (cm->cm_kind == CHANNEL_TICKETS)
		children_give_tickets(ms, ch);
	else if (cm->cm_kind == CHANNEL_READY)
		children_became_ready(ms, ch, cm->cm_text);
}

/*
 * Handles a drain or undrain request that a process has received.  Accepts the request from an old
 * process only for WITHDRAW_LATE_US after a reload: later, clients cannot reach a draining process.
 * Does not store the request if the serving process cannot receive it, because the operator can
 * repeat it.
 */
static void
children_heard_withdraw(
    struct master *ms, const struct child *ch, const char *text)
{
	const char *now = text[0] == '1' ? "1" : "0";
	int error = 0;

	if (ms->ms_serving != ch &&
	    clock_now() - ms->ms_changed > WITHDRAW_LATE_US)
		return;
	if (ms->ms_withdraw != NULL && strcmp(now, ms->ms_withdraw) == 0)
		return;
	if (ms->ms_serving != NULL)
		error = children_tell(ms->ms_serving, CHANNEL_WITHDRAW, now);
	if (error != 0) {
		log_error(NULL,
		    "cannot pass drain or undrain to the server process: %s; "
		    "run the command again",
		    strerror(-error));
		return;
	}
	ms->ms_withdraw = now;
	ms->ms_withdrawn = clock_now();
}

static void
children_heard_serving(struct child *ch, const struct channel_message *cm)
{
	switch (cm->cm_kind) {
	case CHANNEL_ALIVE:
		sd_notify_send(
		    "WATCHDOG=1%s", ch->ch_stuck ? "\nSTATUS=serving" : "");
		ch->ch_stuck = false;
		break;
	case CHANNEL_STUCK:
		sd_notify_status(cm->cm_text);
		ch->ch_stuck = true;
		break;
	default:
		break;
	}
}

static void
children_hear_some(struct master *ms, struct child *ch, unsigned most)
{
	struct channel_message cm;
	int fd = -1, result = 0;
	bool starting;

	while (most-- > 0) {
		starting = ms->ms_starting == ch;
		result =
		    channel_receive(ch->ch_channel, &cm, starting ? &fd : NULL);
		if (result != 1)
			break;
		if (starting)
			children_heard_starting(ms, ch, &cm, fd);
		else if (cm.cm_kind == CHANNEL_WITHDRAW)
			children_heard_withdraw(ms, ch, cm.cm_text);
		else if (ms->ms_serving == ch)
			children_heard_serving(ch, &cm);
		else if (cm.cm_kind == CHANNEL_QUIET)
			ch->ch_quiet = true;
		if (ch->ch_channel == -1)
			return;
	}
	if (result < 0) {
		close(ch->ch_channel);
		ch->ch_channel = -1;
	}
}

void
children_hear(struct master *ms, struct child *ch)
{
	children_hear_some(ms, ch, HEAR_MOST);
}

/* ---------------------------------------------------------------------- exits */

static void
children_ended(struct master *ms, struct child *ch, int status)
{
	enum child_state state = ch->ch_state;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	char cause[128];

	children_cause(ch->ch_pid, status, cause, sizeof(cause));
	children_free(ms, ch);
	if (ms->ms_ending && state != CHILD_KILLED && code != 0)
		ms->ms_status = code;
	switch (state) {
	case CHILD_STARTING:
		if (WIFSIGNALED(status))
			log_error(NULL, "%s", cause);
		children_start_failed(ms, code);
		break;
	case CHILD_SERVING:
		log_error(NULL, "%s; starting another one",
		    cause[0] != '\0' ? cause : "the server process exited");
		children_serving_died(ms);
		break;
	case CHILD_DRAINING:
		if (WIFSIGNALED(status) || (code != 0 && !ms->ms_ending))
			log_error(NULL, "%s", cause);
		break;
	case CHILD_KILLED:
		ms->ms_free = 0;
		break;
	}
}

static struct child *
children_find(struct master *ms, pid_t pid)
{
	struct child *ch;

	TAILQ_FOREACH(ch, &ms->ms_children, ch_entry)
	if (ch->ch_pid == pid)
		return ch;
	return NULL;
}

/* Returns the pid of a process that has exited and must still be reaped, or 0. */
static pid_t
children_next_ended(void)
{
	siginfo_t si = {.si_pid = 0};

	if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == -1)
		return 0;
	return si.si_pid;
}

void
children_reap(struct master *ms)
{
	struct child *ch;
	int status;
	pid_t pid;

	while ((pid = children_next_ended()) > 0) {
		ch = children_find(ms, pid);
		/*
		 * The pid cannot be reused before waitpid.  So if the process has sent a bad
		 * message, the master may still kill this pid.
		 */
		if (ch != NULL && ch == ms->ms_starting)
			children_hear_some(ms, ch, UINT_MAX);
		if (waitpid(pid, &status, WNOHANG) != pid)
			return;
		if (ch != NULL)
			children_ended(ms, ch, status);
		else if (pid == ms->ms_test)
			upgrade_tested(ms, status);
	}
}
