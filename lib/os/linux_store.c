/*
 * linux_store: opens and extends the files in which the library keeps data of its own, and reads
 * the path and the version of the files from which the data comes.
 */
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "lib/os/store.h"

/*
 * Extends a file, and reserves its blocks, so that a later write does not find the file system
 * full.  Only extends the file if the file system, such as FUSE, cannot reserve blocks.  After a
 * failure, releases the reserved blocks.
 */
static int
linux_store_reserve(int fd, off_t from, off_t size)
{
	int error;

	if (fallocate(fd, 0, 0, size) == 0)
		return 0;
	error = errno;
	if (error == EOPNOTSUPP || error == ENOSYS)
		return ftruncate(fd, size) == 0 ? 0 : -errno;
	if (ftruncate(fd, from) == -1)
		error = errno;
	return -error;
}

int
os_store_extend(int fd, off_t size)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return -errno;
	return st.st_size < size ? linux_store_reserve(fd, st.st_size, size)
				 : 0;
}

/* Returns 0, or -EEXIST if the file may be another program's. */
static int
linux_store_check(int fd, off_t *size)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return -errno;
	*size = st.st_size;
	return S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid == geteuid()
		   ? 0
		   : -EEXIST;
}

int
os_store_open(int dir, const char *name, bool direct, off_t *size)
{
	const int flags =
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int fd = -1, error;

	if (direct)
		fd = openat(dir, name, flags | O_DIRECT, 0600);
	if (fd == -1 && (!direct || errno == EINVAL))
		fd = openat(dir, name, flags, 0600);
	if (fd == -1)
		return -errno;
	error = linux_store_check(fd, size);
	if (error != 0) {
		close(fd);
		return error;
	}
	return fd;
}

bool
os_is_block_device(dev_t dev)
{
	return major(dev) != 0;
}

/* Calls readlinkat(2), since the server's seccomp filter refuses readlink(2). */
long
os_path(int fd, char *path, size_t size)
{
	char name[32];
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = readlinkat(AT_FDCWD, name, path, size);
	if (n == -1)
		return -errno;
	return (size_t)n < size ? (long)n : -ENAMETOOLONG;
}

static struct timespec
linux_store_time(const struct statx_timestamp *t)
{
	return (struct timespec){.tv_sec = t->tv_sec, .tv_nsec = t->tv_nsec};
}

int
os_fresh_version(int fd, struct os_version *ov)
{
	const unsigned mask = STATX_SIZE | STATX_MTIME | STATX_CTIME;
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, mask, &stx) ==
	    -1)
		return -errno;
	ov->ov_size = (off_t)stx.stx_size;
	ov->ov_mtime = linux_store_time(&stx.stx_mtime);
	ov->ov_ctime = linux_store_time(&stx.stx_ctime);
	return 0;
}
