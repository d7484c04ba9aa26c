/*
 * spawn: starts server processes and manages the master's list of them.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "lib/util/clock.h"

#include "server/log/log.h"
#include "server/process/cure.h"
#include "server/process/master_priv.h"
#include "server/process/serve.h"
#include "server/worker/worker.h"

void
upgrade_forget(struct master *ms)
{
	if (ms->ms_test_output != -1)
		close(ms->ms_test_output);
	ms->ms_test_output = -1;
	ms->ms_test = 0;
}

/*
 * Ignores the signals that the master handles, because a terminal sends a signal to both processes.
 */
static void
spawn_ignore_signals(struct master *ms)
{
	static const int ours[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2};
	size_t i;

	for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		signal(ours[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, &ms->ms_unblocked, NULL);
}

void
children_free_all(struct master *ms)
{
	struct child *ch, *next;

	for (ch = TAILQ_FIRST(&ms->ms_children); ch != NULL; ch = next) {
		next = TAILQ_NEXT(ch, ch_entry);
		children_free(ms, ch);
	}
}

static _Noreturn void
spawn_become_server(struct master *ms, int channel, pid_t parent)
{
	struct serve_args args = {
	    .sa_argc = ms->ms_argc,
	    .sa_argv = ms->ms_argv,
	    .sa_channel = channel,
	    .sa_sockets = ms->ms_sockets,
	    .sa_again = ms->ms_served,
	    .sa_replaces = ms->ms_serving != NULL,
	    .sa_watchdog = ms->ms_watchdog,
	};

	/*
	 * A start that hangs does not read the channel, so the kernel must kill this process when
	 * the master exits.
	 */
	if (os_follow_parent(parent) == -ESRCH)
		_exit(1);
	spawn_ignore_signals(ms);
	os_process_name("pw-server");
	/*
	 * A server process detects the exit of the master only if no other server process has a
	 * copy of the master's end of its channel.
	 */
	children_free_all(ms);
	upgrade_forget(ms);
	tickets_forget(ms);
	free(ms->ms_program);
	exit(serve(&args));
}

struct child *
children_add(struct master *ms, pid_t pid, int channel, enum child_state state)
{
	struct child *ch = calloc(1, sizeof(*ch));

	if (ch == NULL)
		return NULL;
	ch->ch_pid = pid;
	ch->ch_channel = channel;
	children_become(ch, state);
	TAILQ_INSERT_TAIL(&ms->ms_children, ch, ch_entry);
	return ch;
}

void
children_become(struct child *ch, enum child_state state)
{
	ch->ch_state = state;
	ch->ch_since = clock_now();
}

void
children_free(struct master *ms, struct child *ch)
{
	if (ms->ms_starting == ch)
		ms->ms_starting = NULL;
	if (ms->ms_serving == ch)
		ms->ms_serving = NULL;
	if (ch->ch_channel != -1)
		close(ch->ch_channel);
	TAILQ_REMOVE(&ms->ms_children, ch, ch_entry);
	free(ch);
}

static int
spawn_start(struct master *ms)
{
	struct child *ch;
	pid_t parent = getpid();
	int fds[2], error = channel_pair(fds);

	if (error != 0)
		return error;
	ch = children_add(ms, 0, fds[0], CHILD_STARTING);
	if (ch == NULL) {
		close(fds[0]);
		close(fds[1]);
		return -ENOMEM;
	}
	ch->ch_pid = fork();
	if (ch->ch_pid == 0)
		spawn_become_server(ms, fds[1], parent);
	error = -errno;
	close(fds[1]);
	if (ch->ch_pid == -1) {
		children_free(ms, ch);
		return error;
	}
	ms->ms_starting = ch;
	return 0;
}

bool
spawn_child(struct master *ms)
{
	int error = spawn_start(ms);

	if (error != 0)
		log_error(NULL, "cannot start a server process: %s%s",
		    strerror(-error), cure_of(error));
	return error == 0;
}

int
children_tell(struct child *ch, enum channel_kind kind, const char *text)
{
	int error;

	if (ch->ch_channel == -1)
		return -EPIPE;
	error = channel_send(ch->ch_channel, kind, text, -1, false);
	if (error == 0 || kind == CHANNEL_SAY)
		return error;
	/* The process drains and exits when its channel closes. */
	close(ch->ch_channel);
	ch->ch_channel = -1;
	return error;
}

void
children_cause(pid_t pid, int status, char *text, size_t size)
{
	int number;

	text[0] = '\0';
	if (WIFSIGNALED(status)) {
		number = WTERMSIG(status);
		snprintf(text, size,
		    "server process %d was killed by signal %d (%s)", (int)pid,
		    number, strsignal(number));
	} else if (WEXITSTATUS(status) != 0)
		snprintf(text, size, "server process %d exited with status %d",
		    (int)pid, WEXITSTATUS(status));
}
