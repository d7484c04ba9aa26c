/*
 * pipes: how fast a pipe is when less and less is copied and waited for, from
 * write(2) and read(2) to vmsplice(2) of huge pages and splice(2), both busy.
 * The two cores are the first that it may use: choose others with taskset(1).
 */
#include <sys/mman.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "huge.h"
#include "pair.h"
#include "report.h"

#define KIB    ((size_t)1024)
#define MEMORY ((size_t)512 << 20) /* bytes that are read at a time */

static const struct plan plans[] = {
    {false, false, false, false, false},
    {true, false, false, false, false},
    {true, true, false, false, true},
    {true, true, false, false, false},
    {true, true, true, false, false},
    {true, true, true, true, false},
};

static struct rung rungs[] = {
    {.ru_name = "`write`, `read`", .ru_sources = {3.7}},
    {.ru_name = "`vmsplice`, `read`", .ru_sources = {12.7}},
    {.ru_name = "`vmsplice`, `splice`, untouched pages", .ru_sources = {25.0}},
    {.ru_name = "the same, pages touched first", .ru_sources = {32.8}},
    {.ru_name = "the same from huge pages", .ru_sources = {51.0}},
    {.ru_name = "the same in a busy loop", .ru_sources = {62.5}},
};

/* Rates of the article, GiB/s: its sysbench run, and its last step. */
static struct reference references[] = {
    {.rf_name = "memory, read by one thread", .rf_source = 15.55},
    {.rf_name = "the source's last step", .rf_source = 62.5},
};

static struct ladder ladder = {
    .ld_name = "pipes",
    .ld_source = "i7-8550U, Linux 5.17, buffer of 256 KiB",
    .ld_measures = {"through the pipe", "switches"},
    .ld_units = {"GiB/s", "per GiB"},
    .ld_rungs = rungs,
    .ld_nrungs = sizeof(rungs) / sizeof(*rungs),
    .ld_references = references,
    .ld_nreferences = sizeof(references) / sizeof(*references),
};

/* Returns the bytes per second of reads by 8 bytes, as sysbench makes them. */
static double
memory_rate(size_t size)
{
	const volatile uint64_t *p = huge_map(PAGES_SMALL, true, size);
	size_t i, n = size / sizeof(*p);
	double start, seconds;

	if (p == NULL)
		err(1, "mmap");
	for (i = 0; i < n; i += 64)
		(void)p[i];
	start = ladder_now();
	for (i = 0; i < n; i += 8) {
		(void)p[i], (void)p[i + 1], (void)p[i + 2], (void)p[i + 3];
		(void)p[i + 4], (void)p[i + 5], (void)p[i + 6], (void)p[i + 7];
	}
	seconds = ladder_now() - start;
	huge_unmap((void *)(uintptr_t)p, size);
	return (double)size / seconds;
}

/* The first two that we may use; the same one twice if there is no other. */
static void
choose_cpus(int cpus[2])
{
	cpu_set_t set;
	int cpu, n = 0;

	if (sched_getaffinity(0, sizeof(set), &set) == -1)
		err(1, "sched_getaffinity");
	for (cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET((size_t)cpu, &set))
			cpus[n++] = cpu;
	if (n == 1)
		cpus[1] = cpus[0];
}

static void
not_available(const char *why, bool (*needs)(const struct plan *))
{
	int i;

	for (i = 0; i < ladder.ld_nrungs; i++)
		if (needs(&plans[i]))
			snprintf(rungs[i].ru_why_not,
			    sizeof(rungs[i].ru_why_not), "%s", why);
}

static bool
needs_huge(const struct plan *pl)
{
	return pl->pl_huge;
}

static bool
needs_two_cpus(const struct plan *pl)
{
	return pl->pl_busy;
}

/* As the source, transparent ones; where they are off, reserved ones. */
static bool
choose_huge(struct job *jb)
{
	char why[80];

	if (huge_transparent(why, sizeof(why))) {
		jb->jb_huge = PAGES_TRANSPARENT;
		snprintf(ladder.ld_huge, sizeof(ladder.ld_huge),
		    "transparent, by madvise");
		return true;
	}
	jb->jb_huge = PAGES_HUGETLB;
	return huge_reserve(2 * (jb->jb_size + huge_page()), ladder.ld_huge,
	    sizeof(ladder.ld_huge));
}

static void
climb(const struct plan *pl, struct rung *ru, struct job *jb)
{
	double rate, switches;

	if (ru->ru_why_not[0] != '\0')
		return;
	rate = pair_measure(pl, jb, &switches);
	if (rate > 0) {
		ladder_add(ru, 0, rate / (1 << 30));
		ladder_add(ru, 1, switches * (1 << 30));
	} else {
		snprintf(ru->ru_why_not, sizeof(ru->ru_why_not), "%s",
		    rate < 0 ? pair_why() : "too few bytes came through");
	}
}

/* Climbs the rung `only`, from 1 on, or all of them if it is 0. */
static void
run(struct job *jb, int rounds, int only)
{
	int i, round;

	if (!choose_huge(jb))
		not_available(ladder.ld_huge, needs_huge);
	if (jb->jb_cpus[0] == jb->jb_cpus[1])
		not_available("there is only one CPU", needs_two_cpus);
	pair_pin(jb->jb_cpus[1]);
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < ladder.ld_nrungs; i++)
			if (only == 0 || only == i + 1)
				climb(&plans[i], &rungs[i], jb);
		if (only == 0)
			ladder_note(&references[0].rf_measure,
			    memory_rate(MEMORY) / (1 << 30));
	}
	snprintf(ladder.ld_notes, sizeof(ladder.ld_notes),
	    "From the third rung on nobody reads the bytes: references to "
	    "pages pass through the pipe, to /dev/null. Pages that were never "
	    "written to have one page of zeros in their place, which the "
	    "kernel looks up the slow way each time.%s",
	    jb->jb_pipe <= jb->jb_size / 2
		? ""
		: " The pipe holds more than half the buffer: a writer that "
		  "changed its buffer would overwrite bytes not yet read.");
	ladder_option(&ladder, "size", (double)jb->jb_size);
	ladder_option(&ladder, "pipe_size", (double)jb->jb_pipe);
	ladder_option(&ladder, "seconds", jb->jb_seconds);
	ladder_option(&ladder, "rounds", rounds);
	ladder_option(&ladder, "writer_cpu", jb->jb_cpus[0]);
	ladder_option(&ladder, "reader_cpu", jb->jb_cpus[1]);
}

static bool
numbered(int fd, uint64_t len)
{
	const uint64_t *words;
	uint64_t i;
	bool same = true;

	if (lseek(fd, 0, SEEK_END) != (off_t)len)
		return false;
	words = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	if (words == MAP_FAILED)
		err(1, "mmap");
	for (i = 0; same && i < len / sizeof(*words); i++)
		same = words[i] == i;
	munmap((void *)(uintptr_t)words, len);
	return same;
}

/* The halves are reused as soon as they may be, with other bytes. */
static int
self_test(struct job *jb)
{
	char name[128];
	double rate, switches;
	int i;

	jb->jb_size = 64 * KIB;
	jb->jb_pipe = 32 * KIB;
	jb->jb_seconds = 0;
	jb->jb_limit = 1024 * KIB;
	jb->jb_numbered = jb->jb_keep = true;
	if (!choose_huge(jb))
		not_available(ladder.ld_huge, needs_huge);
	for (i = 0; i < ladder.ld_nrungs; i++) {
		snprintf(name, sizeof(name), "every byte arrives in order: %s",
		    rungs[i].ru_name);
		jb->jb_sink = memfd_create("sink", MFD_CLOEXEC);
		if (jb->jb_sink == -1)
			err(1, "memfd_create");
		rate = rungs[i].ru_why_not[0]
			   ? -1
			   : pair_measure(&plans[i], jb, &switches);
		if (rate < 0)
			ladder_skip(name, rungs[i].ru_why_not[0]
					      ? rungs[i].ru_why_not
					      : pair_why());
		else
			ladder_test(numbered(jb->jb_sink, jb->jb_limit), name);
		close(jb->jb_sink);
	}
	return ladder_tested();
}

static double
parse_seconds(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end != '\0' || !(seconds > 0 && seconds < 3600))
		errx(2, "--seconds %s: not above 0 and below 3600", text);
	return seconds;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"size", required_argument, NULL, 's'},
	    {"pipe-size", required_argument, NULL, 'p'},
	    {"seconds", required_argument, NULL, 'd'},
	    {"rounds", required_argument, NULL, 'r'},
	    {"only", required_argument, NULL, 'o'},
	    {"json", no_argument, NULL, 'j'},
	    {"self-test", no_argument, NULL, 't'}, {0}};
	struct job job = {
	    .jb_size = 256 * KIB, .jb_seconds = 0.5, .jb_limit = UINT64_MAX};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	bool json = false, test = false;
	int c, rounds = 7, only = 0;

	choose_cpus(job.jb_cpus);
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (c == 's')
			job.jb_size = ladder_number("--size", optarg, page);
		else if (c == 'p')
			job.jb_pipe =
			    ladder_number("--pipe-size", optarg, page);
		else if (c == 'd')
			job.jb_seconds = parse_seconds(optarg);
		else if (c == 'r')
			rounds = ladder_rounds(optarg);
		else if (c == 'o')
			only = (int)ladder_number("--only", optarg, 1);
		else if (c == 'j')
			json = true;
		else if (c == 't')
			test = true;
		else
			errx(2,
			    "usage: pipes [--size BYTES] [--pipe-size BYTES]"
			    " [--seconds S] [--rounds N] [--only RUNG] "
			    "[--json] [--self-test]");
	if ((job.jb_size != page && job.jb_size % (2 * page) != 0) ||
	    job.jb_size > 1 << 30)
		errx(2,
		    "--size: a page, or two halves of whole pages, at most 1g");
	if (only > ladder.ld_nrungs)
		errx(2, "--only: there are %d rungs", ladder.ld_nrungs);
	if (job.jb_pipe == 0)
		job.jb_pipe = job.jb_size / 2;
	job.jb_sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (job.jb_sink == -1)
		err(1, "/dev/null");
	if (test)
		return self_test(&job);
	run(&job, rounds, only);
	ladder_print(&ladder, json);
	return 0;
}
