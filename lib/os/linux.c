/*
 * linux: os.h for Linux 5.12 and later.  Features of newer kernels are detected
 * at run time, and not used if they are missing.
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
#include <sys/xattr.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/linux.h"
#include "lib/os/meter.h"
#include "lib/os/os.h"
#include "lib/util/clock.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

#define NICEST	   19
#define SLICE_MOST 100000000 /* longest time slice, nanoseconds */

uint64_t
os_linux_number(const char *path)
{
	char line[64] = "";
	FILE *f;

	f = fopen(path, "re");
	if (f != NULL) {
		if (fgets(line, sizeof(line), f) == NULL)
			line[0] = '\0';
		fclose(f);
	}
	return strtoull(line, NULL, 10);
}

int
os_send(int sock, const void *mem, size_t len, bool more, size_t *sent)
{
	ssize_t n;

	*sent = 0;
	meter_call(METER_SEND);
	n = send(sock, mem, len,
	    MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0));
	if (n == -1)
		return -errno;
	*sent = (size_t)n;
	return 0;
}

/*
 * Returns true if the socket has no space.  After that the kernel reports an event once the socket has
 * space again.
 */
static bool
linux_is_full(int sock)
{
	struct pollfd pfd = {.fd = sock, .events = POLLOUT};

	return poll(&pfd, 1, 0) == 0;
}

/*
 * Nearly always sends less than len because the socket is full.  To find that by another sendfile(2) would
 * look up pages that are not sent, which takes ten times as long as poll(2).
 */
int
os_sendfile(int sock, int fd, off_t off, size_t len, size_t *sent)
{
	ssize_t n;

	*sent = 0;
	meter_call(METER_SENDFILE);
	n = sendfile(sock, fd, &off, len);
	if (n == -1)
		return -errno;
	*sent = (size_t)n;
	return n > 0 && (size_t)n < len && linux_is_full(sock) ? -EAGAIN : 0;
}

long
os_unacked(int sock)
{
	int n;

	return ioctl(sock, SIOCOUTQ, &n) == -1 ? -errno : n;
}

/* Counts the memory that data occupies, so Unix sockets have some, too. */
long
os_space(int sock)
{
	uint32_t mem[SK_MEMINFO_VARS] = {0};
	socklen_t len = sizeof(mem);

	if (getsockopt(sock, SOL_SOCKET, SO_MEMINFO, mem, &len) == -1)
		return -errno;
	return (long)mem[SK_MEMINFO_SNDBUF] - (long)mem[SK_MEMINFO_WMEM_QUEUED];
}

uint64_t
os_sent_ago(int sock)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &len) == -1)
		return 0;
	return (uint64_t)info.tcpi_last_data_sent * 1000;
}

bool
os_awaits_disk(int sock)
{
	(void)sock;
	return false;
}

/*
 * Returns the first value of tcp_mem (tcp(7)), in pages.  In a network namespace, which hides the file,
 * computes the value as the kernel's tcp_init_mem does.
 */
static uint64_t
linux_tcp_mem_low(void)
{
	uint64_t pages = os_linux_number("/proc/sys/net/ipv4/tcp_mem");

	return pages != 0 ? pages : (uint64_t)sysconf(_SC_PHYS_PAGES) / 64 * 3;
}

int
os_tcp_memory_open(uint64_t *enough)
{
	int fd = open("/proc/self/net/sockstat", O_RDONLY | O_CLOEXEC);

	if (fd == -1)
		return -errno;
	*enough = linux_tcp_mem_low() * os_page_size();
	return fd;
}

int64_t
os_tcp_memory(int fd)
{
	unsigned long pages;
	char text[512];
	const char *line;
	ssize_t n;

	n = pread(fd, text, sizeof(text) - 1, 0);
	if (n == -1)
		return -errno;
	text[n] = '\0';
	line = strstr(text, "TCP: ");
	if (line == NULL)
		return -EINVAL;
	text[line - text + (ssize_t)strcspn(line, "\n")] = '\0';
	line = strstr(line, " mem ");
	if (line == NULL)
		return -EINVAL;
	pages = strtoul(line + strlen(" mem "), NULL, 10);
	return (int64_t)pages * (int64_t)os_page_size();
}

int
os_limit_unsent(int sock, size_t bytes)
{
	const int value = (int)bytes;

	return setsockopt(sock, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value,
		   sizeof(value)) == -1
		   ? -errno
		   : 0;
}

size_t
os_unsent_limit(void)
{
	uint64_t n = os_linux_number("/proc/sys/net/ipv4/tcp_notsent_lowat");

	return n == 0 || n >= UINT32_MAX ? SIZE_MAX : (size_t)n;
}

/* reno is the only congestion control that every process may choose. */
int
os_unpace(int sock)
{
	static const char reno[] = "reno";
	char name[16] = ""; /* TCP_CA_NAME_MAX */
	socklen_t len = sizeof(name);

	if (getsockopt(sock, IPPROTO_TCP, TCP_CONGESTION, name, &len) == -1)
		return -errno;
	if (strncmp(name, "bbr", 3) != 0)
		return 0;
	return setsockopt(
		   sock, IPPROTO_TCP, TCP_CONGESTION, reno, sizeof(reno)) == -1
		   ? -errno
		   : 0;
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
os_share_listening(void)
{
	return true;
}

bool
os_share_late(void)
{
	return true;
}

/* Returns -ENOSYS.  TCP_DEFER_ACCEPT would wait for a byte, not for a request. */
int
os_accept_filter(int sock)
{
	(void)sock;
	return -ENOSYS;
}

struct cachestat_range {
	uint64_t off, len;
};

struct cachestat {
	uint64_t cache, dirty, writeback, evicted, recently_evicted;
};

static long
linux_cachestat(int fd, off_t off, size_t len, struct cachestat *cs)
{
	struct cachestat_range range = {(uint64_t)off, len};

	meter_call(METER_CACHESTAT);
	return syscall(SYS_cachestat, fd, &range, cs, 0);
}

/* Counts the pages in the page cache, including those that are still being read. */
int
os_cachestat(int fd, off_t off, size_t len)
{
	struct cachestat cs;
	uint64_t page, first, last;

	page = (uint64_t)sysconf(_SC_PAGESIZE);
	first = (uint64_t)off / page;
	last = ((uint64_t)off + len - 1) / page;
	if (linux_cachestat(fd, off, len, &cs) == -1)
		return -errno;
	return cs.cache >= last - first + 1;
}

long
os_read(int fd, off_t off, void *to, size_t len, bool wait)
{
	struct iovec iov = {to, len};
	ssize_t n;

	meter_call(wait ? METER_PREAD : METER_PREADV2);
	n = wait ? pread(fd, to, len, off)
		 : preadv2(fd, &iov, 1, off, RWF_NOWAIT);
	return n == -1 ? -errno : n;
}

int
os_nowait(int fd, off_t off, size_t len)
{
	char bytes[2];
	long n = os_read(fd, off, bytes, len, false);

	if (n == 0)
		return (int)len;
	return n == -EAGAIN ? 0 : (int)n;
}

int
os_mincore(void *map, off_t off, size_t len)
{
	unsigned char vec[256];
	size_t page, pages, n, i;
	char *p;

	meter_call(METER_MINCORE);
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

/* Calls mlock2(2), since AddressSanitizer replaces mlock(2) by a function that does nothing. */
int
os_lock(void *map, size_t len)
{
	return mlock2(map, len, 0) == -1 ? -errno : 0;
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
	meter_call(METER_SPLICE);
	n = splice(fd, &off, pipe, NULL, len, SPLICE_F_NONBLOCK);
	if (n == -1)
		return -errno;
	*taken = (size_t)n;
	return 0;
}

int
os_vmsplice(int pipe, const void *mem, size_t len, size_t *taken)
{
	/* the kernel only reads this memory */
	struct iovec iov = {(void *)(uintptr_t)mem, len};
	ssize_t n;

	*taken = 0;
	meter_call(METER_VMSPLICE);
	n = vmsplice(pipe, &iov, 1, SPLICE_F_NONBLOCK);
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
	meter_call(METER_SPLICE);
	n = splice(pipe, NULL, sock, NULL, len,
	    SPLICE_F_NONBLOCK | (more ? SPLICE_F_MORE : 0));
	if (n == -1)
		return -errno;
	*sent = (size_t)n;
	return 0;
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

bool
os_wake_signal(int fd)
{
	uint64_t one = 1;
	ssize_t n;

	do
		n = write(fd, &one, sizeof(one));
	while (n == -1 && errno == EINTR);
	/* EAGAIN: the counter is full (2^64 - 2), so the descriptor is readable. */
	return n != -1 || errno == EAGAIN;
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

/*
 * Allocates the memory at once, since after ftruncate(2) alone a later write would raise SIGBUS if
 * memory is short.  Calls posix_fallocate(3) again after a signal, which makes it fail without
 * allocating anything.
 */
int
os_memfd(const char *name, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC), error = 0;

	if (fd == -1)
		return -errno;
	if (size > 0)
		do
			error = posix_fallocate(fd, 0, (off_t)size);
		while (error == EINTR);
	if (error == 0)
		return fd;
	close(fd);
	return -error;
}

/* The struct sched_attr of sched_setattr(2), which C libraries define only lately. */
struct linux_sched_attr {
	uint32_t sa_size;
	uint32_t sa_policy;
	uint64_t sa_flags;
	int32_t sa_nice;
	uint32_t sa_priority;
	uint64_t sa_slice; /* sched_runtime, nanoseconds */
	uint64_t sa_deadline;
	uint64_t sa_period;
};

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

/*
 * musl has no sem_clockwait.  Its sem_timedwait has the kernel wait for the time from now to `end`,
 * so that a clock which is set meanwhile makes no difference.
 */
int
os_sem_wait(sem_t *sem, uint64_t us)
{
	struct timespec end;
	int n;

#ifdef __GLIBC__
	end = clock_timespec(clock_now() + us);
	do
		n = sem_clockwait(sem, CLOCK_MONOTONIC, &end);
	while (n == -1 && errno == EINTR);
#else
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += (time_t)(us / 1000000);
	end.tv_nsec += (long)(us % 1000000) * 1000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	do
		n = sem_timedwait(sem, &end);
	while (n == -1 && errno == EINTR);
#endif
	return n == -1 ? -errno : 0;
}

/*
 * Makes the calling thread give way to the loops: when it wakes up, it does not preempt a loop
 * (SCHED_BATCH), and a loop that wakes up preempts it, since its time slice is longer than that of a
 * loop (Linux 6.12; older kernels ignore it).  Otherwise a loop waits for the end of slices, up to
 * 7 ms.  On Linux PRIO_PROCESS is per thread.
 */
static void
linux_give_way(int nicer)
{
	struct linux_sched_attr attr = {
	    .sa_size = sizeof(attr),
	    .sa_policy = SCHED_BATCH,
	    .sa_nice = getpriority(PRIO_PROCESS, 0) + nicer,
	    .sa_slice = SLICE_MOST,
	};

	if (attr.sa_nice > NICEST)
		attr.sa_nice = NICEST;
	if (syscall(SYS_sched_setattr, 0, &attr, 0) == 0)
		return;
	/* A container's filter may know only these. */
	sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
	setpriority(PRIO_PROCESS, 0, attr.sa_nice);
}

void
os_thread_fetcher(void)
{
	prctl(PR_SET_NAME, "pw-fetch");
	linux_give_way(0);
}

void
os_thread_helper(void)
{
	linux_give_way(10);
}

long
os_attribute(int fd, const char *name, void *to, size_t size)
{
	char full[64];
	ssize_t n;

	snprintf(full, sizeof(full), "user.%s", name);
	n = fgetxattr(fd, full, to, size);
	if (n == -1)
		return errno == ENODATA ? -ENOENT : -errno;
	return n;
}

void
os_drop(int fd, off_t off, size_t len)
{
	posix_fadvise(fd, off, (off_t)len, POSIX_FADV_DONTNEED);
}

void
os_unbuffer(int fd, off_t off, size_t len)
{
	(void)fd, (void)off, (void)len;
}
