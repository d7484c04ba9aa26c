/*
 * machine: what the library reads of the machine in /proc and /sys, limits, and the heap.
 */
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/random.h>

#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/kernel.h"
#include "tests/sim/wrap.h"

struct machine machine;
static unsigned blocks;

#define FILLED 8192 /* bytes of a block that malloc(3) and free(3) overwrite */

void
machine_draw(void)
{
	static const uint64_t memory[] = {
	    32 << 20, 64 << 20, 128 << 20, UINT64_C(1) << 30};
	static const uint64_t memlock[] = {0, 8 << 20, RLIM_INFINITY};
	unsigned age = world_below(4); /* of the kernel */

	machine = (struct machine){.ma_memory = memory[world_below(4)],
	    .ma_memlock = memlock[world_below(3)],
	    .ma_readahead = 128,
	    .ma_cachestat = age > 0,
	    .ma_cachestat_all = age == 1,
	    .ma_pagemap = age > 1,
	    .ma_folios = world_once_in(2),
	    .ma_direct = age > 0,
	    .ma_group = world_once_in(3),
	    .ma_vmstat = !world_once_in(5)};
	if (plan.pl_flavour == STALLED)
		machine.ma_memory = memory[0];
	if (plan.pl_flavour == QUEUES)
		machine.ma_memory = memory[3];
	covered("machine  kernel %s", age == 0	 ? "5.12"
				      : age == 1 ? "6.5"
				      : age == 2 ? "6.7"
						 : "6.13");
}

const char *
machine_text(const char *path)
{
	static char text[512];

	if (strcmp(path, "/proc/vmstat") == 0) {
		snprintf(text, sizeof(text),
		    "nr_free_pages 1\npgsteal_file %llu\ndrop_pagecache 0\n",
		    (unsigned long long)kernel_reclaimed());
		return machine.ma_vmstat ? text : NULL;
	}
	if (strcmp(path, "/proc/self/pagemap") == 0)
		return machine.ma_pagemap ? "" : NULL;
	if (strstr(path, "read_ahead_kb") != NULL ||
	    strstr(path, "max_sectors_kb") != NULL) {
		snprintf(text, sizeof(text), "%u\n", machine.ma_readahead);
		return text;
	}
	if (strcmp(path, "/proc/self/statm") == 0)
		return "1000 1000 500 0 0 0 0\n";
	if (strcmp(path, "/proc/self/net/sockstat") == 0)
		return "TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 1\n";
	if (strstr(path, "hpage_pmd_size") != NULL)
		return machine.ma_folios ? "2097152\n" : NULL;
	if (strcmp(path, "/proc/self/cgroup") == 0)
		return machine.ma_group ? "0::/sim\n" : NULL;
	if (strcmp(path, "/sys/fs/cgroup/sim/memory.max") == 0) {
		snprintf(text, sizeof(text), "%llu\n",
		    (unsigned long long)machine.ma_memory / 2);
		return text;
	}
	if (strcmp(path, "/proc/self/uid_map") == 0)
		return "         0          0 4294967295\n";
	return NULL;
}

WRAP(FILE *, fopen, (const char *path, const char *mode))
{
	const char *text = machine_text(path);
	FILE *f;

	(void)mode;
	world_point("fopen");
	if (text == NULL) {
		errno = ENOENT;
		return NULL;
	}
	f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	if (f == NULL)
		world_fail("the simulator cannot open a text");
	return f;
}

WRAP(long, sysconf, (int name))
{
	if (name == _SC_PHYS_PAGES)
		return (long)(machine.ma_memory / PAGE);
	return name == _SC_PAGESIZE ? PAGE : 2;
}

WRAP(int, getrlimit, (int which, struct rlimit *rl))
{
	rl->rlim_cur = which == RLIMIT_MEMLOCK	? machine.ma_memlock
		       : which == RLIMIT_NOFILE ? 1024
						: RLIM_INFINITY;
	rl->rlim_max = RLIM_INFINITY;
	return 0;
}

WRAP(int, getrusage, (int who, struct rusage *ru))
{
	(void)who;
	world_point("getrusage");
	memset(ru, 0, sizeof(*ru));
	ru->ru_nvcsw = (long)*task_switches();
	/* A fault of a disk thread that read: linux_fetch_populate asks. */
	ru->ru_majflt = task_is_loop() ? 0 : (long)*task_switches();
	return 0;
}

WRAP(pid_t, getpid, (void))
{
	return 1000;
}

WRAP(uid_t, geteuid, (void))
{
	return 1000;
}

WRAP(ssize_t, getrandom, (void *to, size_t len, unsigned flags))
{
	size_t i;

	(void)flags;
	for (i = 0; i < len; i++)
		((char *)to)[i] = (char)world_below(256);
	return (ssize_t)len;
}

WRAP(int, prctl, (int what, ...))
{
	(void)what;
	return 0;
}

WRAP(int, getpriority, (int which, unsigned who))
{
	(void)which, (void)who;
	return 0;
}

WRAP(int, setpriority, (int which, unsigned who, int nice))
{
	(void)which, (void)who, (void)nice;
	return 0;
}

WRAP(int, sched_getcpu, (void))
{
	return (int)world_below(2);
}

/* ---------------------------------------------------------------------- heap */

static bool
machine_is_short(void)
{
	world_point("malloc");
	/* The clients of a server have memory. */
	if (world_me == NULL || !has_fault(FAULT_MEMORY) || !world_once_in(300))
		return false;
	covered("fault    no memory");
	story("no memory");
	errno = ENOMEM;
	return true;
}

WRAP(void *, malloc, (size_t n))
{
	void *mem = machine_is_short() ? NULL : malloc(n);

	blocks += mem != NULL;
	if (mem != NULL)
		memset(mem, 0xa5, n < FILLED ? n : FILLED);
	return mem;
}

WRAP(void *, realloc, (void *old, size_t n))
{
	void *mem = machine_is_short() ? NULL : realloc(old, n);

	blocks += mem != NULL && old == NULL;
	return mem;
}

WRAP(void *, reallocarray, (void *old, size_t n, size_t size))
{
	return __wrap_realloc(old, n * size);
}

WRAP(char *, strndup, (const char *text, size_t most))
{
	size_t n = strnlen(text, most);
	char *copy = __wrap_malloc(n + 1);

	if (copy != NULL)
		memcpy(copy, text, n), copy[n] = '\0';
	return copy;
}

WRAP(char *, strdup, (const char *text))
{
	return __wrap_strndup(text, strlen(text));
}

WRAP(int, asprintf, (char **out, const char *format, ...))
{
	char text[4096];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	*out = __wrap_strdup(text);
	return *out == NULL ? -1 : n;
}

WRAP(void *, calloc, (size_t n, size_t size))
{
	void *mem = machine_is_short() ? NULL : calloc(n, size);

	blocks += mem != NULL;
	return mem;
}

WRAP(void *, aligned_alloc, (size_t align, size_t n))
{
	void *mem = machine_is_short() ? NULL : aligned_alloc(align, n);

	blocks += mem != NULL;
	return mem;
}

/* Freed memory has no old values, so that a use of it is noticed. */
WRAP(void, free, (void *mem))
{
	size_t n;

	(void)n;
	if (mem == NULL)
		return;
	blocks--;
#ifndef __SANITIZE_ADDRESS__
	n = malloc_usable_size(mem);
	memset(mem, 0xdb, n < FILLED ? n : FILLED);
#endif
	free(mem);
}

unsigned
machine_blocks(void)
{
	return blocks;
}
