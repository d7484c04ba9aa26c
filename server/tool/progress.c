/*
 * progress: see progress.h.
 */
#include "server/tool/progress.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "lib/util/clock.h"
#include "server/tool/size_text.h"

#define BAR   24	/* characters of the bar */
#define WIDTH 80	/* default width of a terminal */
#define STEP  100000000 /* time between two redraws, nanoseconds */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended; /* set up by progress_begin */
static pthread_t thread;
static bool running, drawn;
static struct timespec began;

static void
tool_progress_clear(void)
{
	if (drawn)
		fputs("\r\033[K", stderr);
	drawn = false;
}

static size_t
tool_progress_width(void)
{
	struct winsize ws;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0)
		return ws.ws_col;
	return WIDTH;
}

/* Returns the fraction of the work that is done, by bytes, with 4 KiB added for each file. */
static double
tool_progress_part(const struct tool *to)
{
	double done = (double)(to->to_bytes + 4096 * to->to_files);
	double all = (double)(to->to_all_bytes + 4096 * to->to_all_files);

	return all == 0 || done >= all ? 1 : done / all;
}

static double
tool_progress_seconds_since(const struct timespec *then)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - then->tv_sec) +
	       (double)(now.tv_nsec - then->tv_nsec) / 1e9;
}

static void
tool_progress_time_text(double seconds, char *text, size_t size)
{
	unsigned long s = (unsigned long)seconds;

	if (s >= 3600)
		snprintf(text, size, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60,
		    s % 60);
	else
		snprintf(text, size, "%lu:%02lu", s / 60, s % 60);
}

static void
tool_progress_line_text(const struct tool *to, char *text, size_t size)
{
	char done[16], all[16], bar[BAR + 1], left[24] = "";
	double p = tool_progress_part(to),
	       elapsed = tool_progress_seconds_since(&began);

	size_text(to->to_bytes, done, sizeof(done));
	if (!to->to_counted) {
		snprintf(text, size, "%llu files, %s (counting)",
		    (unsigned long long)to->to_files, done);
		return;
	}
	size_text(to->to_all_bytes, all, sizeof(all));
	for (int i = 0; i < BAR; i++)
		bar[i] = i < (int)(p * BAR) ? '#' : '.';
	bar[BAR] = '\0';
	if (p > 0.01)
		tool_progress_time_text(
		    elapsed / p - elapsed, left, sizeof(left));
	snprintf(text, size, "[%s] %3d %%  %llu/%llu files  %s of %s%s%s", bar,
	    (int)(100 * p), (unsigned long long)to->to_files,
	    (unsigned long long)to->to_all_files, done, all,
	    left[0] == '\0' ? "" : "  left ", left);
}

static void
tool_progress_draw(const struct tool *to)
{
	char text[256];
	size_t columns = tool_progress_width();

	tool_progress_line_text(to, text, sizeof(text));
	if (columns < sizeof(text))
		text[columns - 1] = '\0';
	fprintf(stderr, "\r%s\033[K", text);
	fflush(stderr);
	drawn = true;
}

static void *
tool_progress_run(void *arg)
{
	const struct tool *to = arg;
	struct timespec until;

	pthread_mutex_lock(&lock);
	while (running) {
		tool_progress_draw(to);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += STEP;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&ended, &lock, &until);
	}
	tool_progress_clear();
	pthread_mutex_unlock(&lock);
	return NULL;
}

bool
progress_begin(const struct tool *to)
{
	if (to->to_quiet || !isatty(STDERR_FILENO))
		return false;
	clock_gettime(CLOCK_MONOTONIC, &began);
	clock_cond_init(&ended);
	running = true;
	/* The cast is safe, as the thread only reads the tool. */
	running = pthread_create(&thread, NULL, tool_progress_run,
		      (void *)(uintptr_t)to) == 0;
	return running;
}

void
progress_end(void)
{
	if (!running)
		return;
	pthread_mutex_lock(&lock);
	running = false;
	pthread_cond_signal(&ended);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
}

void
progress_lock(void)
{
	pthread_mutex_lock(&lock);
	tool_progress_clear();
}

void
progress_unlock(void)
{
	fflush(stdout);
	pthread_mutex_unlock(&lock);
}
