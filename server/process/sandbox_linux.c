/*
 * sandbox_linux: implements sandbox_os_confine with no_new_privs, capabilities, Landlock and
 * seccomp.
 */
#include <sys/prctl.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "server/process/sandbox_linux.h"

/* First version of Landlock that restricts the truncation of files. */
#define TRUNCATE 3

/*
 * Restrictions that older versions of Landlock lack, with the version that added each of them.  The
 * seccomp filter covers these restrictions, except openat2(2) with O_TRUNC, whose flags the filter
 * cannot read.
 */
static const struct {
	int since_version;
	const char *since_what;
} sinces[] = {
    {TRUNCATE, "truncate"},
    {4, "TCP"},
    {5, "ioctl"},
    {6, "signals"},
};

/* Returns `version`.  In a debug build, the environment variable may set a lower version. */
static int
sandbox_linux_at_most(const char *variable, int version)
{
#ifdef PW_DEBUG
	const char *text = getenv(variable);

	if (text != NULL && atoi(text) == 0)
		return -ENOSYS;
	if (text != NULL && atoi(text) < version)
		return atoi(text);
#else
	(void)variable;
#endif
	return version;
}

static void __attribute__((format(printf, 3, 4)))
sandbox_linux_append(char *text, size_t size, const char *fmt, ...)
{
	size_t len = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + len, size - len, fmt, ap);
	va_end(ap);
}

/*
 * Returns true if the error means that the kernel lacks the feature or has disabled it, or that a
 * container forbids it.
 */
static bool
sandbox_linux_is_absent(int error)
{
	return error == -ENOSYS || error == -EOPNOTSUPP || error == -EPERM;
}

static int
sandbox_linux_confine_files(
    const struct os_confine *oc, char *missing, size_t size)
{
	int version =
	    sandbox_linux_at_most("PAGEWISE_LANDLOCK", landlock_version());
	const char *comma = "";
	size_t i;
	int error;

	if (sandbox_linux_is_absent(version)) {
		sandbox_linux_append(missing, size,
		    "no Landlock (%s): a compromised process can read and "
		    "write all files that its user can; use Linux 5.13 or "
		    "later with landlock in lsm=, and a container that "
		    "permits Landlock",
		    strerror(-version));
		return 1;
	}
	error = version < 0 ? version : landlock_enter(oc, version);
	if (error != 0) {
		sandbox_linux_append(missing, size, "Landlock");
		return error;
	}
	for (i = 0; i < sizeof(sinces) / sizeof(sinces[0]); i++) {
		if (version >= sinces[i].since_version)
			continue;
		if (comma[0] == '\0')
			sandbox_linux_append(missing, size, "Landlock lacks ");
		sandbox_linux_append(
		    missing, size, "%s%s", comma, sinces[i].since_what);
		comma = ", ";
	}
	if (version >= TRUNCATE)
		return 0;
	sandbox_linux_append(missing, size,
	    ": a compromised process can truncate files below the roots that "
	    "its user can write; chown them to another user");
	return 1;
}

static int
sandbox_linux_confine_calls(
    const struct os_confine *oc, char *missing, size_t size)
{
	int error = sandbox_linux_at_most("PAGEWISE_SECCOMP", seccomp_probe());

	if (sandbox_linux_is_absent(error)) {
		sandbox_linux_append(missing, size, "%sno seccomp filter (%s)",
		    missing[0] == '\0' ? "" : "; ", strerror(-error));
		return 1;
	}
	if (error >= 0)
		error = seccomp_enter(oc);
	if (error != 0) {
		snprintf(missing, size, "seccomp filter");
		return error;
	}
	if (seccomp_holds())
		return 0;
	sandbox_linux_append(missing, size,
	    "%sno seccomp filter (the kernel does not enforce it)",
	    missing[0] == '\0' ? "" : "; ");
	return 1;
}

static int
sandbox_linux_limit_capabilities(bool keep, char *missing, size_t size)
{
	int error = capability_limit(keep);

	if (error != 0)
		snprintf(missing, size, "capabilities");
	return error;
}

/*
 * Drops CAP_FOWNER if there is no seccomp filter.  The capability permits much more than residency
 * checks, and only the filter refuses the rest.  capset(2) still works, because no filter refuses
 * it.
 */
static int
sandbox_linux_keep_or_give_up(
    struct os_confine *oc, int calls, char *missing, size_t size)
{
	if (!oc->oc_keep || geteuid() == 0)
		return 0;
	if (oc->oc_async)
		oc->oc_gave_up = "io_uring bypasses the seccomp filter";
	if (calls == 0)
		return 0;
	oc->oc_gave_up = "there is no seccomp filter";
	return sandbox_linux_limit_capabilities(false, missing, size);
}

int
sandbox_os_confine(struct os_confine *oc, char *missing, size_t size)
{
	int files, calls, error;

	missing[0] = '\0';
	oc->oc_gave_up = NULL;
	error = sandbox_linux_limit_capabilities(
	    oc->oc_keep && !oc->oc_async, missing, size);
	if (error != 0)
		return error;
	/* Landlock and seccomp require no_new_privs. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1) {
		error = -errno;
		sandbox_linux_append(missing, size, "no_new_privs");
		return error;
	}
	files = sandbox_linux_confine_files(oc, missing, size);
	if (files < 0)
		return files;
	calls = sandbox_linux_confine_calls(oc, missing, size);
	if (calls < 0)
		return calls;
	error = sandbox_linux_keep_or_give_up(oc, calls, missing, size);
	if (error != 0)
		return error;
	return calls != 0 ? calls : files;
}
