/*
 * freebsd: os.h for FreeBSD 13.1 and later.  FreeBSD has no residency check, and
 * its sendfile(2), which does not wait for the disk, needs none.
 */
#include <sys/param.h>
#include <sys/event.h>
#include <sys/extattr.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pthread_np.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/meter.h"
#include "lib/os/os.h"
#include "lib/os/place.h"
#include "lib/os/store.h"
#include "lib/util/clock.h"

/* size of an advice, bytes; os_fetch_begin ignores this size on FreeBSD */
#define ADVICE ((size_t)128 << 10)
#define TRASH  ((size_t)64 << 10) /* buffer of os_fetch_end, bytes */

/*
 * Opens a path below dirfd.  Returns -EXDEV if the path leads outside (ENOTCAPABLE).  openat(2) has
 * no flag that refuses mounts on the way, and no flag that prevents waiting, so disk threads make
 * every lookup.
 */
static int
freebsd_open_beneath(int dirfd, const char *path, int flags)
{
	int fd;

	meter_call(METER_OPENAT);
	fd = openat(dirfd, path, flags | O_RESOLVE_BENEATH | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOTCAPABLE ? -EXDEV : -errno;
}

/* Supports one rule for links: each link must stay below the directory. */
static int
freebsd_open_resolved(int dirfd, const char *path, int flags, int resolve)
{
	if ((resolve & (OS_NO_LINKS | OS_AS_SLASH | OS_ALL_LINKS)) != 0)
		return -EOPNOTSUPP;
	return (resolve & OS_RESOLVE) == OS_CACHED
		   ? -EAGAIN
		   : freebsd_open_beneath(dirfd, path, flags);
}

int
os_lookup(int dirfd, const char *path, int resolve)
{
	return freebsd_open_resolved(dirfd, path, O_PATH, resolve);
}

int
os_open(int dirfd, const char *path, int resolve)
{
	return freebsd_open_resolved(
	    dirfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, resolve);
}

int
os_device_of(int fd, dev_t *dev)
{
	struct stat st;

	meter_call(METER_FSTAT);
	if (fstat(fd, &st) == -1)
		return -errno;
	*dev = st.st_dev;
	return 0;
}

/*
 * Duplicates fd.  Where sendfile(2) does not wait, the library leaves kernel read-ahead on, so the
 * file description may be shared.
 */
int
os_own(int fd)
{
	int own, flags = fcntl(fd, F_GETFL);

	if (flags == -1)
		return -errno;
	if ((flags & O_PATH) != 0 || (flags & O_ACCMODE) == O_WRONLY)
		return -EBADF;
	if ((flags & O_DIRECT) != 0)
		return -EINVAL;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return own == -1 ? -errno : own;
}

int
os_stat_name(int dirfd, const char *name, struct stat *st)
{
	struct stat dir;

	if (fstat(dirfd, &dir) == -1 ||
	    fstatat(dirfd, name, st, AT_SYMLINK_NOFOLLOW) == -1)
		return -errno;
	return st->st_dev == dir.st_dev ? 0 : -EXDEV;
}

int
os_open_dir(int dirfd, const char *path, int links)
{
	return freebsd_open_resolved(
	    dirfd, path, O_RDONLY | O_DIRECTORY, OS_ANY_MOUNT | links);
}

bool
os_cached_works(int dirfd)
{
	(void)dirfd;
	return false;
}

bool
os_owner(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && geteuid() == st.st_uid;
}

int
os_cachestat(int fd, off_t off, size_t len)
{
	(void)fd, (void)off, (void)len;
	return -ENOSYS;
}

/* Returns -ENOSYS, since FreeBSD has no residency check whose result a reclaim could invalidate. */
int
os_reclaim_open(void)
{
	return -ENOSYS;
}

int64_t
os_reclaimed(int fd)
{
	(void)fd;
	return -ENOSYS;
}

int
os_nowait(int fd, off_t off, size_t len)
{
	(void)fd, (void)off, (void)len;
	return -EOPNOTSUPP;
}

long
os_read(int fd, off_t off, void *to, size_t len, bool wait)
{
	ssize_t n;

	if (!wait)
		return -EOPNOTSUPP;
	meter_call(METER_PREAD);
	n = pread(fd, to, len, off);
	return n == -1 ? -errno : n;
}

/*
 * Returns -ENOSYS, since mincore(2) reports only pages that this process has mapped, unless
 * vm.mincore_mapped is 0.
 */
int
os_mincore(void *map, off_t off, size_t len)
{
	(void)map, (void)off, (void)len;
	return -ENOSYS;
}

int
os_lock(void *map, size_t len)
{
	return mlock(map, len) == -1 ? -errno : 0;
}

/* Returns -ENOSYS, as FreeBSD has no splice(2). */
int
os_pipe(int fds[2], size_t size)
{
	(void)fds, (void)size;
	return -ENOSYS;
}

void
os_pipe_close(int fds[2])
{
	(void)fds;
}

int
os_splice_in(int pipe, int fd, off_t off, size_t len, size_t *taken)
{
	(void)pipe, (void)fd, (void)off, (void)len;
	*taken = 0;
	return -ENOSYS;
}

int
os_vmsplice(int pipe, const void *mem, size_t len, size_t *taken)
{
	(void)pipe, (void)mem, (void)len;
	*taken = 0;
	return -ENOSYS;
}

int
os_splice_out(int sock, int pipe, size_t len, bool more, size_t *sent)
{
	(void)sock, (void)pipe, (void)len, (void)more;
	*sent = 0;
	return -ENOSYS;
}

/* Only gives advice, which most file systems ignore; os_fetch_end reads the range. */
void
os_fetch_begin(int fd, off_t off, size_t len, size_t step)
{
	(void)step;
	posix_fadvise(fd, off, (off_t)len, POSIX_FADV_WILLNEED);
}

int
os_fetch_end(int sink, int fd, off_t off, size_t len)
{
	static _Thread_local char trash[TRASH];
	off_t end = off + (off_t)len;
	ssize_t n;

	(void)sink; /* sendfile(2) sends to sockets only */
	for (; off<end; off += n> 0 ? n : 0) {
		len = (size_t)(end - off);
		n = pread(fd, trash, len < TRASH ? len : TRASH, off);
		if (n == 0)
			return -ESTALE;
		if (n == -1 && errno != EINTR)
			return -errno;
	}
	return 0;
}

/* The kernel would reclaim the pages first, but only when it needs memory. */
void
os_unbuffer(int fd, off_t off, size_t len)
{
	posix_fadvise(fd, off, (off_t)len, POSIX_FADV_DONTNEED);
}

/* Frees the pages by msync(2), which skips pages that buffers or sockets still use. */
void
os_drop(int fd, off_t off, size_t len)
{
	size_t before = (size_t)off % os_page_size();
	void *mem;

	os_unbuffer(fd, off, len);
	len += before;
	mem = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, off - (off_t)before);
	if (mem == MAP_FAILED)
		return;
	(void)msync(mem, len, MS_INVALIDATE);
	munmap(mem, len);
}

int
os_fetch_wait(int sink, int fd, off_t off, size_t len)
{
	return os_fetch_end(sink, fd, off, len);
}

bool
os_fetch_folio(int fd, off_t off, size_t len, size_t readahead, int pagemap,
    struct os_folio *fo)
{
	(void)fd, (void)off, (void)len, (void)readahead, (void)pagemap;
	if (fo != NULL)
		*fo = (struct os_folio){.fo_pipe = -1};
	return false;
}

void
os_folio_release(struct os_folio *fo)
{
	(void)fo;
}

unsigned
os_folio_pipes(size_t bytes)
{
	(void)bytes;
	return 0;
}

int
os_pagemap_open(void)
{
	return -EOPNOTSUPP;
}

void
os_unmark(int fd, off_t off)
{
	(void)fd, (void)off;
}

bool
os_can_unmark(int fd, off_t off, size_t readahead)
{
	(void)fd, (void)off, (void)readahead;
	return false;
}

int
os_direct_open(int fd, struct os_version *ov, size_t *align)
{
	(void)fd, (void)ov, (void)align;
	return -EOPNOTSUPP;
}

long
os_direct_read(int fd, off_t off, void *to, size_t len, size_t align)
{
	(void)fd, (void)off, (void)to, (void)len, (void)align;
	return -EOPNOTSUPP;
}

int
os_store_open(int dir, const char *name, bool direct, off_t *size)
{
	(void)dir, (void)name, (void)direct, (void)size;
	return -EOPNOTSUPP;
}

int
os_store_extend(int fd, off_t size)
{
	(void)fd, (void)size;
	return -EOPNOTSUPP;
}

bool
os_is_block_device(dev_t dev)
{
	(void)dev;
	return true;
}

long
os_path(int fd, char *path, size_t size)
{
	(void)fd, (void)path, (void)size;
	return -EOPNOTSUPP;
}

int
os_fresh_version(int fd, struct os_version *ov)
{
	(void)fd, (void)ov;
	return -EOPNOTSUPP;
}

void *
os_huge_page(size_t len)
{
	void *map = mmap(NULL, len, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANON | MAP_ALIGNED_SUPER, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

size_t
os_advice_limit(dev_t dev)
{
	(void)dev;
	return ADVICE;
}

bool
os_folios(dev_t dev, size_t *readahead)
{
	(void)dev, (void)readahead;
	return false;
}

bool
os_rotates(dev_t dev)
{
	(void)dev;
	return false;
}

int
os_place(int fd, off_t off, uint64_t *place)
{
	(void)fd, (void)off, (void)place;
	return -EOPNOTSUPP;
}

/*
 * For a file system without a device (tmpfs, ZFS, nullfs) formats only the lower 32 bits of the
 * number, since the kernel sign-extends that number.
 */
void
os_dev_name(uint64_t dev, char *text, size_t size)
{
	if (dev >> 32 == UINT32_MAX)
		snprintf(text, size, "%#x", (unsigned)dev);
	else
		snprintf(text, size, "%u:%u", (unsigned)major((dev_t)dev),
		    (unsigned)minor((dev_t)dev));
}

/* Creates a kqueue, so that async_freebsd.c can add its events. */
int
os_wake_create(int fds[2])
{
	struct kevent ev;
	int error;

	fds[0] = fds[1] = kqueue();
	if (fds[0] == -1)
		return -errno;
	EV_SET(&ev, 0, EVFILT_USER, EV_ADD | EV_CLEAR, 0, 0, NULL);
	if (fcntl(fds[0], F_SETFD, FD_CLOEXEC) == 0 &&
	    kevent(fds[0], &ev, 1, NULL, 0, NULL) == 0)
		return 0;
	error = -errno;
	os_wake_close(fds);
	return error;
}

bool
os_wake_signal(int fd)
{
	struct kevent ev;
	int n;

	EV_SET(&ev, 0, EVFILT_USER, 0, NOTE_TRIGGER, 0, NULL);
	while ((n = kevent(fd, &ev, 1, NULL, 0, NULL)) == -1 && errno == EINTR)
		;
	return n != -1;
}

void
os_wake_clear(int fd)
{
	static const struct timespec now = {0};
	struct kevent evs[2];

	while (kevent(fd, NULL, 0, evs, 2, &now) == -1 && errno == EINTR)
		;
}

void
os_wake_close(int fds[2])
{
	close(fds[0]);
	fds[0] = fds[1] = -1;
}

/* Uses memfd_create(3), since write(2) extends its objects, but not those of shm_open(2). */
int
os_memfd(const char *name, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC), error;

	if (fd == -1)
		return -errno;
	if (ftruncate(fd, (off_t)size) == 0)
		return fd;
	error = -errno;
	close(fd);
	return error;
}

unsigned
os_cpu(void)
{
	return 0;
}

void
os_thread_name(const char *name)
{
	pthread_set_name_np(pthread_self(), name);
}

void
os_process_name(const char *name)
{
	os_thread_name(name);
	setproctitle("%s", name);
}

int
os_thread_reap(pthread_t thread)
{
	static const struct timespec past = {0};

	return -pthread_timedjoin_np(thread, NULL, &past);
}

void
os_thread_fetcher(void)
{
	os_thread_name("pw-fetch");
}

/* Does nothing: only a whole process may lower its priority. */
void
os_thread_helper(void)
{
}

/* Returns -ERANGE if the buffer is full, since the kernel cuts an attribute that does not fit. */
long
os_attribute(int fd, const char *name, void *to, size_t size)
{
	ssize_t n = extattr_get_fd(fd, EXTATTR_NAMESPACE_USER, name, to, size);

	if (n == -1)
		return errno == ENOATTR ? -ENOENT : -errno;
	return (size_t)n == size ? -ERANGE : n;
}

int
os_sem_wait(sem_t *sem, uint64_t us)
{
	struct timespec end = clock_timespec(clock_now() + us);
	int n;

	do
		n = sem_clockwait_np(
		    sem, CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
	while (n == -1 && errno == EINTR);
	return n == -1 ? -errno : 0;
}
