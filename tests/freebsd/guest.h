/*
 * guest: what the checks of checks.c share with the unit tests of guest.c.
 */
#ifndef TESTS_FREEBSD_GUEST_H
#define TESTS_FREEBSD_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SERVER_LOG "tmp/server.log"

/* A test of the server, in order: the first one starts it. */
struct check {
	const char *ck_name;
	bool (*ck_run)(void); /* true if it passed; prints diagnostics */
};

extern const struct check checks[];
extern const size_t nchecks;

/* Duration of the check that reloads and upgrades by turns. */
extern unsigned check_seconds;

/* A check that cannot run sets this to the reason.  NULL before each check. */
extern const char *check_skipped;

/* Stops or resumes the kernel's own messages on the console, such as those of disk errors. */
bool guest_mute(bool);

/* Starts a program whose output goes to a file.  Returns its process ID, or -1. */
pid_t guest_start(const char *const argv[], const char *output);

/* Waits for a process that was started.  Returns its status, or -1 after it was killed. */
int guest_await(pid_t, unsigned seconds);

/* Prints a file as diagnostics: all of it, or the failures of a unit test. */
void guest_diagnose(const char *path, bool failures);

/* Returns the number of lines of the file that begin with one text and contain another. */
unsigned guest_count(const char *path, const char *begin, const char *part);

#endif
