/*
 * folio: what it costs to bring windows of a file into memory, and to send them
 * later, for each way of fetching that lib/os/os.h has and for the kernel's own
 * read-ahead: docs/design/prefetching.md has the table that is printed.  CPU time is this
 * process's, requests are those of the whole disk.  Linux.
 *
 *   folio [--dir DIR] [--mib N] [--rounds N]
 */
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <err.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/os/os.h"

#define MIB	   ((size_t)1 << 20)
#define ROUNDS_MAX 100
#define TRIES	   1000

enum way { KERNEL, ADVICE, FOLIO, WAYS };

static const char *const names[WAYS] = {"kernel's own read-ahead",
    "`POSIX_FADV_WILLNEED`", "fault, `MADV_HUGEPAGE` and `MADV_RANDOM`"};

struct sample {
	double fetch, resend, requests; /* seconds a GiB, the same, a MiB */
};

static struct sample samples[WAYS][ROUNDS_MAX];
static char path[4096];
static size_t mib = 512;
static dev_t dev;
static size_t step;

static double
cpu(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
	       (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
}

/* Reads that the disk, or the partition's disk, has finished. */
static double
requests(void)
{
	static const char *const files[] = {
	    "/sys/dev/block/%u:%u/../stat", "/sys/dev/block/%u:%u/stat"};
	char name[64];
	double n = 0;
	size_t i;
	FILE *f;

	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), files[i], major(dev), minor(dev));
		f = fopen(name, "re");
		if (f == NULL)
			continue;
		if (fscanf(f, "%lf", &n) != 1)
			n = 0;
		fclose(f);
		break;
	}
	return n;
}

static void
clean_up(void)
{
	unlink(path);
}

static void
make(void)
{
	char *data = malloc(MIB);
	size_t i, n;
	int fd;

	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd == -1 || data == NULL)
		err(1, "%s", path);
	atexit(clean_up);
	for (n = 0; n < mib; n++) {
		for (i = 0; i < MIB; i++)
			data[i] = (char)(i * 31 + n);
		if (write(fd, data, MIB) != (ssize_t)MIB)
			err(1, "%s", path);
	}
	if (fsync(fd) == -1)
		err(1, "%s", path);
	free(data);
	close(fd);
}

static bool
anything_left(int fd, size_t len)
{
	off_t off;

	for (off = 0; off < (off_t)len; off += (off_t)os_page_size())
		if (os_cachestat(fd, off, 1) == 1)
			return true;
	return false;
}

/* What another processor has not let go of yet stays for a moment. */
static void
evict(int fd, size_t len)
{
	int i;

	for (i = 0; i < TRIES; i++) {
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		if (!anything_left(fd, len))
			return;
		usleep(1000);
	}
	errx(1, "%s: does not leave memory", path);
}

static void
measure(enum way way, int sink, struct sample *s)
{
	size_t len = mib * MIB, gib = (size_t)1 << 30;
	double per = (double)gib / (double)len, start, before;
	off_t off, end = (off_t)len;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd == -1)
		err(1, "%s", path);
	evict(fd, len);
	before = requests();
	start = cpu();
	for (off = 0; off < end; off += (off_t)OS_FOLIO) {
		if (way == ADVICE)
			os_fetch_begin(fd, off, OS_FOLIO, step);
		if (way == FOLIO &&
		    !os_fetch_folio(fd, off, OS_FOLIO, 0, -1, NULL))
			errx(1, "this kernel brings in no huge pages here");
		if (os_fetch_end(sink, fd, off, OS_FOLIO) != 0)
			errx(1, "%s: cannot be read", path);
	}
	s->fetch = (cpu() - start) * per;
	s->requests = (requests() - before) / (double)mib;
	start = cpu();
	if (os_fetch_end(sink, fd, 0, len) != 0)
		errx(1, "%s: cannot be read", path);
	s->resend = (cpu() - start) * per;
	close(fd);
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
cell(const struct sample *s, int n, size_t member)
{
	double v[ROUNDS_MAX];
	int i;

	for (i = 0; i < n; i++)
		v[i] = *(const double *)((const char *)&s[i] + member);
	qsort(v, (size_t)n, sizeof(*v), compare);
	printf(" %.3f (%.3f–%.3f) |", v[n / 2], v[0], v[n - 1]);
}

int
main(int argc, char **argv)
{
	size_t ahead = 0; /* read-ahead of the device, bytes */
	static const struct option options[] = {{"dir", 1, NULL, 'd'},
	    {"mib", 1, NULL, 'm'}, {"rounds", 1, NULL, 'r'}, {0}};
	const char *dir = "/var/tmp";
	int c, i, way, rounds = 5, sink;
	struct stat st;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'd')
			dir = optarg;
		else if (c == 'm')
			mib = strtoul(optarg, NULL, 10) & ~(size_t)1;
		else if (c == 'r')
			rounds = (int)strtol(optarg, NULL, 10);
		else
			return 2;
	}
	if (mib == 0 || rounds < 1 || rounds > ROUNDS_MAX)
		errx(2, "--mib from 2, --rounds from 1 to %d", ROUNDS_MAX);
	snprintf(
	    path, sizeof(path), "%s/pagewise-folio.%d", dir, (int)getpid());
	if (stat(dir, &st) == -1)
		err(1, "%s", dir);
	dev = st.st_dev;
	step = os_advice_limit(dev);
	sink = os_sink_open();
	if (!os_folios(dev, &ahead) || ahead >= OS_FOLIO)
		fprintf(stderr,
		    "folio: pagewise would not use folios there: "
		    "docs/design/prefetching.md says when it does\n");
	make();
	for (i = 0; i < rounds; i++)
		for (way = 0; way < WAYS; way++)
			measure((enum way)way, sink, &samples[way][i]);
	printf(
	    "| how 2 MiB come in | CPU s to fetch a GiB | to send it later | "
	    "disk requests per MiB | rounds |\n|---|---|---|---|---|\n");
	for (way = 0; way < WAYS; way++) {
		printf("| %s |", names[way]);
		cell(samples[way], rounds, offsetof(struct sample, fetch));
		cell(samples[way], rounds, offsetof(struct sample, resend));
		cell(samples[way], rounds, offsetof(struct sample, requests));
		printf(" %d |\n", rounds);
	}
	return 0;
}
