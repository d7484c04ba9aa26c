/*
 * linux_memory: see linux_memory.h.
 *
 * In a container /proc/self/cgroup has the group's path on the host, or "/" in a cgroup namespace,
 * while the group's limit is in the directory where the hierarchy is mounted.  So that directory is
 * tried last.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/linux.h"
#include "lib/os/linux_memory.h"

#define PATH_LEN 4096

/* A control group hierarchy that limits memory. */
struct hierarchy {
	const char *hy_mount;
	const char *hy_files[2]; /* files of limits; the second may be NULL */
	bool hy_sockets;	 /* true if socket memory counts too */
};

static const struct hierarchy v1 = {
    "/sys/fs/cgroup/memory", {"memory.limit_in_bytes", NULL}, false};

/* Version 2, mounted as usual, and as in systemd's hybrid mode. */
static const struct hierarchy v2[] = {
    {"/sys/fs/cgroup", {"memory.max", "memory.high"}, true},
    {"/sys/fs/cgroup/unified", {"memory.max", "memory.high"}, true},
};

static void
linux_memory_read_limit(const char *root, const struct hierarchy *hy,
    const char *group, struct os_memory *om)
{
	char path[3 * PATH_LEN];
	uint64_t limit;
	int i;

	for (i = 0; i < 2 && hy->hy_files[i] != NULL; i++) {
		snprintf(path, sizeof(path), "%s%s%s/%s", root, hy->hy_mount,
		    group, hy->hy_files[i]);
		/* "max" means no limit; os_linux_number returns 0 for it. */
		limit = os_linux_number(path);
		if (limit == 0 || limit >= om->om_bytes)
			continue;
		om->om_bytes = limit;
		om->om_limited = true;
		om->om_sockets = hy->hy_sockets;
	}
}

/* Lowers the limit to the lowest limit of the group and its ancestors. */
static void
linux_memory_read_limits(const char *root, const struct hierarchy *hy,
    const char *name, struct os_memory *om)
{
	char group[PATH_LEN], *slash;

	snprintf(group, sizeof(group), "%s", name);
	for (;;) {
		linux_memory_read_limit(root, hy, group, om);
		slash = strrchr(group, '/');
		if (slash == NULL)
			return;
		*slash = '\0';
	}
}

/*
 * Returns true if "memory" is in the list of controllers.  Several controllers may share a
 * hierarchy ("cpu,memory").
 */
static bool
linux_memory_names(const char *controllers)
{
	size_t len;

	for (;;) {
		len = strcspn(controllers, ",");
		if (len == strlen("memory") &&
		    strncmp(controllers, "memory", len) == 0)
			return true;
		if (controllers[len] == '\0')
			return false;
		controllers += len + 1;
	}
}

/* Parses a line of /proc/self/cgroup: number:controllers:/group */
static void
linux_memory_read_line(const char *root, char *line, struct os_memory *om)
{
	char *controllers, *group;

	line[strcspn(line, "\n")] = '\0';
	controllers = strchr(line, ':');
	group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
	if (group == NULL)
		return;
	*group++ = '\0';
	if (controllers[1] == '\0') {
		linux_memory_read_limits(root, &v2[0], group, om);
		linux_memory_read_limits(root, &v2[1], group, om);
	} else if (linux_memory_names(controllers + 1))
		linux_memory_read_limits(root, &v1, group, om);
}

void
os_linux_memory(const char *root, uint64_t machine, struct os_memory *om)
{
	char line[PATH_LEN];
	FILE *f;

	*om = (struct os_memory){.om_bytes = machine};
	snprintf(line, sizeof(line), "%s/proc/self/cgroup", root);
	f = fopen(line, "re");
	if (f == NULL)
		return;
	while (fgets(line, sizeof(line), f) != NULL)
		linux_memory_read_line(root, line, om);
	fclose(f);
}

void
os_memory(struct os_memory *om)
{
	os_linux_memory("",
	    (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
	    om);
}

int
os_anonymous_open(void)
{
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	return fd == -1 ? -errno : fd;
}

/* Parses /proc/self/statm (proc(5)): pages in all, resident, and shared. */
int64_t
os_anonymous(int fd)
{
	long resident, shared;
	char text[256], *end;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n == -1)
		return -errno;
	text[n] = '\0';
	(void)strtol(text, &end, 10);
	resident = strtol(end, &end, 10);
	shared = strtol(end, &end, 10);
	return resident > shared
		   ? (int64_t)(resident - shared) * sysconf(_SC_PAGESIZE)
		   : 0;
}
