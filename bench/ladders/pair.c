/*
 * pair: the two ends of the pipe.  The writer goes on until it is told to stop
 * and the reader until the end of the file: what the one counts as sent, the
 * other must have received.
 */
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"
#include "report.h"

#define WARMUP 0.02 /* seconds */

/* Between the two processes. */
struct shared {
	atomic_bool sh_stop;
	atomic_uint_fast64_t sh_sent;
	char sh_why[160];
};

static struct shared *shared;

void
pair_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) == -1)
		err(1, "cpu %d", cpu);
}

const char *
pair_why(void)
{
	return shared->sh_why;
}

/* All of it, whatever pieces the pipe takes.  False if the reader is gone. */
static bool
send_all(const struct plan *pl, int fd, char *p, size_t len)
{
	unsigned flags = pl->pl_busy ? SPLICE_F_NONBLOCK : 0;
	struct iovec iov = {p, len};
	ssize_t n;

	while (iov.iov_len > 0) {
		n = pl->pl_vmsplice ? vmsplice(fd, &iov, 1, flags)
				    : write(fd, iov.iov_base, iov.iov_len);
		if (n == -1 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n == -1)
			return false;
		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
	}
	return true;
}

static void
number(char *p, size_t len, uint64_t first)
{
	uint64_t *words = (uint64_t *)(void *)p;
	size_t i;

	for (i = 0; i < len / sizeof(*words); i++)
		words[i] = first / sizeof(*words) + i;
}

/*
 * The halves lie in different huge pages: their reference counts are not one
 * cache line.  Unless the plan is about that, both are touched first: a page
 * that is not there is slow to splice each time.
 */
static char *
make_buffer(const struct plan *pl, const struct job *jb, size_t stride)
{
	enum page_kind kind = pl->pl_huge ? jb->jb_huge : PAGES_SMALL;
	char *p = huge_map(kind, false, 2 * stride);

	if (p == NULL) {
		snprintf(shared->sh_why, sizeof(shared->sh_why), "mmap: %s",
		    strerror(errno));
		return NULL;
	}
	if (!pl->pl_untouched)
		memset(p, 'X', 2 * stride);
	if (kind == PAGES_TRANSPARENT && huge_missing(p, 2 * stride) > 0) {
		snprintf(shared->sh_why, sizeof(shared->sh_why),
		    "the kernel found too few huge pages");
		return NULL;
	}
	return p;
}

static int
writer(const struct plan *pl, const struct job *jb, int fd)
{
	size_t stride, len = pl->pl_vmsplice ? jb->jb_size / 2 : jb->jb_size;
	uint64_t sent = 0;
	char *buf, *p;
	int turn;

	pair_pin(jb->jb_cpus[0]);
	stride = (jb->jb_size + huge_page() - 1) / huge_page() * huge_page();
	buf = make_buffer(pl, jb, stride);
	if (buf == NULL)
		return 1;
	for (turn = 0; sent < jb->jb_limit && !shared->sh_stop; turn ^= 1) {
		p = buf + (pl->pl_vmsplice && turn ? stride : 0);
		if (jb->jb_numbered)
			number(p, len, sent);
		if (!send_all(pl, fd, p, len))
			return 1;
		sent += len;
	}
	shared->sh_sent = sent;
	return 0;
}

static pid_t
start_writer(const struct plan *pl, const struct job *jb, const int fds[2])
{
	pid_t parent = getpid(), pid;

	shared->sh_stop = false;
	shared->sh_sent = 0;
	shared->sh_why[0] = '\0';
	fflush(stdout);
	pid = fork();
	if (pid == -1)
		err(1, "fork");
	if (pid > 0)
		return pid;
	huge_disown();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	close(fds[0]);
	_exit(writer(pl, jb, fds[1]));
}

/* As read(2). */
static ssize_t
receive(const struct plan *pl, const struct job *jb, int fd, char *buf)
{
	unsigned flags = pl->pl_busy ? SPLICE_F_NONBLOCK : 0;
	ssize_t n;

	do
		n = pl->pl_splice ? splice(fd, NULL, jb->jb_sink, NULL,
					jb->jb_size, flags)
				  : read(fd, buf, jb->jb_size);
	while (n == -1 && (errno == EAGAIN || errno == EINTR));
	if (n > 0 && jb->jb_keep && !pl->pl_splice &&
	    write(jb->jb_sink, buf, (size_t)n) != n)
		err(1, "sink");
	return n;
}

/*
 * Counts between two moments, then reads until the writer is done.  The clock
 * is asked at every 16th turn: it takes as long as a page or two.
 */
static double
reader(const struct plan *pl, const struct job *jb, int fd, uint64_t *total)
{
	double start = ladder_now(), begin = 0, t, rate = 0;
	char *buf = huge_map(PAGES_SMALL, true, jb->jb_size);
	uint64_t base = 0;
	unsigned turn;
	ssize_t n;

	if (buf == NULL)
		err(1, "mmap");
	*total = 0;
	for (turn = 1; (n = receive(pl, jb, fd, buf)) > 0; turn++) {
		*total += (uint64_t)n;
		if (turn % 16 != 0 || rate > 0 || jb->jb_seconds <= 0)
			continue;
		t = ladder_now();
		if (base == 0 && t - start > WARMUP) {
			begin = t;
			base = *total;
		} else if (base > 0 && t - begin > jb->jb_seconds) {
			rate = (double)(*total - base) / (t - begin);
			shared->sh_stop = true;
		}
	}
	if (n == -1)
		err(1, "pipe");
	huge_unmap(buf, jb->jb_size);
	return rate;
}

/* Of both: the child is counted once it has been waited for. */
static double
switches_so_far(void)
{
	struct rusage self, children;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	return (double)(self.ru_nvcsw + children.ru_nvcsw);
}

static void
share(void)
{
	if (shared != NULL)
		return;
	signal(SIGPIPE, SIG_IGN);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		err(1, "mmap");
}

double
pair_measure(const struct plan *pl, struct job *jb, double *switches)
{
	uint64_t total;
	double rate, before;
	int fds[2], granted, status;
	pid_t pid;

	share();
	before = switches_so_far();
	if (pipe2(fds, O_CLOEXEC) == -1)
		err(1, "pipe");
	granted = fcntl(fds[1], F_SETPIPE_SZ, (int)jb->jb_pipe);
	if (granted == -1)
		err(1, "a pipe of %zu bytes", jb->jb_pipe);
	jb->jb_pipe = (size_t)granted;
	pid = start_writer(pl, jb, fds);
	close(fds[1]);
	rate = reader(pl, jb, fds[0], &total);
	close(fds[0]);
	if (waitpid(pid, &status, 0) == -1)
		err(1, "waitpid");
	if (shared->sh_why[0] != '\0')
		return -1;
	if (status != 0)
		errx(1, "the writer failed");
	if (total != shared->sh_sent)
		errx(1, "%ju bytes were written and %ju read",
		    (uintmax_t)shared->sh_sent, (uintmax_t)total);
	*switches = (switches_so_far() - before) / (double)total;
	return rate;
}
