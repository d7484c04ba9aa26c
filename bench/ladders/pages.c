/*
 * pages: three memsets in a row over fresh memory, in small, transparent huge
 * and hugetlb pages, and with the pages mapped beforehand.  What the second
 * memset does not have to pay is the price of the page faults.
 */
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "huge.h"
#include "report.h"

#define MIB ((size_t)1 << 20)

enum { FIRST, SECOND, THIRD, MMAP, FAULTS, UNREHEARSED, TLB };

struct plan {
	enum page_kind pl_kind;
	bool pl_populate;
};

struct result {
	double re_seconds[4];
	long re_faults[3];
	double re_tlb; /* -1: not counted */
};

static const struct plan plans[] = {
    {PAGES_SMALL, false},
    {PAGES_SMALL, true},
    {PAGES_TRANSPARENT, false},
    {PAGES_HUGETLB, false},
    {PAGES_HUGETLB, true},
    {PAGES_GIGANTIC, false},
};

static struct rung rungs[] = {
    {.ru_name = "4 KiB pages",
	.ru_sources = {0.66, 0.16, 0.16, 0, 262199, 0, 2574501}},
    {.ru_name = "4 KiB pages, `MAP_POPULATE`"},
    {.ru_name = "transparent huge pages"},
    {.ru_name = "hugetlb pages", .ru_sources = {0.238, 0, 0, 0, 568, 0, 27004}},
    {.ru_name = "hugetlb pages, `MAP_POPULATE`", .ru_sources = {[FAULTS] = 55}},
    {.ru_name = "hugetlb pages of 1 GiB"},
};

static struct ladder ladder = {
    .ld_name = "pages",
    .ld_source = "the article on three memsets, 1 GiB; its faults are those of "
		 "the whole process, about 55 of them from starting it",
    .ld_less_is_faster = true,
    .ld_measures = {"1st memset", "2nd", "3rd", "mmap", "faults",
	"1st unrehearsed", "dTLB load misses"},
    .ld_units = {"s", "s", "s", "s", "", "s", ""},
    .ld_rungs = rungs,
    .ld_nrungs = sizeof(rungs) / sizeof(*rungs),
};

static int tlb_fd = -1;

static long
faults(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return ru.ru_minflt + ru.ru_majflt;
}

/*
 * Returns a counter of the misses of loads in the data TLB, of this process,
 * user and kernel as in the source; or -1 and errno.
 */
static int
tlb_open(void)
{
	struct perf_event_attr pa = {
	    .type = PERF_TYPE_HW_CACHE,
	    .size = sizeof(pa),
	    .config = PERF_COUNT_HW_CACHE_DTLB |
		      PERF_COUNT_HW_CACHE_OP_READ << 8 |
		      PERF_COUNT_HW_CACHE_RESULT_MISS << 16,
	};

	return (int)syscall(
	    SYS_perf_event_open, &pa, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static double
tlb_misses(void)
{
	uint64_t n;

	return tlb_fd != -1 && read(tlb_fd, &n, sizeof(n)) == sizeof(n)
		   ? (double)n
		   : -1;
}

static void
explain(void)
{
	const char *why = errno == ENOENT
			      ? "no counter, as in most virtual machines"
			      : strerror(errno);

	snprintf(ladder.ld_notes, sizeof(ladder.ld_notes),
	    "`mmap` is not in the source: MAP_POPULATE moves the work there. "
	    "Faults and dTLB misses are counted during the memsets only%s%s. "
	    "Each rung is rehearsed: \"unrehearsed\" is the first touch that "
	    "came before, of memory that a hypervisor may first have to find "
	    "again (free page reporting).",
	    tlb_fd == -1 ? "; this machine counts no dTLB misses: " : "",
	    tlb_fd == -1 ? why : "");
}

/* What was written last is in every page, or the memsets cheated. */
static bool
holds(const char *p, size_t size, int value)
{
	size_t off;

	for (off = 0; off < size; off += 1024)
		if (p[off] != value)
			return false;
	return p[size - 1] == value;
}

/* 0, or -errno; -ERANGE: the pages are not of the kind that was asked for. */
static int
measure(const struct plan *pl, size_t size, struct result *re)
{
	double start = ladder_now();
	int i, error = 0;
	long before;
	double misses;
	char *p;

	p = huge_map(pl->pl_kind, pl->pl_populate, size);
	re->re_seconds[MMAP] = ladder_now() - start;
	if (p == NULL)
		return -errno;
	misses = tlb_misses();
	for (i = FIRST; i <= THIRD; i++) {
		before = faults();
		start = ladder_now();
		memset(p, 'a' + i, size);
		/* Else only the last memset would be worth keeping. */
		__asm__ volatile("" : : "r"(p) : "memory");
		re->re_seconds[i] = ladder_now() - start;
		re->re_faults[i] = faults() - before;
	}
	re->re_tlb = misses < 0 ? -1 : tlb_misses() - misses;
	if (!holds(p, size, 'a' + THIRD))
		errx(1, "the memory does not hold what was written");
	if (pl->pl_kind == PAGES_TRANSPARENT &&
	    huge_missing(p, size) > size / 10)
		error = -ERANGE;
	huge_unmap(p, huge_size(pl->pl_kind, size));
	return error;
}

static void
climb(const struct plan *pl, struct rung *ru, size_t size)
{
	struct result first, re;
	int i, error;

	if (ru->ru_why_not[0] != '\0')
		return;
	error = measure(pl, size, &first);
	if (error == 0)
		error = measure(pl, size, &re);
	if (error == -ERANGE)
		snprintf(ru->ru_why_not, sizeof(ru->ru_why_not),
		    "the kernel found too few huge pages");
	else if (error != 0)
		snprintf(ru->ru_why_not, sizeof(ru->ru_why_not), "mmap: %s",
		    strerror(-error));
	if (error != 0)
		return;
	for (i = 0; i <= MMAP; i++)
		ladder_add(ru, i, re.re_seconds[i]);
	ladder_add(ru, UNREHEARSED, first.re_seconds[FIRST]);
	ladder_add(ru, FAULTS,
	    (double)(re.re_faults[0] + re.re_faults[1] + re.re_faults[2]));
	if (re.re_tlb >= 0)
		ladder_add(ru, TLB, re.re_tlb);
}

static void
not_available(enum page_kind kind, const char *why)
{
	int i;

	for (i = 0; i < ladder.ld_nrungs; i++)
		if (plans[i].pl_kind == kind)
			snprintf(rungs[i].ru_why_not,
			    sizeof(rungs[i].ru_why_not), "%s", why);
}

/* For one rung: what lies in the pool the others cannot have. */
static bool
reserve(enum page_kind kind, size_t size)
{
	char words[sizeof(ladder.ld_huge)];
	bool gigantic = kind == PAGES_GIGANTIC;
	bool ok = gigantic ? huge_reserve_gigantic(size, words, sizeof(words))
			   : huge_reserve(size, words, sizeof(words));

	if (!ok)
		not_available(kind, words);
	if (!gigantic)
		memcpy(ladder.ld_huge, words, sizeof(words));
	return ok;
}

static void
run(size_t size, int rounds)
{
	char why[160];
	int i, round;

	if (huge_memory() < size + size / 4)
		errx(1, "less than %zu MiB available, try a smaller --size",
		    (size + size / 4) / MIB);
	if (!huge_transparent(why, sizeof(why)))
		not_available(PAGES_TRANSPARENT, why);
	tlb_fd = tlb_open();
	explain();
	for (round = 0; round < rounds; round++)
		for (i = 0; i < ladder.ld_nrungs; i++) {
			if (plans[i].pl_kind >= PAGES_HUGETLB &&
			    rungs[i].ru_why_not[0] == '\0' &&
			    !reserve(plans[i].pl_kind, size))
				continue;
			climb(&plans[i], &rungs[i], size);
			huge_release();
		}
	ladder_option(&ladder, "size", (double)size);
	ladder_option(&ladder, "rounds", rounds);
}

/* Twice: a sanitizer's shadow of the memory faults as well, but only once. */
static int
measure_again(const struct plan *pl, size_t size, struct result *re)
{
	int error = measure(pl, size, re);

	return error != 0 ? error : measure(pl, size, re);
}

/* A few faults are the program's own. */
static bool
near(long n, size_t expected)
{
	return n >= (long)expected && n < (long)expected + 8;
}

static void
test_small(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct result re;

	ladder_test(measure_again(&plans[0], size, &re) == 0 &&
			near(re.re_faults[FIRST], size / page),
	    "the first memset of small pages takes one fault a page");
	ladder_test(near(re.re_faults[SECOND] + re.re_faults[THIRD], 0),
	    "the second and third memset take none");
	ladder_test(measure_again(&plans[1], size, &re) == 0 &&
			near(re.re_faults[FIRST], 0),
	    "populated memory takes no faults");
}

/* With huge pages of this plan, of which `pages` hold `size` bytes. */
static void
test_huge(const char *name, bool (*may)(size_t, char *, size_t),
    const struct plan *plan, size_t size, size_t pages)
{
	struct result re;
	char words[160];

	if (!may(size, words, sizeof(words))) {
		ladder_skip(name, words);
		return;
	}
	ladder_test(measure_again(plan, size, &re) == 0 &&
			near(re.re_faults[FIRST], pages),
	    name);
	huge_release();
}

static void
test_transparent(size_t size)
{
	const char *name = "what is reported as transparent huge pages is huge";
	struct result re;
	char words[160];
	int error;

	if (!huge_transparent(words, sizeof(words))) {
		ladder_skip(name, words);
		return;
	}
	error = measure_again(&plans[2], size, &re);
	if (error == -ERANGE)
		ladder_skip(name, "the kernel found too few huge pages");
	else
		ladder_test(
		    error == 0 && near(re.re_faults[FIRST], size / huge_page()),
		    name);
}

static long
nr_hugepages(void)
{
	FILE *f = fopen("/proc/sys/vm/nr_hugepages", "re");
	long n = -1;

	if (f == NULL)
		return n;
	if (fscanf(f, "%ld", &n) != 1)
		n = -1;
	fclose(f);
	return n;
}

static void
test_restore(int sig, const char *name)
{
	size_t free_pages = 64; /* more than anyone left lying about */
	long before = nr_hugepages();
	char words[160];
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (!huge_reserve(
			free_pages * huge_page(), words, sizeof(words)) ||
		    nr_hugepages() == before)
			_exit(77);
		if (sig != 0)
			raise(sig);
		exit(0);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		ladder_skip(name, "no hugetlb pages could be made");
	else
		ladder_test(nr_hugepages() == before &&
				(sig == 0 ? WIFEXITED(status)
					  : WIFSIGNALED(status) &&
						WTERMSIG(status) == sig),
		    name);
}

static int
self_test(void)
{
	size_t size = 2 * huge_page();

	test_small(size);
	test_transparent(size);
	test_huge("a hugetlb page takes one fault", huge_reserve, &plans[3],
	    size, size / huge_page());
	test_huge("a page of 1 GiB takes one fault", huge_reserve_gigantic,
	    &plans[5], size, 1);
	test_restore(0, "nr_hugepages is restored at exit");
	test_restore(SIGINT, "nr_hugepages is restored on SIGINT");
	return ladder_tested();
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"size", required_argument, NULL, 's'},
	    {"rounds", required_argument, NULL, 'r'},
	    {"json", no_argument, NULL, 'j'},
	    {"self-test", no_argument, NULL, 't'}, {0}};
	size_t size = 1024 * MIB;
	int c, rounds = 5;
	bool json = false;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (c == 's')
			size = ladder_number("--size", optarg, MIB);
		else if (c == 'r')
			rounds = ladder_rounds(optarg);
		else if (c == 'j')
			json = true;
		else if (c == 't')
			return self_test();
		else
			errx(2, "usage: pages [--size BYTES] [--rounds N] "
				"[--json] [--self-test]");
	run(size, rounds);
	ladder_print(&ladder, json);
	return 0;
}
