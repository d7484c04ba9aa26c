/*
 * main: runs worlds, each in a process of its own, until the time is over or one fails.  A world that
 * fails is made smaller, and told.
 *
 *   sim [--seconds N] [--seed N [--order N] [--loops N] [--clients N] ... [--faults LIST]] [--story]
 *      [--only library|server]
 */
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/scene.h"

#define WORLD_SECONDS  60
#define SHRINK_SECONDS 30

static const char *const fault_names[FAULTS] = {"reclaim", "writers", "slow",
    "hang", "errors", "short", "resets", "stalls", "preempt", "memory",
    "threads", "lookups", "refused"};

/* Sizes that the command line sets; 0 leaves them to the seed. */
static struct limits {
	unsigned li_loops, li_clients, li_files, li_disks, li_requests,
	    li_order;
	unsigned li_faults;  /* bits that stay */
	unsigned li_flavour; /* plus 1 */
	unsigned li_paths;
} limits = {.li_faults = ~0U, .li_paths = ~0U};

static unsigned only =
    2; /* kind of worlds that run: 0 library, 1 server, 2 both */

static void
main_limit(unsigned *size, unsigned most)
{
	if (most != 0 && *size > most)
		*size = most;
}

/* Returns all of n kinds, or one of them. */
static unsigned
main_draw_bits(unsigned n)
{
	return world_once_in(2) ? 1U << world_below(n) : (1U << n) - 1;
}

static void
main_draw_kinds(void)
{
	static const unsigned reclaims[] = {100, 1000, 10000, 100000};

	plan.pl_caches = main_draw_bits(3);
	plan.pl_readers = main_draw_bits(3);
	plan.pl_sinks = world_once_in(2) ? 1 : 15;
	plan.pl_sizes = main_draw_bits(5);
	plan.pl_kinds = world_once_in(2) ? 1 : 15;
	plan.pl_reclaims = reclaims[world_below(COUNT(reclaims))];
	plan.pl_preempts = world_once_in(2) ? 60 : 600;
	plan.pl_pieces = world_once_in(2);
	plan.pl_early = world_once_in(3);
	if (world_once_in(4))
		plan.pl_requests = 40;
}

#define BIT(x) (1U << (x))

static void
main_draw_flavour(unsigned wanted)
{
	static const enum flavour flavours[] = {MIXED, MIXED, MIXED, POPULAR,
	    POPULAR, DROPS, DROPS, DROPS, STALLED, QUEUES, COLD};

	plan.pl_flavour = flavours[world_below(COUNT(flavours))];
	if (wanted != 0)
		plan.pl_flavour = (enum flavour)(wanted - 1);
	switch (plan.pl_flavour) {
	case POPULAR:
		plan.pl_readers = BIT(READ_FAST), plan.pl_sizes = BIT(2),
		plan.pl_kinds = BIT(EXT4);
		plan.pl_caches = 1, plan.pl_requests = 40, plan.pl_clients = 12,
		plan.pl_files = plan.pl_disks = 1;
		plan.pl_faults &= BIT(FAULT_PREEMPT) | BIT(FAULT_RESETS);
		plan.pl_faults |= BIT(FAULT_RECLAIM);
		break;
	case STALLED:
		plan.pl_readers = BIT(READ_FAST), plan.pl_sizes = BIT(4),
		plan.pl_kinds = BIT(EXT4), plan.pl_paths = 1;
		plan.pl_clients = 40, plan.pl_sinks = 1, plan.pl_files = 8,
		plan.pl_disks = 1, plan.pl_queue = 0;
		plan.pl_caches = 1, plan.pl_requests = 4, plan.pl_threads = 16;
		plan.pl_faults = BIT(FAULT_STALLS);
		break;
	case QUEUES:
		plan.pl_readers = BIT(READ_FAST),
		plan.pl_sizes = BIT(0) | BIT(4), plan.pl_kinds = BIT(NFS),
		plan.pl_paths = 1;
		plan.pl_clients = 30, plan.pl_files = 10, plan.pl_disks = 1,
		plan.pl_queue = 0, plan.pl_threads = 1 + world_below(2);
		plan.pl_sinks = 1, plan.pl_requests = 4,
		plan.pl_faults = BIT(FAULT_SLOW);
		break;
	case DROPS:
		plan.pl_readers = BIT(READ_FAST), plan.pl_sizes = BIT(2),
		plan.pl_kinds = BIT(EXT4),
		plan.pl_caches = BIT(1) | world_below(2);
		plan.pl_files = 12, plan.pl_disks = 1, plan.pl_clients = 12,
		plan.pl_loops = LOOPS_MAX,
		plan.pl_preempts = world_once_in(2) ? 8 : 30;
		plan.pl_faults &= BIT(FAULT_RESETS) | BIT(FAULT_WRITERS);
		plan.pl_faults |= BIT(FAULT_PREEMPT);
		break;
	case COLD:
		plan.pl_sizes = BIT(1), plan.pl_kinds = BIT(EXT4),
		plan.pl_files = 24, plan.pl_requests = 40, plan.pl_clients = 12;
		plan.pl_readers = BIT(READ_FAST), plan.pl_pieces = true;
		break;
	case MIXED:
		break;
	}
}

/* Draws sizes and faults from the seed alone. */
static void
main_draw(uint64_t seed, const struct limits *li)
{
	static const unsigned threads[] = {1, 1, 2, 3, 4, 16};
	unsigned i;

	plan = (struct plan){.pl_seed = seed, .pl_server = seed % 2 == 1};
	world_begin();
	plan.pl_loops = 1 + world_below(LOOPS_MAX);
	plan.pl_disks = 1 + world_below(DISKS_MAX);
	plan.pl_clients = 1 + world_below(world_once_in(4) ? 40 : 12);
	plan.pl_files = plan.pl_disks + world_below(8);
	plan.pl_requests = 1 + world_below(6);
	plan.pl_threads = threads[world_below(COUNT(threads))];
	plan.pl_queue = world_once_in(4) ? 2 + world_below(8) : 0;
	plan.pl_pct = world_once_in(3);
	plan.pl_paths = world_once_in(2) ? ~0U : 1;
	for (i = 0; i < FAULTS; i++)
		plan.pl_faults |=
		    (unsigned)world_once_in(
			i == FAULT_MEMORY || i == FAULT_THREADS ? 8 : 3)
		    << i;
	main_draw_kinds();
	main_draw_flavour(li->li_flavour);
	if (plan.pl_server) {
		/* More worlds of many small files run in a second than of few large ones. */
		if (!world_once_in(8))
			plan.pl_sizes = 1U << world_below(3) | 1;
		plan.pl_early = world_once_in(2);
		if (plan.pl_preempts < 60)
			plan.pl_preempts = 60;
		main_limit(&plan.pl_requests, 10);
	}
	main_limit(&plan.pl_loops, li->li_loops);
	main_limit(&plan.pl_clients, li->li_clients);
	main_limit(&plan.pl_disks, li->li_disks);
	main_limit(&plan.pl_requests, li->li_requests);
	main_limit(&plan.pl_files, li->li_files);
	if (plan.pl_files < plan.pl_disks)
		plan.pl_files = plan.pl_disks;
	plan.pl_faults &= li->li_faults;
	plan.pl_paths &= li->li_paths;
	plan.pl_order = li->li_order;
	world_begin();
}

static void
main_crashed(int number)
{
	world_fail("the program crashed: signal %d (%s)%s", number,
	    strsignal(number), number == SIGALRM ? ": endless loop" : "");
}

static void
main_catch(void)
{
	static char stack[65536];
	const stack_t ss = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction sa = {
	    .sa_handler = main_crashed, .sa_flags = SA_ONSTACK};
	static const int signals[] = {
	    SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
	unsigned i;

	sigaltstack(&ss, NULL);
	for (i = 0; i < COUNT(signals); i++)
		sigaction(signals[i], &sa, NULL);
	alarm(WORLD_SECONDS);
}

static void
main_run(uint64_t seed, const struct limits *li)
{
	main_draw(seed, li);
	machine_draw();
	disk_draw();
	main_catch();
	world_run(plan.pl_server ? served_main : scene_main, NULL);
}

/* Runs a world in a process of its own.  Returns true if it held. */
static bool
main_try(uint64_t seed, const struct limits *li, bool told)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	shared->sh_why[0] = '\0';
	pid = fork();
	if (pid == 0) {
		story_kept = told;
		main_run(seed, li);
		_exit(0);
	}
	if (pid == -1 || waitpid(pid, &status, 0) != pid) {
		perror("sim: fork");
		exit(2);
	}
	if (status != 0 && shared->sh_why[0] == '\0')
		snprintf(shared->sh_why, sizeof(shared->sh_why),
		    "the program ended with status %#x", (unsigned)status);
	return status == 0;
}

/* Returns the processor's time of all worlds, which is that of the clock on a quiet machine. */
static double
main_time(void)
{
	struct rusage ru;

	getrusage(RUSAGE_CHILDREN, &ru);
	return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
	       (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
}

/* ------------------------------------------------------------------ shrinking */

/* Copies the words of a failure that name its kind: those of other numbers are the same failure. */
static void
main_kind(char *kind, size_t size)
{
	const char *p = shared->sh_why;
	size_t n = 0;

	for (; *p != '\0' && n + 1 < size; p++)
		if (*p < '0' || *p > '9')
			kind[n++] = *p;
	kind[n] = '\0';
}

static double shrink_until;
static char failure[48];

/* Keeps a smaller world if it still fails, in one of a few orders. */
static bool
main_shrink_to(uint64_t seed, struct limits *li, struct limits smaller)
{
	char kind[sizeof(failure)];
	unsigned i;

	for (i = 0; i < 8 && main_time() < shrink_until; i++) {
		smaller.li_order = i;
		if (main_try(seed, &smaller, false))
			continue;
		main_kind(kind, sizeof(kind));
		if (strcmp(kind, failure) != 0)
			continue;
		*li = smaller;
		return true;
	}
	return false;
}

static bool
main_shrink_size(uint64_t seed, struct limits *li, size_t field, unsigned now)
{
	struct limits smaller;
	unsigned n;
	bool any = false;

	for (n = now / 2; n >= 1 && now > 1;
	     n = now > n + 1 ? (now + n) / 2 : 0) {
		smaller = *li;
		*(unsigned *)(void *)((char *)&smaller + field) = n;
		if (!main_shrink_to(seed, li, smaller))
			break;
		now = n, any = true;
		n = 0;
	}
	return any;
}

static void
main_shrink(uint64_t seed, struct limits *li)
{
	struct limits smaller;
	bool any = true;
	unsigned i, rounds;

	for (rounds = 0; any && rounds < 4; rounds++) {
		any = false;
		main_draw(seed, li);
		for (i = 0; i < FAULTS; i++) {
			smaller = *li;
			smaller.li_faults &= ~(1U << i);
			if ((plan.pl_faults & li->li_faults & 1U << i) != 0)
				any = main_shrink_to(seed, li, smaller) || any;
		}
		main_draw(seed, li);
		any =
		    main_shrink_size(seed, li,
			offsetof(struct limits, li_clients), plan.pl_clients) ||
		    any;
		any = main_shrink_size(seed, li,
			  offsetof(struct limits, li_requests),
			  plan.pl_requests) ||
		      any;
		any = main_shrink_size(seed, li,
			  offsetof(struct limits, li_files), plan.pl_files) ||
		      any;
		any = main_shrink_size(seed, li,
			  offsetof(struct limits, li_loops), plan.pl_loops) ||
		      any;
		any = main_shrink_size(seed, li,
			  offsetof(struct limits, li_disks), plan.pl_disks) ||
		      any;
	}
}

static void
main_print_faults(unsigned faults)
{
	const char *comma = "";
	unsigned i;

	printf(" --faults ");
	for (i = 0; i < FAULTS; i++)
		if ((faults >> i & 1) != 0) {
			printf("%s%s", comma, fault_names[i]);
			comma = ",";
		}
	if (*comma == '\0')
		printf("none");
}

static void
main_tell(uint64_t seed, const struct limits *li)
{
	main_draw(seed, li);
	main_try(seed, li, true);
	printf("\nsim: seed %llu failed: %s\nsim: smaller: make sim SEED=%llu "
	       "ARGS=\"--order %u --loops %u --clients %u --requests %u "
	       "--files %u --disks %u",
	    (unsigned long long)seed, shared->sh_why, (unsigned long long)seed,
	    plan.pl_order, plan.pl_loops, plan.pl_clients, plan.pl_requests,
	    plan.pl_files, plan.pl_disks);
	main_print_faults(plan.pl_faults);
	printf("\"\n");
}

/* ----------------------------------------------------------------------- main */

static unsigned
main_faults_of(char *list)
{
	unsigned i, bits = 0;
	char *name;

	for (name = strtok(list, ","); name != NULL; name = strtok(NULL, ","))
		for (i = 0; i < FAULTS; i++)
			if (strcmp(name, fault_names[i]) == 0)
				bits |= 1U << i;
	return bits;
}

/* Addresses must be the same in each run: hashes may depend on them. */
static void
main_fix_addresses(char **argv)
{
	int was = personality(0xffffffff);

	if (was == -1 || (was & ADDR_NO_RANDOMIZE) != 0 ||
	    personality((unsigned long)was | ADDR_NO_RANDOMIZE) == -1)
		return;
	execv("/proc/self/exe", argv);
}

static void
main_summary(uint64_t first, const uint64_t n[2], double seconds)
{
	printf(
	    "sim: seeds from %llu: %llu worlds of the library and %llu of the "
	    "server in %.1f s, %.1f hours of virtual time, %.1f GB, %.1f "
	    "million calls\n",
	    (unsigned long long)first, (unsigned long long)n[0],
	    (unsigned long long)n[1], seconds,
	    (double)shared->sh_virtual / 3.6e6, (double)shared->sh_bytes / 1e9,
	    (double)shared->sh_steps / 1e6);
}

static int
main_failed(uint64_t seed, bool shrinks, uint64_t n, double seconds)
{
	struct limits li = limits;

	printf("sim: seed %llu failed: %s (after %llu seeds, %.1f s)\n",
	    (unsigned long long)seed, shared->sh_why, (unsigned long long)n,
	    seconds);
	if (!shrinks)
		return 1;
	main_kind(failure, sizeof(failure));
	shrink_until = main_time() + SHRINK_SECONDS;
	main_shrink(seed, &li);
	main_tell(seed, &li);
	return 1;
}

/* Seeds of both kinds of worlds, so that each has half of the time. */
static int
main_seeds(uint64_t first, double seconds, bool shrinks, bool table)
{
	double begin = main_time(), before, used[2] = {0};
	uint64_t n[2] = {0}, seed;
	unsigned kind;

	while (main_time() < begin + seconds) {
		before = main_time();
		kind = only != 2 ? only : used[1] < used[0];
		seed = first + (first % 2 != kind) + 2 * n[kind]++;
		if (!main_try(seed, &limits, false))
			return main_failed(
			    seed, shrinks, n[0] + n[1], main_time() - begin);
		used[kind] += main_time() - before;
	}
	if (table)
		cover_print();
	main_summary(first, n, main_time() - begin);
	return 0;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {{"seed", 1, NULL, 's'},
	    {"first", 1, NULL, 'f'}, {"seconds", 1, NULL, 't'},
	    {"order", 1, NULL, 'o'}, {"loops", 1, NULL, 'l'},
	    {"clients", 1, NULL, 'c'}, {"files", 1, NULL, 'n'},
	    {"disks", 1, NULL, 'd'}, {"requests", 1, NULL, 'r'},
	    {"faults", 1, NULL, 'F'}, {"paths", 1, NULL, 'P'},
	    {"flavour", 1, NULL, 'V'}, {"story", 0, NULL, 'S'},
	    {"only", 1, NULL, 'O'}, {"quick", 0, NULL, 'q'},
	    {"no-table", 0, NULL, 'T'}, {NULL, 0, NULL, 0}};
	uint64_t first = 1;
	double seconds = 20;
	bool told = false, one = false, shrinks = true, table = true;
	int c;

	main_fix_addresses(argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 's':
			first = strtoull(optarg, NULL, 0), one = true;
			break;
		case 'f':
			first = strtoull(optarg, NULL, 0);
			break;
		case 't':
			seconds = strtod(optarg, NULL);
			break;
		case 'o':
			limits.li_order = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'l':
			limits.li_loops = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'c':
			limits.li_clients = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'n':
			limits.li_files = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'd':
			limits.li_disks = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'r':
			limits.li_requests = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'F':
			limits.li_faults = main_faults_of(optarg);
			break;
		case 'P':
			limits.li_paths = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'V':
			limits.li_flavour =
			    1 + (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'O':
			only = strcmp(optarg, "server") == 0;
			break;
		case 'S':
			told = true;
			break;
		case 'q':
			shrinks = false;
			break;
		case 'T':
			table = false;
			break;
		default:
			return 2;
		}
	if (told) {
		main_try(first, &limits, true);
		printf("sim: seed %llu: %s\n", (unsigned long long)first,
		    shared->sh_why[0] == '\0' ? "holds" : shared->sh_why);
		return shared->sh_why[0] != '\0';
	}
	if (one && !main_try(first, &limits, false))
		return main_failed(first, shrinks, 1, main_time());
	return one ? 0 : main_seeds(first, seconds, shrinks, table);
}
