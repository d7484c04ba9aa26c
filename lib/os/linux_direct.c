/*
 * linux_direct: reads files past the page cache.  Such reads wait for the disk, so only
 * disk threads make them.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/os/linux.h"
#include "lib/os/os.h"

#ifdef STATX_DIOALIGN

static struct timespec
linux_direct_time(const struct statx_timestamp *t)
{
	return (struct timespec){.tv_sec = t->tv_sec, .tv_nsec = t->tv_nsec};
}

/*
 * Uses STATX_DIOALIGN (Linux 6.1).  Returns false if the file system does not report support for
 * direct reads.  Some of these file systems accept O_DIRECT nevertheless, but may copy the data.
 */
static bool
linux_direct_stat(int fd, struct os_version *ov, size_t *align)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_DIOALIGN,
		&stx) == -1 ||
	    (stx.stx_mask & STATX_DIOALIGN) == 0 ||
	    stx.stx_dio_offset_align == 0)
		return false;
	ov->ov_size = (off_t)stx.stx_size;
	ov->ov_mtime = linux_direct_time(&stx.stx_mtime);
	ov->ov_ctime = linux_direct_time(&stx.stx_ctime);
	*align = stx.stx_dio_offset_align > stx.stx_dio_mem_align
		     ? stx.stx_dio_offset_align
		     : stx.stx_dio_mem_align;
	return true;
}

#else

static bool
linux_direct_stat(int fd, struct os_version *ov, size_t *align)
{
	(void)fd, (void)ov, (void)align;
	return false;
}

#endif

/* Opens a new file description, since O_DIRECT would apply to the loop's sendfile(2) as well. */
int
os_direct_open(int fd, struct os_version *ov, size_t *align)
{
	char path[32];
	int own;

	if (!linux_direct_stat(fd, ov, align))
		return -EOPNOTSUPP;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = open(path, O_RDONLY | O_DIRECT | O_NONBLOCK | O_CLOEXEC);
	return own == -1 ? -errno : own;
}

/*
 * Stops after a read that ends before a multiple of `align`, since such a read has reached the end
 * of the file.
 */
long
os_direct_read(int fd, off_t off, void *to, size_t len, size_t align)
{
	size_t have = 0, all = (len + align - 1) / align * align;
	ssize_t n = 1;

	while (have < all && have % align == 0 && n != 0) {
		n = pread(fd, (char *)to + have, all - have, off + (off_t)have);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return -errno;
		have += (size_t)n;
	}
	return (long)have;
}

/* Maps twice the length and unmaps the rest, since a huge page must begin at a multiple of its size. */
void *
os_huge_page(size_t len)
{
	char *map = mmap(NULL, 2 * len, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before;

	if (map == MAP_FAILED)
		return NULL;
	before = (len - (uintptr_t)map % len) % len;
	if (before > 0)
		munmap(map, before);
	munmap(map + before + len, len - before);
	madvise(map + before, len, MADV_HUGEPAGE);
	return map + before;
}
