/*
 * tool: see tool.h.
 */
#include "server/tool/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lib/util/timespec.h"
#include "server/tool/crew.h"
#include "server/tool/progress.h"

#define SECOND_NS ((int64_t)1000000000)
#define TICK_NS	  (20 * SECOND_NS / 1000) /* two ticks of the slowest clock */
#define COARSE_NS (2 * SECOND_NS) /* granularity of FAT, the coarsest in use */

static atomic_int stopped; /* number of the received signal, or 0; lock-free */
static atomic_bool given_up;

/* ----------------------------------------------------------------- stopping */

static void
tool_on_signal(int number)
{
	stopped = number;
}

/* Installs the handlers.  A second signal kills the process at once. */
static void
tool_take_signals(void)
{
	struct sigaction sa = {.sa_handler = tool_on_signal,
	    .sa_flags = SA_RESETHAND | SA_RESTART};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
}

bool
tool_stopped(void)
{
	return stopped != 0 || given_up;
}

void
tool_give_up(void)
{
	given_up = true;
}

/* ----------------------------------------------------------------- messages */

void
tool_fail(struct tool *to, const struct walk_dir *dir, const char *name,
    const char *fmt, ...)
{
	va_list ap;

	to->to_failed++;
	progress_lock();
	fprintf(stderr, "pagewise %s: ", to->to_command->tc_name);
	walk_print(stderr, dir, name);
	fputs(": ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	progress_unlock();
}

void
tool_found(struct tool *to, const struct walk_file *wf, const char *what)
{
	to->to_failed++;
	progress_lock();
	walk_print(stdout, wf->wf_dir, wf->wf_name);
	printf(": %s\n", what);
	progress_unlock();
}

/* -------------------------------------------------------------------- files */

bool
tool_unchanged(int fd, const struct stat *then)
{
	struct stat now;

	return fstat(fd, &now) == 0 && now.st_size == then->st_size &&
	       timespec_same(&now.st_mtim, &then->st_mtim);
}

bool
tool_settle(const struct stat *st)
{
	static const struct timespec pause = {0, TICK_NS};
	int64_t most = st->st_mtim.tv_nsec == 0 ? COARSE_NS : TICK_NS, age;
	struct timespec now;

	for (;;) {
		clock_gettime(CLOCK_REALTIME, &now);
		if (now.tv_sec - st->st_mtim.tv_sec > 2 ||
		    now.tv_sec < st->st_mtim.tv_sec)
			return true;
		age = (now.tv_sec - st->st_mtim.tv_sec) * SECOND_NS +
		      now.tv_nsec - st->st_mtim.tv_nsec;
		if (age >= most)
			return true;
		if (tool_stopped())
			return false;
		nanosleep(&pause, NULL);
	}
}

/*
 * Opens a file and passes it to the command.  Ignores a file that was removed or replaced by a
 * link.
 */
static void
tool_work_on_file(void *arg, const struct walk_file *wf)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	struct tool *to = arg;
	struct stat st;
	int fd;

	if (tool_stopped())
		return;
	fd = openat(wf->wf_dir->wd_fd, wf->wf_name, flags);
	if (fd == -1) {
		if (errno != ENOENT && errno != ELOOP)
			tool_fail(to, wf->wf_dir, wf->wf_name,
			    "cannot open the file: %s", strerror(errno));
		return;
	}
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		to->to_command->tc_file(to, wf, fd, &st);
		to->to_files++;
		to->to_bytes += (uint64_t)st.st_size;
	}
	close(fd);
}

/* --------------------------------------------------------------------- walks */

struct visit {
	struct tool *vi_tool;
	struct crew *vi_crew; /* NULL if the walk only counts files */
};

static bool
tool_enter(void *arg, const char *name)
{
	const struct visit *vi = arg;

	return name[0] != '.' || vi->vi_tool->to_dotfiles;
}

static void
tool_count(struct tool *to, const struct walk_file *wf)
{
	struct stat st;

	if (fstatat(wf->wf_dir->wd_fd, wf->wf_name, &st, AT_SYMLINK_NOFOLLOW) ==
	    -1)
		return;
	to->to_all_files++;
	to->to_all_bytes += (uint64_t)st.st_size;
}

static void
tool_visit(void *arg, const struct walk_file *wf)
{
	struct visit *vi = arg;
	struct tool *to = vi->vi_tool;
	bool dot = wf->wf_name[0] == '.';

	if (dot && vi->vi_crew != NULL && to->to_command->tc_dotfile != NULL)
		to->to_command->tc_dotfile(to, wf);
	if ((dot && !to->to_dotfiles) ||
	    !to->to_command->tc_wants(to, wf->wf_name))
		return;
	if (vi->vi_crew == NULL)
		tool_count(to, wf);
	else if (!crew_put(vi->vi_crew, wf))
		tool_fail(to, wf->wf_dir, wf->wf_name, "%s", strerror(ENOMEM));
}

static void
tool_failed(void *arg, const struct walk_dir *dir, const char *name, int error)
{
	struct visit *vi = arg;

	if (vi->vi_crew != NULL)
		tool_fail(vi->vi_tool, dir, name,
		    "cannot read the directory: %s", walk_error(error));
}

static void
tool_walk_all(struct tool *to, struct crew *cr, char *const *dirs)
{
	struct visit vi = {to, cr};
	const struct walk wk = {
	    .wk_arg = &vi,
	    .wk_file = tool_visit,
	    .wk_enter = tool_enter,
	    .wk_stopped = tool_stopped,
	    .wk_failed = tool_failed,
	};

	for (; *dirs != NULL; dirs++)
		walk_tree(&wk, *dirs);
}

struct counting {
	struct tool *co_tool;
	char *const *co_dirs;
};

/* Counts all files in a thread of its own, so that the progress line can show the total. */
static void *
tool_count_all(void *arg)
{
	struct counting *co = arg;

	tool_walk_all(co->co_tool, NULL, co->co_dirs);
	co->co_tool->to_counted = true;
	return NULL;
}

/*
 * Raises the limit of descriptors.  A walk keeps every directory on its current path open, and
 * every directory that has a queued file.
 */
static void
tool_allow_descriptors(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}

static void
tool_work_on_all(struct tool *to, struct crew *cr, char *const *dirs)
{
	struct counting co = {to, dirs};
	pthread_t counter;
	bool counts = progress_begin(to) &&
		      pthread_create(&counter, NULL, tool_count_all, &co) == 0;

	tool_walk_all(to, cr, dirs);
	crew_finish(&cr);
	if (counts)
		pthread_join(counter, NULL);
	progress_end();
}

int
tool_run(struct tool *to, char *const *dirs)
{
	struct crew *cr;

	tool_take_signals();
	tool_allow_descriptors();
	cr = crew_create(to->to_jobs, tool_work_on_file, to);
	if (cr == NULL) {
		fprintf(stderr,
		    "pagewise %s: cannot start a thread; lower --jobs\n",
		    to->to_command->tc_name);
		return 1;
	}
	tool_work_on_all(to, cr, dirs);
	if (!to->to_quiet)
		to->to_command->tc_end(to);
	if (stopped > 0) {
		fprintf(stderr, "pagewise %s: stopped by a signal: %s\n",
		    to->to_command->tc_name, strsignal(stopped));
		return 128 + stopped;
	}
	return to->to_failed > 0 || given_up ? 1 : 0;
}
