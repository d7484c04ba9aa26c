/*
 * os_linux_process: what os.h says about the process as a whole: the memory that it
 * may have, its program, its table of descriptors.
 */
#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os.h"

#define PATH_LEN 4096

/* The group's limit, or one of those above it, if that is smaller. */
static uint64_t
limit_of(const char *mount, char *group, const char *file, uint64_t least)
{
	char path[PATH_LEN + 64], line[32], *end, *slash;
	uint64_t limit;
	FILE *f;

	for (;;) {
		snprintf(path, sizeof(path), "%s%s/%s", mount, group, file);
		f = fopen(path, "re");
		if (f != NULL) {
			if (fgets(line, sizeof(line), f) == NULL)
				line[0] = '\0';
			limit = strtoull(line, &end, 10);
			/* "max": there is none. */
			if (end != line && limit < least)
				least = limit;
			fclose(f);
		}
		slash = strrchr(group, '/');
		if (slash == NULL)
			return least;
		*slash = '\0';
	}
}

/* A line of /proc/self/cgroup: number:controllers:/group */
static uint64_t
limit_of_line(char *line, uint64_t least)
{
	char *controllers, *group, again[PATH_LEN];

	line[strcspn(line, "\n")] = '\0';
	controllers = strchr(line, ':');
	group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
	if (group == NULL)
		return least;
	*group++ = '\0';
	if (controllers[1] == '\0') {
		snprintf(again, sizeof(again), "%s", group);
		least = limit_of("/sys/fs/cgroup", again, "memory.high", least);
		return limit_of("/sys/fs/cgroup", group, "memory.max", least);
	}
	if (strcmp(controllers, ":memory") == 0)
		return limit_of("/sys/fs/cgroup/memory", group,
		    "memory.limit_in_bytes", least);
	return least;
}

/* The machine's, or what the control group may have, cgroups(7) v1 or v2. */
uint64_t
os_memory(void)
{
	uint64_t least =
	    (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	char line[PATH_LEN];
	FILE *f;

	f = fopen("/proc/self/cgroup", "re");
	if (f == NULL)
		return least;
	while (fgets(line, sizeof(line), f) != NULL)
		least = limit_of_line(line, least);
	fclose(f);
	return least;
}

/* What the program or a library has in its file. */
static int
lock_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const ElfW(Phdr) * ph;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from, end;
	int i, *error = arg;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		ph = &info->dlpi_phdr[i];
		if (ph->p_type != PT_LOAD)
			continue;
		from = (info->dlpi_addr + ph->p_vaddr) & ~(page - 1);
		end = info->dlpi_addr + ph->p_vaddr + ph->p_filesz;
		if (mlock2((void *)from, end - from, 0) == 0)
			continue;
		*error = -errno;
		madvise((void *)from, (end - from + page - 1) & ~(page - 1),
		    MADV_POPULATE_READ);
	}
	return 0;
}

int
os_lock_program(void)
{
	int error = 0;

	dl_iterate_phdr(lock_object, &error);
	return error;
}

/*
 * A table of a process with several threads grows only after all processors have
 * let go of the old one: milliseconds.
 */
void
os_reserve_descriptors(unsigned n)
{
	int fd, high;

	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return;
	high = fcntl(fd, F_DUPFD_CLOEXEC, (int)n - 1);
	if (high != -1)
		close(high);
	close(fd);
}
