/*
 * metrics_process: writes Prometheus' standard metrics of a process.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/admin/metrics_priv.h"

#define SECOND ((uint64_t)1000000)

/* Files of /proc that metrics_prepare opens, since the sandbox forbids opening them later. */
static DIR *descriptors;
static int statm = -1;

void
metrics_prepare(void)
{
	descriptors = opendir("/proc/self/fd");
	statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
}

/*
 * Returns the number of open descriptors, or -1 if it is unknown.  Since Linux 6.2 the size of the
 * directory is that number; listing the directory would create a dentry and an inode for each
 * descriptor.
 */
static long
metrics_process_open_descriptors(void)
{
	struct stat st;
	long n = 0;

	if (descriptors == NULL)
		return -1;
	if (fstat(dirfd(descriptors), &st) == 0 && st.st_size > 0)
		return st.st_size;
	rewinddir(descriptors);
	while (readdir(descriptors) != NULL)
		n++;
	return n - 2; /* "." and ".." */
}

static long
metrics_process_resident_pages(void)
{
	char line[128], *second;
	ssize_t n = pread(statm, line, sizeof(line) - 1, 0);

	if (n <= 0)
		return -1;
	line[n] = '\0';
	second = strchr(line, ' ');
	return second == NULL ? -1 : strtol(second, NULL, 10);
}

void
metrics_process(const struct metrics *mt, struct evbuffer *out)
{
	long fds = metrics_process_open_descriptors(),
	     pages = metrics_process_resident_pages();
	struct rusage ru;
	struct rlimit rl;

	prometheus_simple(out, "process_start_time_seconds", "gauge",
	    (uint64_t)mt->mt_start, "Start time of the process, Unix time.");
	if (fds >= 0)
		prometheus_simple(out, "process_open_fds", "gauge",
		    (uint64_t)fds, "Open file descriptors.");
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0)
		prometheus_simple(out, "process_max_fds", "gauge", rl.rlim_cur,
		    "Maximum number of open file descriptors.");
	if (pages >= 0)
		prometheus_simple(out, "process_resident_memory_bytes", "gauge",
		    (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE),
		    "Resident memory of the process.");
	if (getrusage(RUSAGE_SELF, &ru) != 0)
		return;
	prometheus_family(out, "process_cpu_seconds_total", "counter",
	    "Processor time of all threads, user and system.");
	prometheus_seconds(out, "process_cpu_seconds_total", "",
	    (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * SECOND +
		(uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec));
}
