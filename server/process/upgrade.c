/*
 * upgrade: executes a new program in the master's process (SIGUSR2).  The new program reads its
 * state from a file in memory, whose descriptor PAGEWISE_STATE names.  The state consists of texts,
 * each with a NUL at its end:
 *     pagewise 1
 *     child PID CHANNEL STATE SECONDS   STATE is a child_state, followed by "q" if ch_quiet
 *     socket FD TEXT                    TEXT is made by listen_pack
 *     withdraw 1                        text of CHANNEL_WITHDRAW, if one was received
 *     ticket_key TIME TEXT              older key first; TIME (clock_now) is the time of the next
 *                                       renewal; TEXT is made by ticket_key_write
 * Only root and the user that started the master may open the file in memory.
 * Later versions must be able to read the state that this version writes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "lib/util/clock.h"

#include "server/log/log.h"
#include "server/process/master_priv.h"
#include "server/process/sd_notify.h"
#include "server/worker/worker.h"

#define STATE "PAGEWISE_STATE"
#define OK    "configuration ok" /* start of the output of -t */

static void
upgrade_say_failed(const char *why)
{
	log_error(
	    NULL, "cannot upgrade: %s; the old program stays in use", why);
}

/* ---------------------------------------------------------------------- the test */

/* Executes the test.  Runs in the child process. */
static _Noreturn void
upgrade_run_test(struct master *ms, int output)
{
	static char option[] = "-t";
	char **argv = calloc((size_t)ms->ms_argc + 2, sizeof(char *));

	if (argv == NULL)
		_exit(127);
	argv[0] = ms->ms_argv[0];
	argv[1] = option;
	memcpy(
	    &argv[2], &ms->ms_argv[1], (size_t)ms->ms_argc * sizeof(argv[0]));
	setpgid(0, 0);
	dup2(output, STDOUT_FILENO);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	signal(SIGUSR1, SIG_DFL);
	sigprocmask(SIG_SETMASK, &ms->ms_unblocked, NULL);
	execv(ms->ms_program, argv);
	log_error(NULL, "cannot run %s: %s", ms->ms_program, strerror(errno));
	_exit(127);
}

/* Returns true if the path of the program still leads to the tested file. */
static bool
upgrade_is_tested(const struct master *ms)
{
	const struct stat *then = &ms->ms_test_file;
	struct stat now;

	return stat(ms->ms_program, &now) == 0 && now.st_dev == then->st_dev &&
	       now.st_ino == then->st_ino && now.st_size == then->st_size &&
	       now.st_mtim.tv_sec == then->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == then->st_mtim.tv_nsec;
}

void
upgrade_test(struct master *ms)
{
	int output[2];

	if (ms->ms_program == NULL) {
		upgrade_say_failed("the path of the program is unknown");
		return;
	}
	if (stat(ms->ms_program, &ms->ms_test_file) == -1) {
		log_error(
		    NULL, "cannot run %s: %s", ms->ms_program, strerror(errno));
		upgrade_say_failed("the new program is missing");
		return;
	}
	if (pipe2(output, O_CLOEXEC | O_NONBLOCK) == -1) {
		upgrade_say_failed(strerror(errno));
		return;
	}
	ms->ms_test = fork();
	if (ms->ms_test == 0)
		upgrade_run_test(ms, output[1]);
	close(output[1]);
	if (ms->ms_test == -1) {
		ms->ms_test = 0;
		close(output[0]);
		upgrade_say_failed(strerror(errno));
		return;
	}
	/*
	 * Both processes set the process group, because either may run first.  If the program is a
	 * script, killing the group also kills the programs that the script runs.
	 */
	setpgid(ms->ms_test, ms->ms_test);
	ms->ms_test_output = output[0];
	ms->ms_test_since = clock_now();
}

void
upgrade_cancel(struct master *ms)
{
	if (ms->ms_test != 0)
		kill(-ms->ms_test, SIGKILL);
	upgrade_forget(ms);
}

static bool
upgrade_said_ok(int fd)
{
	char text[sizeof(OK) - 1];

	return read(fd, text, sizeof(text)) == (ssize_t)sizeof(text) &&
	       memcmp(text, OK, sizeof(text)) == 0;
}

/* ------------------------------------------------------- the old program's state */

static int
upgrade_write_child(int fd, const struct child *ch)
{
	return dprintf(fd, "child %d %d %c%s %u%c", (int)ch->ch_pid,
	    ch->ch_channel, (char)ch->ch_state, ch->ch_quiet ? "q" : "",
	    ch->ch_timeout, '\0');
}

static int
upgrade_write_socket(int fd, const struct sock *sk)
{
	char text[LISTEN_TEXT];

	listen_pack(sk, text);
	return dprintf(fd, "socket %d %s%c", sk->sk_fd, text, '\0');
}

/* Writes a key with write(2), because dprintf(3) may leave a copy of the key in a buffer. */
static bool
upgrade_write_ticket_key(int fd, const struct ticket_key *key, uint64_t renew)
{
	char text[64 + TICKET_KEY_TEXT];
	size_t len = (size_t)snprintf(
	    text, sizeof(text), "ticket_key %" PRIu64 " ", renew);
	bool done;

	ticket_key_write(key, text + len);
	len += TICKET_KEY_TEXT;
	done = write(fd, text, len) == (ssize_t)len;
	explicit_bzero(text, sizeof(text));
	return done;
}

static bool
upgrade_write_ticket_keys(const struct master *ms, int fd)
{
	size_t i;

	if (ms->ms_tickets == NULL)
		return true;
	for (i = TICKET_KEYS; i-- > 0;)
		if (!upgrade_write_ticket_key(
			fd, &ms->ms_tickets->tl_keys[i], ms->ms_tickets_renew))
			return false;
	return true;
}

static bool
upgrade_write_all(const struct master *ms, int fd)
{
	const struct child *ch;
	size_t i;

	if (dprintf(fd, "pagewise 1%c", '\0') < 0)
		return false;
	TAILQ_FOREACH(ch, &ms->ms_children, ch_entry)
	if (upgrade_write_child(fd, ch) < 0)
		return false;
	for (i = 0; i < ms->ms_sockets.ss_count; i++)
		if (upgrade_write_socket(fd, &ms->ms_sockets.ss_list[i]) < 0)
			return false;
	if (withdraw_now(ms) != NULL &&
	    dprintf(fd, "withdraw %s%c", withdraw_now(ms), '\0') < 0)
		return false;
	return upgrade_write_ticket_keys(ms, fd);
}

/* Writes the state to a file in memory.  Returns its descriptor, or -errno. */
static int
upgrade_write_state(const struct master *ms)
{
	int error, fd = os_memfd("pagewise-state", 0);

	if (fd < 0 || upgrade_write_all(ms, fd))
		return fd;
	error = errno != 0 ? -errno : -EIO;
	close(fd);
	return error;
}

static void
upgrade_close_on_exec(const struct master *ms, int state, bool yes)
{
	const struct child *ch;
	int flags = yes ? FD_CLOEXEC : 0;
	size_t i;

	TAILQ_FOREACH(ch, &ms->ms_children, ch_entry)
	if (ch->ch_channel != -1)
		fcntl(ch->ch_channel, F_SETFD, flags);
	for (i = 0; i < ms->ms_sockets.ss_count; i++)
		fcntl(ms->ms_sockets.ss_list[i].sk_fd, F_SETFD, flags);
	fcntl(state, F_SETFD, flags);
}

/*
 * Executes the new program.  Returns only on failure.  Signals stay blocked until the new program
 * handles them.
 */
static void
upgrade_exec(struct master *ms)
{
	char text[16];
	int fd = upgrade_write_state(ms);

	if (fd < 0) {
		upgrade_say_failed(strerror(-fd));
		return;
	}
	snprintf(text, sizeof(text), "%d", fd);
	if (setenv(STATE, text, 1) == -1) {
		upgrade_say_failed(strerror(errno));
		close(fd);
		return;
	}
	sd_notify_reloading();
	upgrade_close_on_exec(ms, fd, false);
	execv(ms->ms_program, ms->ms_argv);
	upgrade_say_failed(strerror(errno));
	upgrade_close_on_exec(ms, fd, true);
	sd_notify_send("READY=1\nSTATUS=serving; the last upgrade was refused");
	unsetenv(STATE);
	close(fd);
}

void
upgrade_tested(struct master *ms, int status)
{
	bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;

	if (ok && upgrade_said_ok(ms->ms_test_output)) {
		upgrade_forget(ms);
		if (ms->ms_starting == NULL && upgrade_is_tested(ms))
			upgrade_exec(ms);
		else
			ms->ms_upgrade = true;
		return;
	}
	upgrade_forget(ms);
	upgrade_say_failed(
	    ok ? "the new program is not pagewise"
	       : "the new program or the configuration failed its test");
}

/* ---------------------------------------------------------------- the new program */

/*
 * Adds a server process.  If memory is short, closes its channel instead, so that the process
 * exits.
 */
static void
upgrade_inherit_child(struct master *ms, const char *text)
{
	uintmax_t pid, channel;
	struct child *ch;
	const char *seconds;

	/* listen_number also accepts "-1": the channel of this process is closed. */
	if (!listen_number(&text, &pid) || !listen_number(&text, &channel))
		return;
	if ((int)channel != -1)
		fcntl((int)channel, F_SETFD, FD_CLOEXEC);
	ch = children_add(
	    ms, (pid_t)pid, (int)channel, (enum child_state)text[0]);
	if (ch == NULL) {
		close((int)channel);
		return;
	}
	ch->ch_quiet = text[0] != '\0' && text[1] == 'q';
	/* Older versions do not write the timeout. */
	seconds = strchr(text, ' ');
	ch->ch_timeout = seconds != NULL ? (unsigned)strtoul(seconds, NULL, 10)
					 : MASTER_WAITS;
	if (ch->ch_state == CHILD_SERVING)
		ms->ms_serving = ch;
}

static void
upgrade_inherit_socket(struct master *ms, const char *text)
{
	struct sock sk;
	uintmax_t fd;

	if (!listen_number(&text, &fd))
		return;
	if (listen_unpack(text, &sk) == 0) {
		fcntl((int)fd, F_SETFD, FD_CLOEXEC);
		sk.sk_fd = (int)fd;
		if (listen_add(&ms->ms_sockets, &sk) == 0)
			return;
	}
	log_error(NULL, "cannot take over a listening socket of the old "
			"program; restart the server if it refuses "
			"connections");
	close((int)fd);
}

static void
upgrade_inherit_ticket_key(struct master *ms, const char *text)
{
	struct ticket_key key;
	uintmax_t renew;

	if (listen_number(&text, &renew) && ticket_key_read(text, &key))
		tickets_inherit(ms, &key, renew);
	explicit_bzero(&key, sizeof(key));
}

static void
upgrade_inherit_withdraw(struct master *ms, const char *text)
{
	ms->ms_withdraw = text[0] == '1' ? "1" : "0";
	ms->ms_withdrawn = clock_now();
}

static void
upgrade_inherit_line(struct master *ms, const char *text, const char *end)
{
	for (; text < end; text += strlen(text) + 1) {
		if (strncmp(text, "child ", 6) == 0)
			upgrade_inherit_child(ms, text + 6);
		else if (strncmp(text, "socket ", 7) == 0)
			upgrade_inherit_socket(ms, text + 7);
		else if (strncmp(text, "withdraw ", 9) == 0)
			upgrade_inherit_withdraw(ms, text + 9);
		else if (strncmp(text, "ticket_key ", 11) == 0)
			upgrade_inherit_ticket_key(ms, text + 11);
	}
}

/*
 * Reads the whole state and appends a NUL.  The caller must free the result.  Returns NULL, with
 * errno set, on failure.
 */
static char *
upgrade_read_state(int fd, size_t *len)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = size == -1 ? NULL : calloc((size_t)size + 1, 1);

	if (text == NULL)
		return NULL;
	if (pread(fd, text, (size_t)size, 0) != size ||
	    strncmp(text, "pagewise ", 9) != 0) {
		errno = EIO;
		free(text);
		return NULL;
	}
	*len = (size_t)size;
	return text;
}

bool
upgrade_inherit(struct master *ms)
{
	const char *name = getenv(STATE);
	char *text;
	size_t len;
	int fd;

	if (name == NULL)
		return false;
	fd = (int)strtol(name, NULL, 10);
	unsetenv(STATE);
	text = upgrade_read_state(fd, &len);
	if (text == NULL) {
		log_error(NULL,
		    "cannot read the state of the old program: %s; restart the "
		    "server if it refuses connections",
		    strerror(errno));
		return false;
	}
	upgrade_inherit_line(ms, text, text + len);
	explicit_bzero(text, len);
	free(text);
	close(fd);
	return true;
}
