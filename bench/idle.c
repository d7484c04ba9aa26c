/*
 * idle: a great many connections that are kept, each after one request and its
 * answer.  When all are there it says so in a line; then it counts those that
 * the server closes.  Nothing is kept for a connection but its descriptor, and
 * as a process has only so many of those there are several.  Linux.
 */
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client.h"

#define EVENTS	    256
#define STARTING    256	  /* under way at a time: less than any backlog */
#define PER_SOURCE  10000 /* connections: an address has 28232 ports */
#define FIRST	    2	  /* 127.0.0.2; the first is for others */
#define DESCRIPTORS 16	  /* of a process, beside its connections' */
#define PROCESSES   64	  /* each has one connection under way at least */
#define TURN	    100	  /* ms */
#define IDLE	    NULL  /* in place of a slot */

/* A connection until it has its answer. */
struct slot {
	int sl_fd; /* -1: free */
	bool sl_sent;
	struct response sl_response;
};

/* What a process does; in memory that it shares with the first one. */
struct share {
	unsigned sh_n, sh_starting;
	pid_t sh_pid;
	/* the last is written by the process, ... */
	unsigned sh_source;
	int sh_error; /* of the first connection that failed */
	struct tally sh_tally;
	atomic_bool sh_settled; /* ... and read when this is set */
	atomic_uint sh_held, sh_lost;
};

struct idle {
	unsigned i_n, i_nshares;
	double i_seconds, i_timeout; /* from the line on; until then */
	struct targets i_targets;
	struct share *i_shares;
	uint64_t i_start, i_ready; /* ns; i_ready 0: not yet */

	/* of each process */
	struct share *i_mine;
	int i_epoll;
	unsigned i_begun, i_done;
	struct slot i_slots[STARTING];
};

static void
usage(void)
{
	fputs("usage: idle [--connections N] [--seconds S] [--timeout S] URL\n",
	    stderr);
	exit(2);
}

/* ------------------------------------------------------ one of the processes */

static void
watch(struct idle *i, int op, int fd, uint32_t events, struct slot *sl)
{
	struct epoll_event ev = {.events = events};

	/* Of an idle one nothing is known but this. */
	if (sl == IDLE)
		ev.data.u64 = (uint64_t)fd << 1 | 1;
	else
		ev.data.ptr = sl;
	if (epoll_ctl(i->i_epoll, op, fd, &ev) == -1)
		err(1, "epoll_ctl");
}

static void
failed(struct idle *i, struct slot *sl, enum failure why, int error)
{
	struct share *sh = i->i_mine;

	sh->sh_tally.ta_failures[why]++;
	if (sh->sh_error == 0)
		sh->sh_error = error;
	if (sl->sl_fd >= 0)
		close(sl->sl_fd);
	sl->sl_fd = -1;
	i->i_done++;
}

/* So early that the ports of an address are not used up, which makes it slow. */
static unsigned
source_of(const struct idle *i, unsigned nth)
{
	unsigned before = 0;

	for (const struct share *sh = i->i_shares; sh < i->i_mine; sh++)
		before += sh->sh_n;
	return FIRST + (before + nth) / PER_SOURCE;
}

static void
begin(struct idle *i, struct slot *sl)
{
	struct share *sh = i->i_mine;
	unsigned source = source_of(i, i->i_begun++);

	if (sh->sh_source < source)
		sh->sh_source = source;
	sl->sl_fd = client_connect_from(&i->i_targets, 0, &sh->sh_source);
	sl->sl_sent = false;
	if (sl->sl_fd < 0)
		failed(i, sl, FAILURE_CONNECT, -sl->sl_fd);
	else
		watch(i, EPOLL_CTL_ADD, sl->sl_fd, EPOLLOUT, sl);
}

static void
begin_some(struct idle *i)
{
	struct share *sh = i->i_mine;

	for (unsigned n = 0; n < sh->sh_starting && i->i_begun < sh->sh_n; n++)
		if (i->i_slots[n].sl_fd < 0)
			begin(i, &i->i_slots[n]);
}

static void
ask(struct idle *i, struct slot *sl)
{
	const struct target *t =
	    &i->i_targets.ts_list[targets_next(&i->i_targets)];
	int error = client_connected(sl->sl_fd);

	sl->sl_sent = true;
	if (error != 0)
		failed(i, sl, FAILURE_CONNECT, error);
	else if (client_send(sl->sl_fd, t, &sl->sl_response) != FAILURE_NONE)
		failed(i, sl, FAILURE_WRITE, errno);
	else
		watch(i, EPOLL_CTL_MOD, sl->sl_fd, EPOLLIN, sl);
}

static void
answered(struct idle *i, struct slot *sl)
{
	struct share *sh = i->i_mine;

	sh->sh_tally.ta_statuses[sl->sl_response.r_status]++;
	if (sl->sl_response.r_close) {
		failed(i, sl, FAILURE_CLOSED, 0);
		return;
	}
	watch(i, EPOLL_CTL_MOD, sl->sl_fd, EPOLLIN | EPOLLRDHUP, IDLE);
	atomic_fetch_add(&sh->sh_held, 1);
	sl->sl_fd = -1;
	i->i_done++;
}

static void
take(struct idle *i, struct slot *sl)
{
	enum failure why;
	struct chunk ch;

	why = client_recv(sl->sl_fd, &sl->sl_response, SIZE_MAX, true, &ch);
	if (why == FAILURE_AGAIN)
		return;
	if (why != FAILURE_NONE)
		failed(i, sl, why, why == FAILURE_READ ? errno : 0);
	else if (sl->sl_response.r_state == RESPONSE_DONE)
		answered(i, sl);
}

static void
lose(struct idle *i, int fd)
{
	close(fd);
	atomic_fetch_sub(&i->i_mine->sh_held, 1);
	atomic_fetch_add(&i->i_mine->sh_lost, 1);
}

static void
on_event(struct idle *i, const struct epoll_event *ev)
{
	struct slot *sl = ev->data.ptr;

	if (ev->data.u64 & 1)
		lose(i, (int)(ev->data.u64 >> 1));
	else if (!sl->sl_sent)
		ask(i, sl);
	else
		take(i, sl);
}

/* What is not there by now does not come. */
static void
give_up(struct idle *i)
{
	struct share *sh = i->i_mine;

	for (unsigned n = 0; n < sh->sh_starting; n++)
		if (i->i_slots[n].sl_fd >= 0)
			failed(i, &i->i_slots[n], FAILURE_TIMEOUT, 0);
	sh->sh_tally.ta_failures[FAILURE_UNSENT] += sh->sh_n - i->i_begun;
	i->i_begun = i->i_done = sh->sh_n;
}

static void
settle(struct idle *i)
{
	struct share *sh = i->i_mine;
	uint64_t limit = (uint64_t)(i->i_timeout * 1e9);

	if (atomic_load(&sh->sh_settled))
		return;
	if (client_now() - i->i_start > limit)
		give_up(i);
	if (i->i_done == sh->sh_n)
		atomic_store(&sh->sh_settled, true);
}

/* Until it is killed: all that it knows is in i_mine. */
_Noreturn static void
process(struct idle *i)
{
	struct epoll_event evs[EVENTS];
	int n;

	client_descriptors(i->i_mine->sh_n + DESCRIPTORS);
	i->i_epoll = epoll_create1(EPOLL_CLOEXEC);
	if (i->i_epoll == -1)
		err(1, "epoll");
	for (n = 0; n < STARTING; n++)
		i->i_slots[n].sl_fd = -1;
	for (;;) {
		begin_some(i);
		settle(i);
		n = epoll_wait(i->i_epoll, evs, EVENTS,
		    atomic_load(&i->i_mine->sh_settled) ? -1 : TURN);
		if (n == -1 && errno != EINTR)
			err(1, "epoll_wait");
		for (int k = 0; k < n; k++)
			on_event(i, &evs[k]);
	}
}

/* ------------------------------------------------------------- the first one */

static void
divide(struct idle *i)
{
	struct rlimit rl;
	unsigned n = i->i_n, each;

	if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
		err(1, "getrlimit");
	if (rl.rlim_max < DESCRIPTORS + i->i_n / PROCESSES + 1)
		errx(1,
		    "%u connections need %u descriptors in each of %u "
		    "processes, the limit (ulimit -Hn) is lower",
		    n, DESCRIPTORS + n / PROCESSES + 1, PROCESSES);
	each = (unsigned)(rl.rlim_max - DESCRIPTORS);
	if (rl.rlim_max - DESCRIPTORS > n)
		each = n;
	i->i_nshares = (n + each - 1) / each;
	i->i_shares = mmap(NULL, i->i_nshares * sizeof(*i->i_shares),
	    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (i->i_shares == MAP_FAILED)
		err(1, NULL);
	for (unsigned k = 0; k < i->i_nshares; k++) {
		i->i_shares[k].sh_n = n < each ? n : each;
		i->i_shares[k].sh_starting = STARTING / i->i_nshares;
		n -= i->i_shares[k].sh_n;
	}
}

static void
start(struct idle *i)
{
	pid_t self = getpid(), pid;

	i->i_start = client_now();
	for (unsigned k = 0; k < i->i_nshares; k++) {
		i->i_mine = &i->i_shares[k];
		pid = fork();
		if (pid == -1)
			err(1, "fork");
		if (pid != 0) {
			i->i_mine->sh_pid = pid;
			continue;
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self)
			_exit(1);
		process(i);
	}
}

static void
check_processes(void)
{
	/* It has said why. */
	if (waitpid(-1, NULL, WNOHANG) > 0)
		exit(1);
}

static bool
settled(const struct idle *i)
{
	for (unsigned k = 0; k < i->i_nshares; k++)
		if (!atomic_load(&i->i_shares[k].sh_settled))
			return false;
	return true;
}

static void
add(struct share *sum, const struct share *sh)
{
	sum->sh_held += sh->sh_held;
	sum->sh_lost += sh->sh_lost;
	if (sum->sh_source < sh->sh_source)
		sum->sh_source = sh->sh_source;
	if (sum->sh_error == 0)
		sum->sh_error = sh->sh_error;
	for (int k = 0; k < FAILURES; k++)
		sum->sh_tally.ta_failures[k] += sh->sh_tally.ta_failures[k];
	for (int k = 0; k < 1000; k++)
		sum->sh_tally.ta_statuses[k] += sh->sh_tally.ta_statuses[k];
}

static void
print(const struct idle *i, const char *key, uint64_t since)
{
	struct share sum = {0};

	for (unsigned k = 0; k < i->i_nshares; k++)
		add(&sum, &i->i_shares[k]);
	printf("{\"%s\": %u, \"connections\": %u, \"lost\": %u, "
	       "\"seconds\": %.3f, \"processes\": %u, \"source_addresses\": "
	       "%u, \"first_error\": ",
	    key, sum.sh_held, i->i_n, sum.sh_lost,
	    (double)(client_now() - since) / 1e9, i->i_nshares,
	    sum.sh_source < FIRST ? 1 : sum.sh_source - FIRST + 1);
	if (sum.sh_error != 0)
		printf("\"%s\", ", strerror(sum.sh_error));
	else
		printf("null, ");
	tally_print(stdout, &sum.sh_tally);
	printf("}\n");
	fflush(stdout);
}

static void
hold(struct idle *i)
{
	static const struct timespec turn = {0, TURN * 1000000};
	uint64_t length = (uint64_t)(i->i_seconds * 1e9);

	while (!client_stopped &&
	       (i->i_ready == 0 || client_now() - i->i_ready < length)) {
		nanosleep(&turn, NULL);
		check_processes();
		if (i->i_ready != 0 || !settled(i))
			continue;
		i->i_ready = client_now();
		print(i, "ready", i->i_start);
	}
}

/* All of them at once, however many there are. */
static void
finish(struct idle *i)
{
	print(i, "held", i->i_ready != 0 ? i->i_ready : i->i_start);
	for (unsigned k = 0; k < i->i_nshares; k++)
		kill(i->i_shares[k].sh_pid, SIGKILL);
	for (unsigned k = 0; k < i->i_nshares; k++)
		waitpid(i->i_shares[k].sh_pid, NULL, 0);
	munmap(i->i_shares, i->i_nshares * sizeof(*i->i_shares));
	targets_free(&i->i_targets);
}

static void
parse(struct idle *i, int argc, char **argv)
{
	static const struct option options[] = {{"connections", 1, NULL, 'c'},
	    {"seconds", 1, NULL, 's'}, {"timeout", 1, NULL, 't'}, {0}};
	const char *name;
	int c, nth;

	while ((c = getopt_long(argc, argv, "", options, &nth)) != -1) {
		name = c == '?' ? "" : options[nth].name;
		if (c == 'c')
			i->i_n = (unsigned)client_number(name, optarg, 1, 1e6);
		else if (c == 's')
			i->i_seconds = client_number(name, optarg, 0, 1e6);
		else if (c == 't')
			i->i_timeout = client_number(name, optarg, 0.001, 1e6);
		else
			usage();
	}
	if (argc - optind != 1)
		usage();
	targets_load(&i->i_targets, argv[optind], NULL);
}

int
main(int argc, char **argv)
{
	static struct idle i = {
	    .i_n = 1000, .i_seconds = 1e6, .i_timeout = 120};

	parse(&i, argc, argv);
	divide(&i);
	start(&i);
	client_catch_signals();
	hold(&i);
	finish(&i);
	return 0;
}
