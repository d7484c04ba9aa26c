/*
 * nowait: what it costs to ask with a preadv2(RWF_NOWAIT) of one byte whether a
 * page is in memory, and what the question sets off: docs/design/residency.md explains
 * the table that is printed.  The first process only waits for the one that
 * measures, or for a signal, and cleans up.  Linux; root for (c) and (d).
 */
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SIZE	((off_t)2048 << 20) /* more extents than ext4's inode takes */
#define DATA	((off_t)1500 << 20) /* where something is written: ... */
#define PAGES	2048		    /* ... so many pages */
#define PAGE	4096
#define WARM	128
#define MANY	200
#define FEW	5
#define NORMAL	POSIX_FADV_NORMAL
#define RANDOM	POSIX_FADV_RANDOM
#define CGROUP	"/sys/fs/cgroup"
#define SUBTREE CGROUP "/cgroup.subtree_control"

struct sample {
	double us;
	long switches, before, after; /* pages of the file in the cache */
};

static struct sample *samples; /* shared with the processes that probe */
static char target[512], busy[512], group[64], procs[80];
static char data[PAGES * PAGE];
static bool limited, io_enabled;

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static bool
put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd != -1 && write(fd, text, strlen(text)) != -1;

	close(fd);
	return done;
}

/* Pages in the cache, those that are being read included. */
static long
cached(int fd, size_t len)
{
	uint64_t range[2] = {DATA, len}, stat[5];

	return syscall(451, fd, range, stat, 0) == -1 ? -1 : (long)stat[0];
}

static void
probe(int fd, off_t off, size_t len, struct sample *s)
{
	struct iovec iov = {(char[1]){0}, 1};
	struct rusage ru, ru2;
	double start;

	s->before = cached(fd, 0);
	if (s->before == -1)
		err(1, "cachestat");
	getrusage(RUSAGE_SELF, &ru);
	start = now();
	if (len > 0)
		cached(fd, len);
	else if (preadv2(fd, &iov, 1, off, RWF_NOWAIT) == -1 && errno != EAGAIN)
		err(1, "RWF_NOWAIT does not work here, try another --dir");
	s->us = now() - start;
	getrusage(RUSAGE_SELF, &ru2);
	s->switches = ru2.ru_nvcsw - ru.ru_nvcsw;
	s->after = cached(fd, 0);
}

static int
by_us(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return (x->us > y->us) - (x->us < y->us);
}

/* Of many, the outermost 5 % on each side are left out of the spread. */
static void
report(const char *name, int n)
{
	struct sample *s = samples, last = s[n - 1];
	int i, cut = n / 20;
	long most = 0;

	for (i = 0; i < n; i++)
		most = s[i].switches > most ? s[i].switches : most;
	qsort(s, (size_t)n, sizeof(*s), by_us);
	printf("| %s | %d | %.2f | %.2f–%.2f | %ld | %ld → %ld |\n", name, n,
	    s[n / 2].us, s[cut].us, s[n - 1 - cut].us, most, last.before,
	    last.after);
	fflush(stdout);
}

/* Leaves the block map.  A page that is being read stays for a moment. */
static void
evict(int fd)
{
	for (int i = 0; i < 1000 && cached(fd, 0) != 0; i++) {
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		usleep(1000);
	}
}

/*
 * Another descriptor reads WARM pages, then pages first to last are asked for
 * until something is set off, by preadv2 or, with len, by cachestat.
 */
static void
ask(const char *name, size_t len, int first, int last, int reading, int asking)
{
	int fd, other, i, page;

	for (i = 0; i < MANY; i++) {
		fd = open(target, O_RDONLY | O_CLOEXEC);
		other = open(target, O_RDONLY | O_CLOEXEC);
		posix_fadvise(other, 0, 0, reading);
		if (i == 0 || last > 0)
			evict(fd);
		for (page = 0; page < WARM; page += 16)
			pread(other, data, 16 * PAGE, DATA + page * PAGE);
		posix_fadvise(fd, 0, 0, asking);
		page = first;
		do
			probe(fd, DATA + page * PAGE, len, &samples[i]);
		while (samples[i].after == samples[i].before && page++ < last);
		close(other);
		close(fd);
	}
	report(name, MANY);
}

static void
ask_cold(const char *name, bool throttled)
{
	int fd, i, n;

	for (i = 0; i < FEW; i++) {
		fd = open(target, O_RDONLY | O_CLOEXEC);
		evict(fd); /* what the last one started has to end first */
		close(fd);
		sync();
		/* What was used a moment ago survives the first call. */
		for (n = 0; n < 4; n++)
			put("/proc/sys/vm/drop_caches", "3");
		if (fork() == 0) {
			fd = open(target, O_RDONLY | O_CLOEXEC);
			if (throttled)
				put(procs, "0");
			probe(fd, DATA, 0, &samples[i]);
			_exit(0);
		}
		wait(NULL);
	}
	report(name, i);
}

static void
keep_busy(void)
{
	char *buf = aligned_alloc(PAGE, PAGE);
	int i, fd = open(busy, O_RDONLY | O_DIRECT | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	put(procs, "0");
	for (i = 0; pread(fd, buf, PAGE, i % PAGES * PAGE) > 0; i++)
		continue;
	_exit(1);
}

static void
make_file(const char *path, off_t size, off_t off)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd == -1 || fallocate(fd, 0, 0, size) == -1 ||
	    pwrite(fd, data, sizeof(data), off) == -1 || fsync(fd) == -1)
		err(1, "%s", path);
	close(fd);
}

static void
measure(void)
{
	int i;

	make_file(target, SIZE, DATA);
	make_file(busy, sizeof(data), 0);
	puts("| what is asked | N | median, µs | spread | switches | pages |\n"
	     "|---|---|---|---|---|---|");
	ask("(a) resident", 0, 0, 0, RANDOM, RANDOM);
	ask("`cachestat` of 64 KiB", 16 * PAGE, 0, 0, RANDOM, RANDOM);
	ask("`cachestat` of 512 KiB", 128 * PAGE, 0, 0, RANDOM, RANDOM);
	ask("(b) not resident", 0, WARM, WARM, RANDOM, NORMAL);
	ask("(b) with `FADV_RANDOM`", 0, WARM, WARM, RANDOM, RANDOM);
	ask("resident, with a read-ahead mark", 0, 0, PAGES, NORMAL, RANDOM);
	if (geteuid() == 0)
		ask_cold("(c) as (b), block map not in memory", false);
	if (!limited)
		warnx("(c) and (d) need root, (d) a cgroup for this disk");
	for (i = 0; limited && i < 4; i++)
		if (fork() == 0)
			keep_busy();
	sleep(1);
	if (limited)
		ask_cold("(d) as (c), disk busy", true);
}

/* 40 reads per second from the whole disk: throttles take no partitions. */
static void
limit_disk(const char *dir)
{
	bool v2 = access(CGROUP "/cgroup.controllers", F_OK) == 0;
	char path[128], disk[32], text[64];
	struct stat st = {0};
	FILE *f;

	stat(dir, &st);
	snprintf(
	    disk, sizeof(disk), "%u:%u", major(st.st_dev), minor(st.st_dev));
	snprintf(path, sizeof(path), "/sys/dev/block/%s/../dev", disk);
	f = fopen(path, "re");
	if (f != NULL && fscanf(f, "%31s", disk) == 1)
		fclose(f);
	snprintf(group, sizeof(group), CGROUP "%s/nowait-%d",
	    v2 ? "" : "/blkio", getpid());
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", group);
	snprintf(path, sizeof(path), "%s/%s", group,
	    v2 ? "io.max" : "blkio.throttle.read_iops_device");
	snprintf(text, sizeof(text), "%s %s40", disk, v2 ? "riops=" : "");
	if (mkdir(group, 0755) == 0 && v2 && access(path, F_OK) != 0)
		io_enabled = put(SUBTREE, "+io");
	limited = put(path, text);
}

static void
clean(void)
{
	unlink(target);
	unlink(busy);
	rmdir(group);
	if (io_enabled)
		put(SUBTREE, "-io");
}

int
main(int argc, char **argv)
{
	const char *dir = argc == 3 ? argv[2] : "/var/tmp";
	int status = 0, sig;
	sigset_t set;
	pid_t pid;

	if (argc != 1 && (argc != 3 || strcmp(argv[1], "--dir") != 0))
		errx(2, "usage: nowait [--dir DIR], where 2 GiB are free");
	snprintf(target, sizeof(target), "%s/nowait-%d", dir, getpid());
	snprintf(busy, sizeof(busy), "%s/nowait-busy-%d", dir, getpid());
	samples = mmap(NULL, MANY * sizeof(*samples), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (geteuid() == 0)
		limit_disk(dir);
	pid = samples == MAP_FAILED ? -1 : fork();
	if (pid == -1) {
		clean();
		errx(1, "no memory");
	}
	if (pid == 0) {
		setpgid(0, 0);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		measure();
		exit(0);
	}
	setpgid(pid, pid);
	sigwait(&set, &sig);
	kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
	while (wait(NULL) > 0)
		continue;
	clean();
	return sig == SIGCHLD ? WEXITSTATUS(status) : 128 + sig;
}
