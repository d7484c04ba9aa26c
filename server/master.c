/*
 * master: signals, and what to do when.  All that it waits for, it waits for in one
 * place: await().
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"
#include "log.h"
#include "master.h"
#include "master_priv.h"
#include "notify.h"
#include "worker.h"

#define SECOND_US ((uint64_t)1000000)
#define PERIOD_US (60 * SECOND_US) /* MASTER_DEATHS in it: it gives up */
#define HUNG_US	  (5 * SECOND_US)  /* what takes longer gives way */

static volatile sig_atomic_t got_end, got_reload, got_upgrade;

/* ------------------------------------------------------------------ signals */

static void
on_signal(int number)
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

/* They come while it waits, and at no other time. */
static void
take_signals(struct master *ms)
{
	static const int ours[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGCHLD};
	struct sigaction sa = {.sa_handler = on_signal};
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
	signal(SIGPIPE, SIG_IGN);
}

/* ----------------------------------------------------------- server processes */

/* Says what was done when nobody is served by the old one any more. */
static void
tell_done(struct master *ms)
{
	const struct child *ch;

	if (ms->ms_done == NULL || ms->ms_serving == NULL ||
	    ms->ms_starting != NULL)
		return;
	LIST_FOREACH(ch, &ms->ms_children, ch_entry)
	if (ch->ch_state == CHILD_DRAINING && !ch->ch_quiet)
		return;
	child_tell(ms->ms_serving, CHANNEL_SAY, ms->ms_done);
	ms->ms_done = NULL;
	notify("READY=1\nSTATUS=serving");
}

static void
became_ready(struct master *ms, struct child *ch)
{
	struct child *old = ms->ms_serving;

	ms->ms_starting = NULL;
	ms->ms_serving = ch;
	ch->ch_state = CHILD_SERVING;
	sockets_remove_files(&ms->ms_sockets, &ms->ms_next);
	sockets_close(&ms->ms_sockets);
	ms->ms_sockets = ms->ms_next;
	ms->ms_next = (struct sockets){0};
	if (old != NULL) {
		old->ch_state = CHILD_DRAINING;
		child_tell(old, CHANNEL_DRAIN, "");
	}
	if (!ms->ms_served)
		notify("READY=1\nSTATUS=serving");
	ms->ms_served = true;
	tell_done(ms);
}

static void kill_starting(struct master *);
static void start_failed(struct master *, int);

/* A socket that the master does not have would be closed with this process. */
static void
take_socket(struct master *ms, const char *text, int fd)
{
	struct sock sk;
	int error = fd == -1 ? -EMFILE : sockets_unpack(text, &sk);

	if (error == 0) {
		sk.sk_fd = fd;
		error = sockets_add(&ms->ms_next, &sk);
	}
	if (error == 0)
		return;
	if (fd != -1)
		close(fd);
	log_error(NULL, "cannot keep a listening socket: %s", strerror(-error));
	kill_starting(ms);
	start_failed(ms, 1);
}

static void
heard(struct master *ms, struct child *ch, const struct channel_message *cm,
    int fd)
{
	bool starting = ch->ch_state == CHILD_STARTING && !ms->ms_ending;

	switch (cm->cm_kind) {
	case CHANNEL_SOCKET:
		if (starting)
			take_socket(ms, cm->cm_text, fd);
		else if (fd != -1)
			close(fd);
		return;
	case CHANNEL_READY:
		if (starting)
			became_ready(ms, ch);
		break;
	case CHANNEL_QUIET:
		ch->ch_quiet = true;
		tell_done(ms);
		break;
	case CHANNEL_ALIVE:
		if (ch == ms->ms_serving)
			notify("WATCHDOG=1");
		break;
	case CHANNEL_STUCK:
		if (ch == ms->ms_serving)
			notify("STATUS=%s", cm->cm_text);
		break;
	default:
		break;
	}
	if (fd != -1)
		close(fd);
}

static void
hear(struct master *ms, struct child *ch)
{
	struct channel_message cm;
	int fd, result;

	while ((result = channel_receive(ch->ch_channel, &cm, &fd)) == 1)
		heard(ms, ch, &cm, fd);
	if (result < 0) {
		close(ch->ch_channel);
		ch->ch_channel = -1;
	}
}

static void
refused(struct master *ms)
{
	log_error(NULL, "the old configuration stays in use");
	notify("READY=1\nSTATUS=serving; the last reload was refused");
	ms->ms_done = NULL;
}

/* The first time it may have been an accident. */
static void
died(struct master *ms)
{
	uint64_t now = worker_now(), oldest;
	unsigned n = ms->ms_ndeaths++;

	oldest = ms->ms_deaths[(n + 1) % MASTER_DEATHS];
	ms->ms_deaths[n % MASTER_DEATHS] = now;
	if (n + 1 >= MASTER_DEATHS && now - oldest < PERIOD_US) {
		log_error(NULL,
		    "server processes have died %d times within a minute: "
		    "ending",
		    MASTER_DEATHS);
		ms->ms_status = 1;
		ms->ms_over = true;
		return;
	}
	for (oldest = 0, n = 0; n < MASTER_DEATHS; n++)
		if (ms->ms_deaths[n] != 0 && now - ms->ms_deaths[n] < PERIOD_US)
			oldest++;
	ms->ms_restart = now + (oldest - 1) * SECOND_US;
}

static void
start_failed(struct master *ms, int code)
{
	sockets_close(&ms->ms_next);
	if (ms->ms_ending)
		return;
	if (!ms->ms_served) {
		ms->ms_status = code;
		ms->ms_over = true;
	} else if (ms->ms_serving != NULL)
		refused(ms);
	else
		died(ms);
}

static void
ended(struct master *ms, struct child *ch, int status)
{
	enum child_state state = ch->ch_state;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	char cause[128];

	child_cause(ch->ch_pid, status, cause, sizeof(cause));
	child_free(ms, ch);
	if (ms->ms_ending && state != CHILD_KILLED && code != 0)
		ms->ms_status = code;
	switch (state) {
	case CHILD_STARTING:
		if (WIFSIGNALED(status))
			log_error(NULL, "%s", cause);
		start_failed(ms, code);
		break;
	case CHILD_SERVING:
		log_error(NULL, "%s; starting another one",
		    cause[0] != '\0' ? cause : "the server process ended");
		died(ms);
		break;
	case CHILD_DRAINING:
		if (WIFSIGNALED(status) || (code != 0 && !ms->ms_ending))
			log_error(NULL, "%s", cause);
		tell_done(ms);
		break;
	case CHILD_KILLED:
		break;
	}
}

static struct child *
find(struct master *ms, pid_t pid)
{
	struct child *ch;

	LIST_FOREACH(ch, &ms->ms_children, ch_entry)
	if (ch->ch_pid == pid)
		return ch;
	return NULL;
}

static void
reap(struct master *ms)
{
	struct child *ch;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		ch = find(ms, pid);
		if (ch != NULL) {
			/* Its last words, if they are still to be read. */
			if (ch->ch_channel != -1)
				hear(ms, ch);
			ended(ms, ch, status);
		} else if (pid == ms->ms_test)
			upgrade_tested(ms, status);
	}
}

/* ------------------------------------------------------------------- what to do */

/* A disk may hold it for ever. */
static void
kill_starting(struct master *ms)
{
	struct child *ch = ms->ms_starting;

	if (ch == NULL)
		return;
	kill(ch->ch_pid, SIGKILL);
	ch->ch_state = CHILD_KILLED;
	ms->ms_starting = NULL;
	sockets_close(&ms->ms_next);
}

static void
end(struct master *ms)
{
	struct child *ch;

	if (!ms->ms_ending)
		notify("STOPPING=1\nSTATUS=finishing what is being sent");
	ms->ms_ending = true;
	kill_starting(ms);
	upgrade_cancel(ms);
	/* Before the last one accepts who waits there: nobody comes after it. */
	sockets_remove_files(&ms->ms_sockets, &(struct sockets){0});
	sockets_close(&ms->ms_sockets);
	LIST_FOREACH(ch, &ms->ms_children, ch_entry)
	if (ch->ch_state != CHILD_KILLED) {
		ch->ch_state = CHILD_DRAINING;
		child_tell(ch, CHANNEL_STOP, "");
	}
	ms->ms_serving = NULL;
}

static void
reload(struct master *ms)
{
	ms->ms_reload = false;
	notify_reloading();
	if (child_start(ms))
		ms->ms_done = "reloaded";
	else
		refused(ms);
}

/* One thing at a time. */
static void
begin_what_was_asked(struct master *ms)
{
	if (ms->ms_starting != NULL || ms->ms_test != 0)
		return;
	if (ms->ms_serving == NULL) {
		if (worker_now() < ms->ms_restart)
			return;
		ms->ms_restart = 0;
		if (!child_start(ms))
			died(ms);
	} else if (ms->ms_upgrade) {
		ms->ms_upgrade = false;
		upgrade_test(ms);
	} else if (ms->ms_reload)
		reload(ms);
}

static void
act(struct master *ms)
{
	const struct child *ch = ms->ms_starting;

	for (; got_end > 0; got_end--)
		end(ms);
	if (got_reload && ch != NULL && ms->ms_serving != NULL &&
	    worker_now() - ch->ch_since >= HUNG_US) {
		log_error(NULL, "a new server process takes too long to "
				"start: starting another one");
		kill_starting(ms);
	}
	if (got_upgrade && ms->ms_test != 0 &&
	    worker_now() - ms->ms_test_since >= HUNG_US)
		upgrade_cancel(ms);
	ms->ms_reload = ms->ms_reload || got_reload;
	ms->ms_upgrade = ms->ms_upgrade || got_upgrade;
	got_reload = got_upgrade = 0;
	reap(ms);
	if (!ms->ms_ending && !ms->ms_over)
		begin_what_was_asked(ms);
}

static bool
over(const struct master *ms)
{
	const struct child *ch;

	if (ms->ms_over)
		return true;
	if (!ms->ms_ending)
		return false;
	LIST_FOREACH(ch, &ms->ms_children, ch_entry)
	if (ch->ch_state != CHILD_KILLED)
		return false;
	return true;
}

/* For a signal, a word of a child, or the time of a restart. */
static void
await(struct master *ms)
{
	struct child *ch, *next;
	struct timespec ts = {0};
	struct pollfd *pfds;
	uint64_t now = worker_now();
	nfds_t n = 0, i = 0;

	if (ms->ms_restart > now) {
		ts.tv_sec = (time_t)((ms->ms_restart - now) / SECOND_US);
		ts.tv_nsec = (long)((ms->ms_restart - now) % SECOND_US) * 1000;
	}
	LIST_FOREACH(ch, &ms->ms_children, ch_entry)
	n++;
	pfds = calloc(n + 1, sizeof(*pfds));
	if (pfds == NULL) {
		sleep(1);
		return;
	}
	LIST_FOREACH(ch, &ms->ms_children, ch_entry)
	pfds[i++] = (struct pollfd){.fd = ch->ch_channel, .events = POLLIN};
	if (ppoll(pfds, n, ms->ms_restart > 0 ? &ts : NULL, &ms->ms_unblocked) >
	    0) {
		ch = LIST_FIRST(&ms->ms_children);
		for (i = 0; i < n; i++, ch = next) {
			next = LIST_NEXT(ch, ch_entry);
			if (pfds[i].revents != 0)
				hear(ms, ch);
		}
	}
	free(pfds);
}

/* ------------------------------------------------------------------- its life */

/* Each connection needs a descriptor, each cached file another. */
static void
raise_limits(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}

/* Where argv says that it is, so that a link can be switched for an upgrade. */
static char *
own_path(const char *name)
{
	char dir[4096], path[4096];
	ssize_t n;

	if (name[0] == '/')
		return strdup(name);
	if (strchr(name, '/') != NULL) {
		if (getcwd(dir, sizeof(dir)) == NULL ||
		    snprintf(path, sizeof(path), "%s/%s", dir, name) >=
			(int)sizeof(path))
			return NULL;
		return strdup(path);
	}
	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (n == -1)
		return NULL;
	path[n] = '\0';
	return strdup(path);
}

static void
release(struct master *ms)
{
	children_free(ms);
	sockets_remove_files(&ms->ms_sockets, &(struct sockets){0});
	sockets_close(&ms->ms_sockets);
	sockets_close(&ms->ms_next);
	upgrade_cancel(ms);
	free(ms->ms_program);
}

int
master(int argc, char **argv)
{
	struct master ms = {
	    .ms_argc = argc,
	    .ms_argv = argv,
	    .ms_program = own_path(argv[0]),
	    .ms_watchdog = notify_watchdog(),
	    .ms_test_output = -1,
	};

	LIST_INIT(&ms.ms_children);
	take_signals(&ms);
	raise_limits();
	if (upgrade_inherit(&ms)) {
		ms.ms_served = true;
		if (child_start(&ms))
			ms.ms_done = "upgraded";
		else
			refused(&ms);
	} else if (given_take(&ms.ms_sockets) == -1)
		return 1;
	for (act(&ms); !over(&ms); act(&ms))
		await(&ms);
	release(&ms);
	return ms.ms_status;
}
