/*
 * os_linux: os.h for Linux 5.12 and later; what older kernels lack is found out
 * at run time and does without.
 */
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)

#define READAHEAD_DEFAULT ((size_t)128 << 10)
#define HUGE_SIZE	  "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"

#define LOOKUP_TRIES 16 /* a rename during the lookup: openat2 says EAGAIN */

int
os_send(int sock, const void *mem, size_t len, bool more, size_t *sent)
{
	ssize_t n;

	*sent = 0;
	n = send(sock, mem, len,
	    MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0));
	if (n == -1)
		return -errno;
	*sent = (size_t)n;
	return 0;
}

int
os_sendfile(int sock, int fd, off_t off, size_t len, size_t *sent)
{
	ssize_t n;

	*sent = 0;
	n = sendfile(sock, fd, &off, len);
	if (n == -1)
		return -errno;
	*sent = (size_t)n;
	return 0;
}

long
os_unacked(int sock)
{
	int n;

	return ioctl(sock, SIOCOUTQ, &n) == -1 ? -errno : n;
}

bool
os_awaits_disk(int sock)
{
	(void)sock;
	return false;
}

long
os_round_trip(int sock)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &len) == -1)
		return -errno;
	return (long)info.tcpi_rtt;
}

int
os_share_port(int sock)
{
	static const int on = 1;

	return setsockopt(sock, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == -1
		   ? -errno
		   : 0;
}

bool
os_share_late(void)
{
	return true;
}

/* TCP_DEFER_ACCEPT waits for a byte, not for a request. */
int
os_accept_filter(int sock)
{
	(void)sock;
	return -ENOSYS;
}

static int
open_how(int dirfd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = resolve};
	long fd;

	fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	return fd == -1 ? -errno : (int)fd;
}

/*
 * Where a lookup may wait EAGAIN only means that something was renamed, and the next one
 * succeeds; to an open it may also mean that somebody has a lease on the file.  With RESOLVE_CACHED it
 * is also said instead of EXDEV for another mount.
 */
static int
open_resolved(
    int dirfd, const char *path, uint64_t flags, enum os_resolve resolve)
{
	static const uint64_t bits[] = {
	    [OS_CACHED] = BENEATH | RESOLVE_NO_XDEV | RESOLVE_CACHED,
	    [OS_ONE_MOUNT] = BENEATH | RESOLVE_NO_XDEV,
	    [OS_ANY_MOUNT] = BENEATH,
	};
	int fd = -EIO, tries;

	for (tries = 0; tries < LOOKUP_TRIES; tries++) {
		fd = open_how(dirfd, path, flags, bits[resolve]);
		if (fd == -EINTR)
			continue;
		if (fd != -EAGAIN || resolve == OS_CACHED)
			return fd;
	}
	return fd == -EAGAIN && (flags & O_PATH) == 0 ? fd : -EIO;
}

int
os_lookup(int dirfd, const char *path, enum os_resolve resolve)
{
	return open_resolved(dirfd, path, O_PATH, resolve);
}

int
os_open(int dirfd, const char *path, enum os_resolve resolve)
{
	return open_resolved(
	    dirfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, resolve);
}

int
os_stat_name(int dirfd, const char *name, struct stat *st)
{
	int fd, error;

	fd = open_resolved(dirfd, name, O_PATH | O_NOFOLLOW, OS_ONE_MOUNT);
	if (fd < 0)
		return fd;
	error = fstat(fd, st) == -1 ? -errno : 0;
	close(fd);
	return error;
}

int
os_open_dir(int dirfd, const char *path)
{
	return open_resolved(dirfd, path, O_RDONLY | O_DIRECTORY, OS_ANY_MOUNT);
}

/*
 * RESOLVE_CACHED speaks of the lookup alone.  The open method of a network or
 * user-space file system asks its server, and fstat may too: they are never
 * called on the loop.
 */
static const struct {
	long type;
	const char *name;
	enum os_ask ask;
	bool local;
} filesystems[] = {
    {EXT4_SUPER_MAGIC, "ext4", OS_ASK_NOWAIT, true},
    {XFS_SUPER_MAGIC, "xfs", OS_ASK_NOWAIT, true},
    {BTRFS_SUPER_MAGIC, "btrfs", OS_ASK_NOWAIT, true},
    {F2FS_SUPER_MAGIC, "f2fs", OS_ASK_NOWAIT, true},
    {TMPFS_MAGIC, "tmpfs", OS_ASK_NEVER_COLD, true},
    {RAMFS_MAGIC, "ramfs", OS_ASK_NEVER_COLD, true},
    {OVERLAYFS_SUPER_MAGIC, "overlayfs", OS_ASK_MINCORE, true},
    {ISOFS_SUPER_MAGIC, "iso9660", OS_ASK_MINCORE, true},
    {SQUASHFS_MAGIC, "squashfs", OS_ASK_MINCORE, true},
    {EROFS_SUPER_MAGIC_V1, "erofs", OS_ASK_MINCORE, true},
    {FUSE_SUPER_MAGIC, "fuse", OS_ASK_FETCH, false},
    {NFS_SUPER_MAGIC, "nfs", OS_ASK_FETCH, false},
};

#define NFILESYSTEMS (sizeof(filesystems) / sizeof(filesystems[0]))

/* Index into filesystems, NFILESYSTEMS for an unknown one. */
static size_t
filesystem(int fd)
{
	struct statfs sf;
	size_t i;

	if (fstatfs(fd, &sf) == -1)
		return NFILESYSTEMS;
	for (i = 0; i < NFILESYSTEMS; i++)
		if (filesystems[i].type == (long)sf.f_type)
			break;
	return i;
}

bool
os_cached_works(int dirfd)
{
	size_t i = filesystem(dirfd);
	int fd;

	if (i == NFILESYSTEMS || !filesystems[i].local)
		return false;
	fd = os_lookup(dirfd, ".", OS_CACHED);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || fd == -EAGAIN;
}

/*
 * RWF_NOWAIT is tried, not looked up: kernels and layers differ.  What has it and
 * is not on the list is taken as slow to open, but not as slow to ask.
 */
enum os_ask
os_ask_means(int fd, const char **name)
{
	size_t i = filesystem(fd);
	int got;

	*name = i == NFILESYSTEMS ? "unknown file system" : filesystems[i].name;
	if (i != NFILESYSTEMS && filesystems[i].ask == OS_ASK_NEVER_COLD)
		return OS_ASK_NEVER_COLD;
	/* Beyond the end of any file: the flag is checked, nothing is read. */
	got = os_nowait(fd, (off_t)1 << 62);
	if (got >= 0 && (i == NFILESYSTEMS || filesystems[i].local))
		return OS_ASK_NOWAIT;
	if (i != NFILESYSTEMS && filesystems[i].local)
		return OS_ASK_MINCORE;
	return OS_ASK_FETCH;
}

struct cachestat_range {
	uint64_t off, len;
};

struct cachestat {
	uint64_t cache, dirty, writeback, evicted, recently_evicted;
};

static long
cachestat(int fd, off_t off, size_t len, struct cachestat *cs)
{
	struct cachestat_range range = {(uint64_t)off, len};

	return syscall(SYS_cachestat, fd, &range, cs, 0);
}

/*
 * cachestat and mincore ask the same question of the inode (owner, CAP_FOWNER
 * or may write); cachestat refuses, mincore lies.
 */
bool
os_owner(int fd)
{
	struct cachestat cs;
	struct stat st;

	if (cachestat(fd, 0, 1, &cs) == 0)
		return true;
	if (errno != ENOSYS || fstat(fd, &st) == -1)
		return false;
	return geteuid() == st.st_uid;
}

/* Present is not up to date: a page that is being read counts as well. */
int
os_cachestat(int fd, off_t off, size_t len)
{
	struct cachestat cs;
	uint64_t page, first, last;

	page = (uint64_t)sysconf(_SC_PAGESIZE);
	first = (uint64_t)off / page;
	last = ((uint64_t)off + len - 1) / page;
	if (cachestat(fd, off, len, &cs) == -1)
		return -errno;
	return cs.cache >= last - first + 1;
}

long
os_read(int fd, off_t off, void *to, size_t len, bool wait)
{
	struct iovec iov = {to, len};
	ssize_t n;

	n = preadv2(fd, &iov, 1, off, wait ? 0 : RWF_NOWAIT);
	return n == -1 ? -errno : n;
}

int
os_nowait(int fd, off_t off)
{
	char byte;
	long n = os_read(fd, off, &byte, 1, false);

	/* 0 is the end of the file: sendfile will say so without waiting. */
	if (n >= 0)
		return 1;
	return n == -EAGAIN ? 0 : (int)n;
}

int
os_mincore(void *map, off_t off, size_t len)
{
	unsigned char vec[256];
	size_t page, pages, n, i;
	char *p;

	page = (size_t)sysconf(_SC_PAGESIZE);
	p = (char *)map + off / (off_t)page * (off_t)page;
	len += (size_t)off % page;
	for (pages = (len + page - 1) / page; pages > 0; pages -= n) {
		n = pages < sizeof(vec) ? pages : sizeof(vec);
		if (mincore(p, n * page, vec) == -1)
			return -errno;
		for (i = 0; i < n; i++)
			if ((vec[i] & 1) == 0)
				return 0;
		p += n * page;
	}
	return 1;
}

void *
os_map(int fd, off_t off, size_t len)
{
	void *map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, off);

	return map == MAP_FAILED ? NULL : map;
}

void
os_unmap(void *map, size_t len)
{
	munmap(map, len);
}

/* AddressSanitizer makes mlock do nothing, and say that it did. */
int
os_lock(void *map, size_t len)
{
	return mlock2(map, len, 0) == -1 ? -errno : 0;
}

int
os_populate(void *map, size_t len)
{
	return madvise(map, len, MADV_POPULATE_READ) == -1 ? -errno : 0;
}

size_t
os_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int
os_pipe(int fds[2], size_t size)
{
	int error;

	if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) == -1)
		return -errno;
	if (fcntl(fds[1], F_SETPIPE_SZ, (int)size) >= (int)size)
		return 0;
	error = -errno;
	os_pipe_close(fds);
	return error;
}

void
os_pipe_close(int fds[2])
{
	close(fds[0]);
	close(fds[1]);
	fds[0] = fds[1] = -1;
}

int
os_splice_in(int pipe, int fd, off_t off, size_t len, size_t *taken)
{
	ssize_t n;

	*taken = 0;
	n = splice(fd, &off, pipe, NULL, len, SPLICE_F_NONBLOCK);
	if (n == -1)
		return -errno;
	*taken = (size_t)n;
	return 0;
}

int
os_splice_out(int sock, int pipe, size_t len, bool more, size_t *sent)
{
	ssize_t n;

	*sent = 0;
	n = splice(pipe, NULL, sock, NULL, len,
	    SPLICE_F_NONBLOCK | (more ? SPLICE_F_MORE : 0));
	if (n == -1)
		return -errno;
	*sent = (size_t)n;
	return 0;
}

void
os_advise_random(int fd, bool random)
{
	posix_fadvise(fd, 0, 0, random ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL);
}

int
os_sink_open(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	return fd == -1 ? -errno : fd;
}

/* One advice is silently cut at os_advice_limit. */
void
os_fetch_begin(int fd, off_t off, size_t len, size_t step)
{
	off_t end = off + (off_t)len;

	for (; off < end; off += (off_t)step)
		posix_fadvise(fd, off,
		    end - off < (off_t)step ? end - off : (off_t)step,
		    POSIX_FADV_WILLNEED);
}

/*
 * sendfile to /dev/null waits for every page and copies none: 8 us for 512 KiB,
 * where a byte of each page by pread takes 60.
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
		if (n == -1 && errno != EINTR)
			return -errno;
	}
	return 0;
}

/* An advice brings in pages one by one; a fault in a mapping of huge pages does not. */
static bool
fault_folio(int fd, off_t off, size_t len)
{
	struct rusage before, after;
	char *map;
	bool read;

	map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, off);
	if (map == MAP_FAILED)
		return false;
	/* RANDOM: this one, not the next as well. */
	read = madvise(map, len, MADV_HUGEPAGE) == 0 &&
	       madvise(map, len, MADV_RANDOM) == 0 &&
	       getrusage(RUSAGE_THREAD, &before) == 0 &&
	       madvise(map, 1, MADV_POPULATE_READ) == 0 &&
	       getrusage(RUSAGE_THREAD, &after) == 0 &&
	       after.ru_majflt != before.ru_majflt;
	munmap(map, len);
	return read;
}

/*
 * mmap notes the time of access, which may wait for the journal, and holds a lock
 * that malloc needs on the loop.  Who may not do without (only the owner may) has it
 * noted by a read at the end of the file first: then there is nothing left to note, but
 * on a file system that is mounted with strictatime.
 */
static int
reopen(int fd)
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

/*
 * The fault leaves a mark on the folio.  Who touches it next through the descriptor
 * that had the fault starts the read of the one behind; through another the mark is
 * only taken away.  Without a major fault the first page was there already, and
 * nothing was read.
 */
bool
os_fetch_folio(int fd, off_t off, size_t len)
{
	struct stat st;
	bool read;
	int own;

	if ((uint64_t)off % OS_FOLIO != 0 || len > OS_FOLIO)
		return false;
	if (len < OS_FOLIO &&
	    (fstat(fd, &st) == -1 || off + (off_t)len != st.st_size))
		return false;
	own = reopen(fd);
	if (own == -1)
		return false;
	read = fault_folio(own, off, len);
	close(own);
	return read;
}

void
os_drop(int fd, off_t off, size_t len)
{
	posix_fadvise(fd, off, (off_t)len, POSIX_FADV_DONTNEED);
}

/* 0: there is no such file, or no number in it. */
static size_t
read_number(const char *path)
{
	char line[32] = "";
	FILE *f;

	f = fopen(path, "re");
	if (f != NULL) {
		if (fgets(line, sizeof(line), f) == NULL)
			line[0] = '\0';
		fclose(f);
	}
	return (size_t)strtoul(line, NULL, 10);
}

/* The greatest that is found, in bytes.  A partition has its disk's. */
static size_t
read_kib(const char *const *formats, size_t n, dev_t dev)
{
	char path[64];
	size_t i, one, most = 0;

	for (i = 0; i < n; i++) {
		snprintf(
		    path, sizeof(path), formats[i], major(dev), minor(dev));
		one = read_number(path) << 10;
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
 * The larger of the read-ahead and of the largest request of the disk: mm's
 * force_page_cache_ra, since Linux 4.11.
 */
size_t
os_advice_limit(dev_t dev)
{
	size_t limit = read_kib(limits_of_disk, LIMIT_FILES, dev);

	if (limit == 0)
		limit = READAHEAD_DEFAULT;
	return limit < OS_SAMPLE ? OS_SAMPLE : limit;
}

/*
 * Taking the mark away starts a read of its own where read-ahead reaches from the
 * begin of a folio beyond its end.  The fault brings in a huge page, of whatever
 * size, since Linux 5.18, before which it brought one page; cachestat came with 6.5.
 */
bool
os_folios(dev_t dev)
{
	size_t readahead = read_kib(limits_of_disk, READAHEAD_FILES, dev);
	struct cachestat cs;

	if (readahead == 0 || readahead >= OS_FOLIO)
		return false;
	if (cachestat(-1, 0, 1, &cs) == -1 && errno == ENOSYS)
		return false;
	return read_number(HUGE_SIZE) == OS_FOLIO;
}

void
os_dev_name(uint64_t dev, char *text, size_t size)
{
	snprintf(text, size, "%u:%u", major(dev), minor(dev));
}

int
os_wake_create(int fds[2])
{
	fds[0] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fds[1] = fds[0];
	return fds[0] == -1 ? -errno : 0;
}

void
os_wake_signal(int fd)
{
	uint64_t one = 1;
	ssize_t n;

	/* EAGAIN: 2^64 - 2 signals are waiting, so it is readable already. */
	do
		n = write(fd, &one, sizeof(one));
	while (n == -1 && errno == EINTR);
}

void
os_wake_clear(int fd)
{
	uint64_t count;
	ssize_t n;

	do
		n = read(fd, &count, sizeof(count));
	while (n == -1 && errno == EINTR);
}

void
os_wake_close(int fds[2])
{
	close(fds[0]);
	fds[0] = fds[1] = -1;
}

/* Allocated, not only sized: else no memory is SIGBUS for who writes to it. */
int
os_memfd(const char *name, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC), error = 0;

	if (fd == -1)
		return -errno;
	if (size > 0)
		error = posix_fallocate(fd, 0, (off_t)size);
	if (error == 0)
		return fd;
	close(fd);
	return -error;
}

unsigned
os_cpu(void)
{
	int cpu = sched_getcpu();

	return cpu < 0 ? 0 : (unsigned)cpu;
}

void
os_thread_name(const char *name)
{
	pthread_setname_np(pthread_self(), name);
}

void
os_process_name(const char *name)
{
	os_thread_name(name);
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
	const struct sched_param none = {0};

	prctl(PR_SET_NAME, "pw-fetch");
	/* A fetcher that wakes up does not push the loop off its core. */
	sched_setscheduler(0, SCHED_BATCH, &none);
}
