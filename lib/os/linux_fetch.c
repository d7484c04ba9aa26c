/*
 * linux_fetch: reads pages from the disk into the page cache, for disk threads, which may wait.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/os/linux.h"
#include "lib/os/os.h"
#include "lib/os/place.h"
#include "lib/util/offset.h"

#define READAHEAD_DEFAULT ((size_t)128 << 10)
#define TRASH		  16384 /* buffer of linux_fetch_read_all, bytes */
#define WAITS		  32 /* maximum waits for a single page, per OS_FOLIO */
#define FOLIO_PIPES	  256 /* maximum number of pipes that keep folios */
#define HUGE_SIZE	  "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"

/* Advises in steps, since the kernel silently truncates a longer range to os_advice_limit. */
void
os_fetch_begin(int fd, off_t off, size_t len, size_t step)
{
	off_t end = off + (off_t)len, next;

	for (; off < end; off = next) {
		next = offset_add(off, step, end);
		posix_fadvise(fd, off, next - off, POSIX_FADV_WILLNEED);
	}
}

/* Reads by pread(2) where a file system refuses sendfile(2). */
static int
linux_fetch_read_all(int fd, off_t off, off_t end)
{
	char trash[TRASH];
	ssize_t n;

	for (; off<end; off += n> 0 ? n : 0) {
		n = pread(fd, trash,
		    end - off < TRASH ? (size_t)(end - off) : TRASH, off);
		if (n == 0)
			return -ESTALE;
		if (n == -1 && errno != EINTR)
			return -errno;
	}
	return 0;
}

static bool
linux_fetch_is_refused(int error)
{
	return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP;
}

/*
 * Waits by sendfile(2) to /dev/null, which copies nothing: 8 us for 512 KiB, where pread(2) of a byte of
 * each page takes 60 us.
 */
int
os_fetch_end(int sink, int fd, off_t off, size_t len)
{
	off_t end = off + (off_t)len;
	ssize_t n;

	while (off < end) {
		n = sendfile(sink, fd, &off, (size_t)(end - off));
		if (n == 0)
			return -ESTALE;
		if (n == -1 && linux_fetch_is_refused(errno))
			return linux_fetch_read_all(fd, off, end);
		if (n == -1 && errno != EINTR)
			return -errno;
	}
	return 0;
}

/*
 * Returns the last page of the mapping that is not resident, or -1.  Returns the last page if mincore
 * fails.
 */
static ssize_t
linux_fetch_last_missing(char *map, size_t pages, size_t page)
{
	unsigned char vec[OS_FOLIO / 4096 + 1];

	if (pages > sizeof(vec) || mincore(map, pages * page, vec) == -1)
		return (ssize_t)pages - 1;
	while (pages > 0 && (vec[pages - 1] & 1) != 0)
		pages--;
	return (ssize_t)pages - 1;
}

/*
 * Waits for the last missing page until none is missing, at most WAITS times.  Reads mostly
 * complete in order, so few waits are needed.  Returns true if the whole mapping is resident.
 */
static bool
linux_fetch_wait_for_last(int fd, char *map, off_t off, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t pages = (len + page - 1) / page;
	ssize_t i;
	char byte;
	int n;

	for (n = 0; n < WAITS; n++) {
		i = linux_fetch_last_missing(map, pages, page);
		if (i < 0)
			return true;
		if (pread(fd, &byte, 1, off + i * (off_t)page) != 1)
			return false;
	}
	return false;
}

/*
 * Waits until a piece of at most OS_FOLIO bytes is resident.  Returns false if a page may be
 * missing.
 */
static bool
linux_fetch_wait_piece(int fd, off_t off, size_t len)
{
	off_t from = off - off % sysconf(_SC_PAGESIZE);
	size_t all = len + (size_t)(off - from);
	bool there;
	char *map;

	map = mmap(NULL, all, PROT_READ, MAP_SHARED, fd, from);
	if (map == MAP_FAILED)
		return false;
	there = linux_fetch_wait_for_last(fd, map, from, all);
	munmap(map, all);
	return there;
}

/* Uses mincore(2), which reports residency only to the file's owner; else calls os_fetch_end. */
int
os_fetch_wait(int sink, int fd, off_t off, size_t len)
{
	off_t end = off + (off_t)len, next;

	if (os_cachestat(fd, off, 1) < 0 || !os_owner(fd))
		return os_fetch_end(sink, fd, off, len);
	for (; off < end; off = next) {
		next = offset_next(off, OS_FOLIO, end);
		if (!linux_fetch_wait_piece(fd, off, (size_t)(next - off)))
			return os_fetch_end(sink, fd, off, (size_t)(end - off));
	}
	return 0;
}

/* Reads the first page of the mapping.  Returns false if the page was resident (no major fault). */
static bool
linux_fetch_populate(char *map)
{
	struct rusage before, after;

	return getrusage(RUSAGE_THREAD, &before) == 0 &&
	       madvise(map, 1, MADV_POPULATE_READ) == 0 &&
	       getrusage(RUSAGE_THREAD, &after) == 0 &&
	       after.ru_majflt != before.ru_majflt;
}

/*
 * Locks each page when it is read, so nothing is read if the process may not lock pages.  Without
 * MLOCK_ONFAULT, mlock2(2) would try without end to read a page at which the disk fails;
 * MADV_POPULATE_READ returns an error.
 */
static bool
linux_fetch_lock(char *map, size_t len)
{
	return mlock2(map, len, MLOCK_ONFAULT) == 0 &&
	       madvise(map, len, MADV_POPULATE_READ) == 0;
}

/* PAGEMAP_SCAN of linux/fs.h, which the headers of Debian 12 lack. */
struct linux_pagemap_region {
	uint64_t start, end, categories;
};

struct linux_pagemap_scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask,
	    return_mask;
};

#define LINUX_PAGEMAP_SCAN    _IOWR('f', 16, struct linux_pagemap_scan)
#define LINUX_PAGEMAP_IS_HUGE (1 << 6)

/* Returns how many bytes of the memory, from its start, are mapped as huge pages, or -1. */
static ssize_t
linux_fetch_huge(int pagemap, const char *map, size_t len)
{
	struct linux_pagemap_region region = {0};
	struct linux_pagemap_scan scan = {.size = sizeof(scan),
	    .start = (uintptr_t)map,
	    .end = (uintptr_t)map + len,
	    .vec = (uintptr_t)&region,
	    .vec_len = 1,
	    .category_mask = LINUX_PAGEMAP_IS_HUGE,
	    .return_mask = LINUX_PAGEMAP_IS_HUGE};

	if (ioctl(pagemap, LINUX_PAGEMAP_SCAN, &scan) == -1)
		return -1;
	return (ssize_t)(region.end - region.start);
}

unsigned
os_folio_pipes(size_t bytes)
{
	size_t most = bytes / OS_FOLIO, eighth;
	struct rlimit lock, files;

	if (getrlimit(RLIMIT_MEMLOCK, &lock) == -1 ||
	    (uint64_t)lock.rlim_cur >= bytes ||
	    getrlimit(RLIMIT_NOFILE, &files) == -1)
		return 0;
	eighth = (size_t)files.rlim_cur / 8;
	if (most > eighth)
		most = eighth;
	return most < FOLIO_PIPES ? (unsigned)most : FOLIO_PIPES;
}

int
os_pagemap_open(void)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), error;
	char byte = 0;

	if (fd == -1)
		return -errno;
	if (linux_fetch_huge(fd, &byte - (uintptr_t)&byte % 4096, 4096) != -1)
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/*
 * Reads the mapping, and puts one of its pages into a new pipe.  Returns false if the pages do not then
 * all belong to one folio, or if a call fails.
 */
static bool
linux_fetch_hold(char *map, size_t len, int pagemap, int *held)
{
	struct iovec iov = {.iov_base = map, .iov_len = 1};
	int fds[2];
	bool yes;

	if (pagemap == -1 || len != OS_FOLIO ||
	    madvise(map, len, MADV_POPULATE_READ) == -1 ||
	    pipe2(fds, O_CLOEXEC) == -1)
		return false;
	/* Before the pipe has a page, the kernel can still evict the folio. */
	yes = vmsplice(fds[1], &iov, 1, 0) == 1 &&
	      linux_fetch_huge(pagemap, map, len) == (ssize_t)len;
	close(fds[1]);
	if (yes)
		*held = fds[0];
	else
		close(fds[0]);
	return yes;
}

/*
 * Reads a folio by a page fault in a mapping with MADV_HUGEPAGE, where an advice would read single
 * pages.  MADV_RANDOM keeps the kernel from reading the next folio as well.  If `must_keep` is
 * true, reads the folio only if it can be kept, as far as that is known before the read.
 */
static bool
linux_fetch_fault_folio(int fd, off_t off, size_t len, bool must_keep,
    int pagemap, struct os_folio *fo)
{
	char *map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, off);
	bool read;

	if (map == MAP_FAILED)
		return false;
	read = madvise(map, len, MADV_HUGEPAGE) == 0 &&
	       madvise(map, len, MADV_RANDOM) == 0;
	if (read && fo != NULL &&
	    (linux_fetch_lock(map, len) ||
		linux_fetch_hold(map, len, pagemap, &fo->fo_pipe))) {
		fo->fo_map = map;
		return true;
	}
	read = read && !must_keep && linux_fetch_populate(map);
	munmap(map, len);
	return read;
}

/*
 * Opens the file again, with O_NOATIME if the process owns the file: otherwise mmap(2) updates the
 * access time, and may wait for the journal while it holds a lock that malloc(3) needs on the loop.
 * If O_NOATIME is refused, a read past the end of the file updates the access time first; then
 * mmap(2) has nothing to update, unless the file system is mounted with strictatime.
 */
static int
linux_fetch_reopen(int fd)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
	char path[32], byte;
	int own;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = open(path, flags | O_NOATIME);
	if (own != -1 || errno != EPERM ||
	    pread(fd, &byte, 1, (off_t)1 << 62) != 0)
		return own;
	return open(path, flags);
}

static bool
linux_fetch_may_fold(int fd, off_t off, size_t len)
{
	struct stat st;

	if ((uint64_t)off % OS_FOLIO != 0 || len > OS_FOLIO)
		return false;
	return len == OS_FOLIO ||
	       (fstat(fd, &st) == 0 && off + (off_t)len == st.st_size);
}

bool
os_fetch_folio(int fd, off_t off, size_t len, size_t readahead, int pagemap,
    struct os_folio *fo)
{
	bool must_keep = readahead >= OS_FOLIO, read;
	int own;

	if (fo != NULL)
		*fo = (struct os_folio){.fo_len = len, .fo_pipe = -1};
	if (!linux_fetch_may_fold(fd, off, len) || (must_keep && fo == NULL))
		return false;
	own = linux_fetch_reopen(fd);
	if (own == -1)
		return false;
	read = linux_fetch_fault_folio(own, off, len, must_keep, pagemap, fo);
	close(own);
	if (!must_keep && fo != NULL && fo->fo_map != NULL)
		os_unmark(fd, off);
	return read;
}

void
os_folio_release(struct os_folio *fo)
{
	os_unmap(fo->fo_map, fo->fo_len);
	if (fo->fo_pipe != -1)
		close(fo->fo_pipe);
}

/* Returns true if [off, off + len) of the file, or its part before the end of the file, is resident. */
static bool
linux_fetch_is_resident(int fd, off_t off, size_t len)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return false;
	if (off >= st.st_size)
		return true;
	if ((off_t)len > st.st_size - off)
		len = (size_t)(st.st_size - off);
	return os_cachestat(fd, off, len) == 1;
}

/*
 * Reads a byte through `fd`, which is not the descriptor of the mapping.  The kernel then searches
 * its read-ahead range for the first missing page behind the folio's first page, and reads from
 * there.
 */
void
os_unmark(int fd, off_t off)
{
	char byte;

	(void)!pread(fd, &byte, 1, off);
}

bool
os_can_unmark(int fd, off_t off, size_t readahead)
{
	return linux_fetch_is_resident(
	    fd, off + sysconf(_SC_PAGESIZE), readahead);
}

/* Returns the largest value of the files, in bytes.  A partition uses its disk's files. */
static size_t
linux_fetch_read_kib(const char *const *formats, size_t n, dev_t dev)
{
	char path[64];
	size_t i, one, most = 0;

	for (i = 0; i < n; i++) {
		snprintf(
		    path, sizeof(path), formats[i], major(dev), minor(dev));
		one = (size_t)os_linux_number(path) << 10;
		if (one > most)
			most = one;
	}
	return most;
}

static const char *const limits_of_disk[] = {
    "/sys/class/bdi/%u:%u/read_ahead_kb",
    "/sys/dev/block/%u:%u/../queue/read_ahead_kb",
    "/sys/dev/block/%u:%u/queue/max_sectors_kb",
    "/sys/dev/block/%u:%u/../queue/max_sectors_kb",
};

#define READAHEAD_FILES 2
#define LIMIT_FILES	(sizeof(limits_of_disk) / sizeof(limits_of_disk[0]))

/*
 * Returns the larger of read-ahead and the disk's largest request, as mm's force_page_cache_ra does since
 * Linux 4.11.
 */
size_t
os_advice_limit(dev_t dev)
{
	size_t limit = linux_fetch_read_kib(limits_of_disk, LIMIT_FILES, dev);

	if (limit == 0)
		limit = READAHEAD_DEFAULT;
	return limit < OS_SAMPLE ? OS_SAMPLE : limit;
}

/*
 * Returns false on kernels without cachestat(2), which came with Linux 6.5.  Before Linux 5.18 the
 * fault reads only one page.
 */
bool
os_folios(dev_t dev, size_t *readahead)
{
	*readahead = linux_fetch_read_kib(limits_of_disk, READAHEAD_FILES, dev);
	if (*readahead == 0 || os_cachestat(-1, 0, 1) == -ENOSYS)
		return false;
	return os_linux_number(HUGE_SIZE) == OS_FOLIO;
}

bool
os_rotates(dev_t dev)
{
	static const char *const files[] = {
	    "/sys/dev/block/%u:%u/queue/rotational",
	    "/sys/dev/block/%u:%u/../queue/rotational",
	};

	return linux_fetch_read_kib(files, 2, dev) > 0;
}

int
os_place(int fd, off_t off, uint64_t *place)
{
	union {
		struct fiemap map;
		char room[sizeof(struct fiemap) + sizeof(struct fiemap_extent)];
	} fm = {.map = {.fm_start = (uint64_t)off,
		    .fm_length = 1,
		    .fm_extent_count = 1}};
	const struct fiemap_extent *fe = fm.map.fm_extents;

	if (ioctl(fd, FS_IOC_FIEMAP, &fm.map) == -1)
		return -errno;
	if (fm.map.fm_mapped_extents == 0)
		return -ENOENT;
	*place = fe->fe_physical + (uint64_t)off - fe->fe_logical;
	return 0;
}
