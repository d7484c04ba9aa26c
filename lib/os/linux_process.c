/*
 * linux_process: the functions of os.h for the process as a whole: its heap, its
 * program, its descriptors, its secrets.
 */
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/magic.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/linux.h"
#include "lib/os/os.h"

/* size of a glibc heap with 64-bit pointers (HEAP_MAX_SIZE), bytes */
#define HEAP (64 << 20)

/* library of 5 MiB that only os_lock_crypto locks */
#define APART "/libcrypto.so"

const char os_run_directory[] = "/run";

struct locking {
	bool lc_apart; /* true to lock only APART, false to lock the rest */
	int lc_error;
};

/*
 * Locks the pages that are mapped from the file of the program or a library, or reads them if
 * locking fails.
 */
static int
linux_process_lock_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const ElfW(Phdr) * ph;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from, end;
	struct locking *lc = arg;
	int i;

	(void)size;
	if ((strstr(info->dlpi_name, APART) != NULL) != lc->lc_apart)
		return 0;
	for (i = 0; i < info->dlpi_phnum; i++) {
		ph = &info->dlpi_phdr[i];
		if (ph->p_type != PT_LOAD)
			continue;
		from = (info->dlpi_addr + ph->p_vaddr) & ~(page - 1);
		end = info->dlpi_addr + ph->p_vaddr + ph->p_filesz;
		if (mlock2((void *)from, end - from, 0) == 0)
			continue;
		lc->lc_error = -errno;
		madvise((void *)from, (end - from + page - 1) & ~(page - 1),
		    MADV_POPULATE_READ);
	}
	return 0;
}

static bool
linux_process_unlimited(int resource)
{
	struct rlimit rl;

	return getrlimit((__rlimit_resource_t)resource, &rl) == 0 &&
	       rl.rlim_cur == RLIM_INFINITY;
}

/*
 * Makes glibc map the heap of each thread in one piece: by default it reserves HEAP bytes of addresses
 * and makes them usable page by page (mprotect).  An unused heap needs no memory.  Heaps stay as they are
 * where addresses are limited or counted.
 */
void
os_prepare_heap(void)
{
#ifdef __GLIBC__
	/* Chunks merge when they are freed, rather than thousands of them in one later call. */
	mallopt(M_MXFAST, 0);
	if (os_linux_number("/proc/sys/vm/overcommit_memory") == 2 ||
	    !linux_process_unlimited(RLIMIT_AS) ||
	    !linux_process_unlimited(RLIMIT_DATA))
		return;
	mallopt(M_TOP_PAD, HEAP);
	mallopt(M_TRIM_THRESHOLD, 2 * HEAP);
	mallopt(M_MMAP_THRESHOLD, HEAP / 2);
#endif
}

size_t
os_release(void *mem, size_t len)
{
#ifdef __GLIBC__
	size_t page = os_page_size(), in_memory = 0, i;
	uintptr_t from = ((uintptr_t)mem + page - 1) & ~(page - 1);
	uintptr_t end = ((uintptr_t)mem + len) & ~(page - 1);
	unsigned char pages[512];

	for (; from < end; from += i * page) {
		i = (end - from) / page;
		if (i > sizeof(pages))
			i = sizeof(pages);
		if (mincore((void *)from, i * page, pages) == -1 ||
		    madvise((void *)from, i * page, MADV_DONTNEED) == -1)
			break;
		for (size_t n = 0; n < i; n++)
			in_memory += (pages[n] & 1) * page;
	}
	return in_memory;
#else
	(void)mem;
	(void)len;
	return 0;
#endif
}

void
os_trim(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

int
os_lock_program(void)
{
	struct locking lc = {.lc_apart = false};

	dl_iterate_phdr(linux_process_lock_object, &lc);
	return lc.lc_error;
}

int
os_lock_crypto(void)
{
	struct locking lc = {.lc_apart = true};

	dl_iterate_phdr(linux_process_lock_object, &lc);
	return lc.lc_error;
}

/* Reads the link by its own descriptor (O_PATH), so that it cannot be replaced between the calls. */
static int
linux_process_link_of(int link, char *to, size_t size, uid_t *owner)
{
	struct statfs sf;
	struct stat st;
	ssize_t n;

	if (fstat(link, &st) == -1 || fstatfs(link, &sf) == -1)
		return -errno;
	*owner = st.st_uid;
	if (sf.f_type == PROC_SUPER_MAGIC)
		return 1;
	n = readlinkat(link, "", to, size);
	if (n == -1)
		return -errno;
	if ((size_t)n == size)
		return -ENAMETOOLONG;
	to[n] = '\0';
	return 0;
}

int
os_read_link(const char *path, char *to, size_t size, uid_t *owner)
{
	int link = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), error;

	if (link == -1)
		return -errno;
	error = linux_process_link_of(link, to, size, owner);
	close(link);
	return error;
}

int
os_program(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);

	if (n == -1)
		return -errno;
	path[n] = '\0';
	return 0;
}

/* Does nothing, since Linux has no rights of descriptors. */
int
os_limit_rights(int fd, enum os_rights rights)
{
	(void)fd, (void)rights;
	return 0;
}

int
os_close_inherited(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	int fd, flags;

	if (dir == NULL)
		return -errno;
	while ((entry = readdir(dir)) != NULL) {
		fd = (int)strtol(entry->d_name, NULL, 10);
		if (fd <= STDERR_FILENO)
			continue;
		flags = fcntl(fd, F_GETFD);
		if (flags != -1 && (flags & FD_CLOEXEC) == 0)
			close(fd);
	}
	closedir(dir);
	return 0;
}

bool
os_one_user(void)
{
	char word[5] = "";
	FILE *f = fopen("/proc/self/setgroups", "re");

	if (f == NULL)
		return false;
	(void)fread(word, 1, sizeof(word) - 1, f);
	fclose(f);
	return strcmp(word, "deny") == 0;
}

/* Uses MADV_DONTDUMP and MADV_WIPEONFORK, which Linux has since 4.14. */
void *
os_secret_create(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		return NULL;
	if (madvise(mem, size, MADV_DONTDUMP) == -1 ||
	    madvise(mem, size, MADV_WIPEONFORK) == -1) {
		munmap(mem, size);
		return NULL;
	}
	(void)mlock2(mem, size, 0);
	return mem;
}

/* Uses PR_SET_DUMPABLE: RLIMIT_CORE does not stop a program named by core_pattern. */
int
os_forbid_cores(void)
{
	return prctl(PR_SET_DUMPABLE, 0) == 0 ? 0 : -errno;
}

int
os_follow_parent(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, parent != 0 ? SIGKILL : 0UL) == -1)
		return -errno;
	return parent == 0 || getppid() == parent ? 0 : -ESRCH;
}
