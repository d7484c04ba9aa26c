/*
 * evict: see evict.h.
 */
#include <sys/param.h>
#include <sys/filio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/freebsd/evict.h"
#include "tests/freebsd/http.h"

#define DIRECT	      12 /* blocks that an inode of UFS has the addresses of */
#define BEGINNING     ((size_t)1 << 20)
#define STEP	      ((size_t)8 << 20)
#define TAKE_SECONDS  60
#define SETTLE_MICROS 1000000

/* Locks the file's beginning into memory.  Returns NULL on an error. */
static void *
lock_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *mem = MAP_FAILED;

	if (fd != -1) {
		mem = mmap(NULL, BEGINNING, PROT_READ, MAP_SHARED, fd, 0);
		close(fd);
	}
	return mem != MAP_FAILED && mlock(mem, BEGINNING) == 0 ? mem : NULL;
}

/* Reads a number of 32 or 64 bits, since n is zero and the machine has the low bytes first. */
static long
read_long(const char *name)
{
	long n = 0;
	size_t size = sizeof(n);

	sysctlbyname(name, &n, &size, NULL, 0);
	return n;
}

/* Writes memory until the kernel has had to free pages for a while, then gives all back. */
static void
take_memory(void)
{
	long freed = read_long("vm.stats.vm.v_dfree"),
	     all = read_long("vm.stats.vm.v_page_count");
	double end = http_now() + TAKE_SECONDS;
	pid_t pid = fork();

	if (pid == 0) {
		while (http_now() < end) {
			void *mem = mmap(NULL, STEP, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANON, -1, 0);

			if (mem == MAP_FAILED)
				break;
			memset(mem, 1, STEP);
			if (read_long("vm.stats.vm.v_inactive_count") <
				all / 100 &&
			    read_long("vm.stats.vm.v_dfree") != freed)
				break;
		}
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static bool
write_long(const char *name, long n)
{
	return sysctlbyname(name, NULL, NULL, &n, sizeof(n)) == 0;
}

/* Has the kernel's thread free the buffers that are not in use; their pages stay. */
static bool
free_buffers(void)
{
	long least = read_long("vfs.lobufspace"),
	     wake = read_long("vfs.bufspacethresh"),
	     used = read_long("vfs.bufspace"), left;
	static const char block[64 << 10];
	int fd = open("tmp/buffer", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	bool yes = fd != -1 && write_long("vfs.lobufspace", 0) &&
		   write_long("vfs.bufspacethresh", used + 1);

	/* A buffer that is new passes the limit that wakes the thread. */
	yes = write(fd, block, sizeof(block)) == (ssize_t)sizeof(block) && yes;
	close(fd);
	unlink("tmp/buffer");
	usleep(SETTLE_MICROS);
	left = read_long("vfs.bufspace");
	write_long("vfs.bufspacethresh", wake);
	write_long("vfs.lobufspace", least);
	printf("# buffers: %ld bytes, then %ld\n", used, left);
	return yes && left < used;
}

/* Returns true if the file's first indirect block had to be read from the disk. */
static bool
reads_indirect(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct fiobmap2_arg arg = {.bn = DIRECT};
	struct rusage before, after;
	bool yes;

	getrusage(RUSAGE_SELF, &before);
	yes = fd != -1 && ioctl(fd, FIOBMAP2, &arg) == 0;
	getrusage(RUSAGE_SELF, &after);
	if (fd != -1)
		close(fd);
	return yes && after.ru_inblock > before.ru_inblock;
}

bool
evict_indirect(const char *file, const char *other)
{
	void *mem[2] = {lock_file(file), lock_file(other)};
	bool yes = mem[0] != NULL && mem[1] != NULL && free_buffers();

	if (yes) {
		take_memory();
		yes = reads_indirect(other);
		printf("# the indirect block %s\n",
		    yes ? "was evicted" : "is still in memory");
	}
	for (size_t i = 0; i < nitems(mem); i++)
		if (mem[i] != NULL)
			munmap(mem[i], BEGINNING);
	return yes;
}

/* Returns the number of resident pages, or -1.  By default mincore(2) counts the caller's mappings only. */
static long
count_resident(void *mem, size_t len)
{
	size_t pages = howmany(len, (size_t)getpagesize());
	char *in = calloc(pages, 1);
	int residency = 0;
	long n = -1;

	if (in != NULL &&
	    sysctlbyname("vm.mincore_mapped", NULL, NULL, &residency,
		sizeof(residency)) == 0 &&
	    mincore(mem, len, in) == 0)
		for (n = 0; pages > 0; pages--)
			n += (in[pages - 1] & MINCORE_INCORE) != 0;
	free(in);
	return n;
}

long
evict_resident(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *mem;
	long n = -1;

	if (fd == -1)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		mem = mmap(
		    NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
		if (mem != MAP_FAILED) {
			n = count_resident(mem, (size_t)st.st_size);
			munmap(mem, (size_t)st.st_size);
		}
	}
	close(fd);
	return n;
}
