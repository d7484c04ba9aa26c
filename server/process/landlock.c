/*
 * landlock: restricts which files the process may open (landlock(7)).  The ruleset forbids
 * everything that the kernel can forbid, then allows reading in some places.
 */
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "server/process/sandbox_linux.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define READ_FILE LANDLOCK_ACCESS_FS_READ_FILE
#define READ_TREE (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

/*
 * Copy of struct landlock_ruleset_attr, because the system's header may be older than the kernel.
 * Fields that the kernel does not know must be zero.
 */
struct ruleset {
	uint64_t rs_fs;	   /* since version 1: access to files */
	uint64_t rs_net;   /* since version 4: TCP bind and connect */
	uint64_t rs_scope; /* since 6: abstract Unix sockets and signals */
};

static const struct {
	int kind_version;
	struct ruleset kind_rights;
} kinds[] = {
    {1, {.rs_fs = (1 << 13) - 1}}, /* execute to make_sym */
    {2, {.rs_fs = 1 << 13}},	   /* refer */
    {3, {.rs_fs = 1 << 14}},	   /* truncate, also by open */
    {4, {.rs_net = 1 << 0 | 1 << 1}},
    {5, {.rs_fs = 1 << 15}}, /* ioctl on devices */
    {6, {.rs_scope = 1 << 0 | 1 << 1}},
};

/*
 * Files that os_advice_limit and os_folios read when the server opens a file on a new device.  If a
 * device is attached after the start, only its bdi can be read, which is enough.
 */
static const char *const sys_files[] = {
    "/sys/devices/virtual/bdi",
    "/sys/dev/block/*/queue",
    "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
};

#if SANITIZED
/* Files that sanitizers read to write a report.  The first file is the program. */
static const struct {
	const char *san_path;
	uint64_t san_rights;
} sanitizer_files[] = {
    {"/proc/self/exe", READ_FILE},
    {"/proc", READ_TREE},
    {"/usr", READ_TREE | LANDLOCK_ACCESS_FS_EXECUTE},
    {"/lib", READ_TREE | LANDLOCK_ACCESS_FS_EXECUTE},
};
#endif

int
landlock_version(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0,
	    LANDLOCK_CREATE_RULESET_VERSION);

	return version == -1 ? -errno : (int)version;
}

static int
landlock_create(int version)
{
	struct ruleset rs = {0};
	size_t i;
	long fd;

	for (i = 0; i < COUNT(kinds); i++) {
		if (kinds[i].kind_version > version)
			break;
		rs.rs_fs |= kinds[i].kind_rights.rs_fs;
		rs.rs_net |= kinds[i].kind_rights.rs_net;
		rs.rs_scope |= kinds[i].kind_rights.rs_scope;
	}
	fd = syscall(SYS_landlock_create_ruleset, &rs, sizeof(rs), 0);
	return fd == -1 ? -errno : (int)fd;
}

static int
landlock_allow(int ruleset, int fd, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = {
	    .allowed_access = rights, .parent_fd = fd};

	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH,
		&rule, 0) == -1)
		return -errno;
	return 0;
}

/* Allows a path.  Ignores a path that does not exist. */
static int
landlock_allow_path(int ruleset, const char *path, uint64_t rights)
{
	int error, fd = open(path, O_PATH | O_CLOEXEC);

	if (fd == -1)
		return errno == ENOENT ? 0 : -errno;
	error = landlock_allow(ruleset, fd, rights);
	close(fd);
	return error;
}

/* Allows paths that the server needs only to run faster.  Ignores errors. */
static void
landlock_allow_paths(int ruleset, const char *pattern, uint64_t rights)
{
	glob_t found;
	size_t i;

	if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
		for (i = 0; i < found.gl_pathc; i++)
			(void)landlock_allow_path(
			    ruleset, found.gl_pathv[i], rights);
	globfree(&found);
}

static int
landlock_allow_all(int ruleset, const struct os_confine *oc)
{
	size_t i;
	int error = 0;

	for (i = 0; i < oc->oc_nroots; i++) {
		error = landlock_allow(ruleset, oc->oc_roots[i], READ_TREE);
		if (error != 0)
			return error;
	}
	for (i = 0; i < COUNT(sys_files); i++)
		landlock_allow_paths(ruleset, sys_files[i], READ_FILE);
#if SANITIZED
	for (i = 0; error == 0 && i < COUNT(sanitizer_files); i++)
		error = landlock_allow_path(ruleset,
		    sanitizer_files[i].san_path, sanitizer_files[i].san_rights);
#endif
	return error;
}

int
landlock_enter(const struct os_confine *oc, int version)
{
	int ruleset, error;

	ruleset = landlock_create(version);
	if (ruleset < 0)
		return ruleset;
	error = landlock_allow_all(ruleset, oc);
	if (error == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) == -1)
		error = -errno;
	close(ruleset);
	return error;
}
