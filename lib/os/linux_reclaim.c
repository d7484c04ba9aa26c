/*
 * linux_reclaim: reads the kernel's counters of reclaimed pages of files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/os.h"

#define VMSTAT "/proc/vmstat"

/*
 * Names of counters in /proc/vmstat.  The first counts pages that were reclaimed for the machine or a
 * control group, the second counts uses of drop_caches, each of which drops an unknown number of pages.
 */
static const char *const counters[] = {"\npgsteal_file ", "\ndrop_pagecache "};

int
os_reclaim_open(void)
{
	int fd = open(VMSTAT, O_RDONLY | O_CLOEXEC), error;
	int64_t taken;

	if (fd == -1)
		return -errno;
	taken = os_reclaimed(fd);
	if (taken >= 0)
		return fd;
	error = (int)taken;
	close(fd);
	return error;
}

int64_t
os_reclaimed(int fd)
{
	char text[16384];
	const char *line;
	int64_t sum = 0;
	ssize_t n;
	size_t i;

	n = pread(fd, text, sizeof(text) - 1, 0);
	if (n == -1)
		return -errno;
	text[n] = '\0';
	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		line = strstr(text, counters[i]);
		if (line == NULL)
			return -ENOSYS;
		sum += (int64_t)strtoull(line + strlen(counters[i]), NULL, 10);
	}
	return sum;
}
