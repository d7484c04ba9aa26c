/*
 * gup: what get_user_pages_fast takes for a page, by the kind of pages.
 * vmsplice(2) calls it for 16 pages at a time, so the time of a call with many
 * pages less that of a call with 16 is that of the lookups, and of an entry in
 * the pipe for each page.
 */
#include <sys/uio.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "huge.h"
#include "report.h"

#define FEW  16	 /* pages that the kernel looks up at once */
#define MANY 256 /* pages, as many as a pipe of 1 MiB has */

struct plan {
	enum page_kind pl_kind;
	bool pl_touched;
};

static const struct plan plans[] = {
    {PAGES_SMALL, true},
    {PAGES_SMALL, false},
    {PAGES_TRANSPARENT, true},
    {PAGES_HUGETLB, true},
};

static struct rung rungs[] = {
    {.ru_name = "4 KiB pages"},
    {.ru_name = "4 KiB pages, untouched"},
    {.ru_name = "transparent huge pages"},
    {.ru_name = "hugetlb pages"},
};

static struct ladder ladder = {
    .ld_name = "gup",
    .ld_source = "the article on pipes has the benchmark, but no figure of it",
    .ld_less_is_faster = true,
    .ld_huge = "as the rungs say",
    .ld_measures = {"a page", "a call"},
    .ld_units = {"ns", "ns"},
    .ld_notes = "A page: the time of `vmsplice` of 256 pages into an empty "
		"pipe less that of 16, which is what `get_user_pages_fast` "
		"takes and an entry in the pipe. A call: what is left for a "
		"page that costs nothing.",
    .ld_rungs = rungs,
    .ld_nrungs = sizeof(rungs) / sizeof(*rungs),
};

static int fds[2], sink;

static void
prepare(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (pipe2(fds, O_CLOEXEC) == -1)
		err(1, "pipe");
	if (fcntl(fds[1], F_SETPIPE_SZ, (int)(MANY * page)) == -1)
		err(1, "a pipe of %d pages", MANY);
	sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (sink == -1)
		err(1, "/dev/null");
}

static void
drain(size_t len)
{
	ssize_t n;

	for (; len > 0; len -= (size_t)n) {
		n = splice(fds[0], NULL, sink, NULL, len, 0);
		if (n <= 0)
			err(1, "splice");
	}
}

/* Returns the median nanoseconds of a vmsplice of these pages, which no interrupt shifts. */
static double
splices(char *p, size_t pages)
{
	struct iovec iov = {p, pages * (size_t)sysconf(_SC_PAGESIZE)};
	struct measure times = {0};
	double start;
	int i;

	for (i = 0; i < LADDER_ROUNDS; i++) {
		start = ladder_now();
		if (vmsplice(fds[1], &iov, 1, 0) != (ssize_t)iov.iov_len)
			err(1, "vmsplice");
		ladder_note(&times, ladder_now() - start);
		drain(iov.iov_len);
	}
	return ladder_median(&times) * 1e9;
}

/* Maps the pages of a plan.  Returns NULL, and why, if there are none. */
static char *
map(const struct plan *pl, char *why, size_t size)
{
	size_t len = MANY * (size_t)sysconf(_SC_PAGESIZE);
	char *p;

	if (pl->pl_kind == PAGES_TRANSPARENT && !huge_transparent(why, size))
		return NULL;
	if (pl->pl_kind == PAGES_HUGETLB && !huge_reserve(len, why, size))
		return NULL;
	why[0] = '\0';
	p = huge_map(pl->pl_kind, false, len);
	if (p == NULL) {
		snprintf(why, size, "mmap: %s", strerror(errno));
		return NULL;
	}
	if (pl->pl_touched)
		memset(p, 'X', len);
	if (pl->pl_kind != PAGES_TRANSPARENT || huge_missing(p, len) == 0)
		return p;
	snprintf(why, size, "the kernel found too few huge pages");
	huge_unmap(p, len);
	return NULL;
}

static void
climb(const struct plan *pl, struct rung *ru)
{
	double few, many, page;
	char *p;

	if (ru->ru_why_not[0] != '\0')
		return;
	p = map(pl, ru->ru_why_not, sizeof(ru->ru_why_not));
	if (p == NULL)
		return;
	splices(p, MANY); /* the first ones are slower */
	few = splices(p, FEW);
	many = splices(p, MANY);
	page = (many - few) / (MANY - FEW);
	ladder_add(ru, 0, page);
	ladder_add(ru, 1, few - FEW * page);
	huge_unmap(p, MANY * (size_t)sysconf(_SC_PAGESIZE));
	huge_release();
}

/* Writes its number to each page, and returns true if the numbers arrive in order. */
static bool
arrives(char *p)
{
	size_t i, page = (size_t)sysconf(_SC_PAGESIZE);
	struct iovec iov = {p, MANY * page};
	char got;
	bool same = true;

	for (i = 0; i < MANY; i++)
		p[i * page] = (char)(i ^ i >> 8);
	if (vmsplice(fds[1], &iov, 1, 0) != (ssize_t)iov.iov_len)
		err(1, "vmsplice");
	for (i = 0; i < MANY; i++) {
		if (read(fds[0], &got, 1) != 1)
			err(1, "read");
		same = same && got == (char)(i ^ i >> 8);
		drain(page - 1);
	}
	return same;
}

static int
self_test(void)
{
	char name[128], why[160], *p;
	int i;

	for (i = 0; i < ladder.ld_nrungs; i++) {
		snprintf(name, sizeof(name), "each page arrives in order: %s",
		    rungs[i].ru_name);
		p = map(&plans[i], why, sizeof(why));
		if (p == NULL)
			ladder_skip(name, why);
		else
			ladder_test(arrives(p), name);
		if (p != NULL)
			huge_unmap(p, MANY * (size_t)sysconf(_SC_PAGESIZE));
		huge_release();
	}
	return ladder_tested();
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"rounds", required_argument, NULL, 'r'},
	    {"json", no_argument, NULL, 'j'},
	    {"self-test", no_argument, NULL, 't'}, {0}};
	int c, i, round, rounds = 15;
	bool json = false, test = false;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (c == 'r')
			rounds = ladder_rounds(optarg);
		else if (c == 'j')
			json = true;
		else if (c == 't')
			test = true;
		else
			errx(2, "usage: gup [--rounds N] [--json] [--self-test]");
	prepare();
	if (test)
		return self_test();
	for (round = 0; round < rounds; round++)
		for (i = 0; i < ladder.ld_nrungs; i++)
			climb(&plans[i], &rungs[i]);
	ladder_option(&ladder, "rounds", rounds);
	ladder_print(&ladder, json);
	return 0;
}
