/*
 * guest: runs on FreeBSD what tests/freebsd/run put on the disk that this program is on: each unit
 * test, and then a server with clients (checks.c).  Prints the Test Anything Protocol.  The first argument
 * is check_seconds.  With a second one above 0 it compares send paths (compare.h) for so many rounds instead.
 * With a third one only checks whose names contain it run.
 *
 * On the disk are unit/, pagewise, pagewise.conf, conf/, tests/, tmp/, and data/, where the disk with the
 * files of the server is mounted.
 */
#include <sys/param.h>
#include <sys/sysctl.h>
#include <sys/wait.h>

#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/freebsd/compare.h"
#include "tests/freebsd/guest.h"
#include "tests/freebsd/http.h"

#define UNIT_SECONDS 900
#define DIAGNOSED    40 /* lines of a unit test that fails */

unsigned check_seconds;
const char *check_skipped;
static unsigned results;

static void
result(bool yes, const char *name, const char *more)
{
	printf("%sok %u - %s%s\n", yes ? "" : "not ", ++results, name, more);
}

/* Returns true for what cmocka says of a failure in TAP, and not of what was skipped. */
static bool
is_of_failure(const char *line)
{
	return (strncmp(line, "not ok ", 7) == 0 || line[0] == '#') &&
	       strstr(line, "# SKIP") == NULL;
}

void
guest_diagnose(const char *path, bool failures)
{
	FILE *fp = fopen(path, "r");
	char line[512];
	int left = DIAGNOSED;

	if (fp == NULL)
		return;
	while (left > 0 && fgets(line, sizeof(line), fp) != NULL) {
		line[strcspn(line, "\r\n")] = '\0';
		if (failures && !is_of_failure(line))
			continue;
		printf("#   %s\n", line);
		left--;
	}
	fclose(fp);
}

unsigned
guest_count(const char *path, const char *begin, const char *part)
{
	FILE *fp = fopen(path, "r");
	char line[512];
	unsigned n = 0;

	if (fp == NULL)
		return 0;
	while (fgets(line, sizeof(line), fp) != NULL)
		n += strncmp(line, begin, strlen(begin)) == 0 &&
		     strstr(line, part) != NULL;
	fclose(fp);
	return n;
}

bool
guest_mute(bool yes)
{
	int mute = yes;

	return sysctlbyname("kern.consmute", NULL, NULL, &mute, sizeof(mute)) ==
	       0;
}

pid_t
guest_start(const char *const argv[], const char *output)
{
	pid_t pid = fork();
	int fd;

	if (pid != 0)
		return pid;
	fd = open(output, O_WRONLY | O_CREAT | O_APPEND, 0644);
	if (fd == -1)
		_exit(126);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
	fd = open("/dev/null", O_RDONLY);
	dup2(fd, STDIN_FILENO);
	setpgid(0, 0);
	execv(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

int
guest_await(pid_t pid, unsigned seconds)
{
	double end = http_now() + seconds;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (http_now() > end) {
			kill(-pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		usleep(20000);
	}
	return status;
}

static int
is_test(const struct dirent *entry)
{
	return strncmp(entry->d_name, "test_", 5) == 0;
}

static void
run_unit(const char *name)
{
	char path[300], what[300], more[128] = "";
	const char *const argv[] = {path, NULL};
	unsigned passed, skipped;
	double begun = http_now();
	int status;

	snprintf(path, sizeof(path), "unit/%s", name);
	snprintf(what, sizeof(what), "unit %s", name);
	unlink("tmp/output");
	status = guest_await(guest_start(argv, "tmp/output"), UNIT_SECONDS);
	skipped = guest_count("tmp/output", "", "# SKIP");
	passed = guest_count("tmp/output", "ok ", "") -
		 guest_count("tmp/output", "ok ", "# SKIP");
	if (status == 0 && passed == 0 && skipped > 0)
		snprintf(more, sizeof(more), " # SKIP all %u", skipped);
	result(status == 0 && passed + skipped > 0, what, more);
	printf("#   %u passed, %u skipped, %.1f s\n", passed, skipped,
	    http_now() - begun);
	if (status == 0)
		return;
	if (status == -1)
		printf("#   it did not end within %d s\n", UNIT_SECONDS);
	else if (WIFSIGNALED(status))
		printf("#   killed by signal %d\n", WTERMSIG(status));
	guest_diagnose("tmp/output", true);
}

/* Runs a check, and prints its result.  Returns false if it failed. */
static bool
run_check(const struct check *ck)
{
	char more[128];
	bool yes;

	check_skipped = NULL;
	yes = ck->ck_run();
	snprintf(more, sizeof(more), "%s%s",
	    check_skipped == NULL ? "" : " # SKIP ",
	    check_skipped == NULL ? "" : check_skipped);
	result(yes || check_skipped != NULL, ck->ck_name, more);
	return yes || check_skipped != NULL;
}

/* Runs the checks whose names contain the text.  The first one starts the server that the others need. */
static void
run_checks(const char *part)
{
	if (!run_check(&checks[0]))
		return;
	for (size_t i = 1; i < nchecks; i++)
		if (strstr(checks[i].ck_name, part) != NULL)
			run_check(&checks[i]);
		else
			result(true, checks[i].ck_name, " # SKIP not chosen");
}

/* Runs the unit tests, then the checks of the server. */
static int
run_tests(const char *part)
{
	struct dirent **units;
	int n = scandir("unit", &units, is_test, alphasort);

	printf("TAP version 13\n1..%zu\n", (n > 0 ? (size_t)n : 0) + nchecks);
	for (int i = 0; i < n; i++)
		run_unit(units[i]->d_name);
	run_checks(part);
	guest_diagnose(SERVER_LOG, false);
	return 0;
}

static unsigned
number(int argc, char **argv, int i)
{
	return i < argc ? (unsigned)strtoul(argv[i], NULL, 10) : 0;
}

int
main(int argc, char **argv)
{
	unsigned rounds;
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	setenv("TMPDIR", "tmp", 1);
	setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", 1);
	if (chdir(dirname(argv[0])) == -1)
		return 1;
	check_seconds = number(argc, argv, 1);
	rounds = number(argc, argv, 2);
	status =
	    rounds == 0 ? run_tests(argc > 3 ? argv[3] : "") : compare(rounds);
	printf("# end of the tests\n");
	return status;
}
