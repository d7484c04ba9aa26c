/*
 * slow: thousands of clients on thin lines.  Each fetches targets one after the
 * other and takes no more than its rate out of a small socket buffer, so that
 * the rest waits in the server; with a burst it is quick at first, and so trusted by
 * the server's kernel.  A client that gets less than half of its rate
 * in any 5 s is starved.  Linux.
 */
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"

#define EVENTS	    256
#define SLOTS	    10		 /* a client has its tick in one of them, ... */
#define SLOT	    (NSEC / 100) /* ... hence every 100 ms */
#define CREDIT	    0.5		 /* s; more is lost, as on a line */
#define STRETCH	    5		 /* s */
#define STARTS	    64		 /* connects in a slot, and under way: ... */
#define STARTING    256		 /* ... less than any backlog */
#define BACK_OFF    NSEC	 /* after an error or a 5xx */
#define DESCRIPTORS 16		 /* beside the clients' */

enum slow_state { SLOW_QUEUED, SLOW_CONNECTING, SLOW_READING };

struct slow {
	TAILQ_ENTRY(slow) s_entry; /* of l_queue */
	bool s_come;
	enum slow_state s_state;
	int s_fd;
	size_t s_target;
	uint64_t s_not_before;	   /* connecting, ns */
	uint64_t s_up;		   /* first connected, ns; 0: never */
	uint64_t s_tick;	   /* the last, ns */
	double s_credit;	   /* bytes */
	double s_burst;		   /* of it, what is left of the burst */
	uint64_t s_seconds;	   /* since s_up, complete ones */
	uint64_t s_bytes[STRETCH]; /* of the last seconds, in turn */
	bool s_starved;
	struct response s_response;
};

struct file {
	const char *f_data; /* NULL: not mapped yet, or empty */
	size_t f_len;
};

struct lab {
	unsigned l_n;
	double l_rate, l_seconds;
	double l_burst;	       /* bytes of each connection, at any speed */
	double l_ramp_seconds; /* over which they come; 0: as fast as may be */
	double l_quantum;      /* bytes: no read for less */
	int l_rcvbuf;
	bool l_in_order;    /* else targets are drawn */
	const char *l_root; /* NULL: not verified */
	struct targets l_targets;
	struct file *l_files; /* as l_targets */

	int l_epoll, l_timer;
	struct slow *l_clients;
	TAILQ_HEAD(, slow) l_queue; /* to be connected */
	unsigned l_source, l_starting, l_slot;
	/* addresses 127.0.0.first and later; first 0: any */
	unsigned l_first, l_sources;
	unsigned l_come; /* that have connected once, or tried to */
	unsigned l_up, l_up_max, l_starved;
	uint64_t l_starved_seconds; /* ends of stretches, all clients */
	uint64_t l_start, l_ramp;   /* ns; from start until all were up */
	uint64_t l_bytes, l_body, l_completed, l_late_max;
	uint64_t *l_series, l_series_n; /* bytes in each second */
	struct tally l_tally;
};

static void
usage(void)
{
	fputs("usage: slow [--clients N] [--rate BYTES/S] [--seconds S]\n"
	      "    [--burst BYTES] [--ramp S] [--rcvbuf BYTES] [--urls FILE] "
	      "[--seed N | --in-order]\n"
	      "    [--source N [--sources N]]\n"
	      "    [--verify --root DIR] [URL]\n",
	    stderr);
	exit(2);
}

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static char *
local_path(const char *root, const char *target)
{
	char *path = malloc(strlen(root) + strlen(target) + 1), *out;

	if (path == NULL)
		err(1, NULL);
	out = stpcpy(path, root);
	for (; *target != '\0' && *target != '?'; target++) {
		*out = *target;
		if (*target == '%' && hex(target[1]) >= 0 &&
		    hex(target[2]) >= 0) {
			*out = (char)(hex(target[1]) << 4 | hex(target[2]));
			target += 2;
		}
		out++;
	}
	*out = '\0';
	return path;
}

static void
map_file(struct lab *l, size_t i)
{
	char *path = local_path(l->l_root, l->l_targets.ts_list[i].t_path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *data;

	if (fd == -1 || fstat(fd, &st) == -1)
		err(1, "%s", path);
	if (!S_ISREG(st.st_mode))
		errx(1, "%s: not a file, hence not to be verified", path);
	l->l_files[i].f_len = (size_t)st.st_size;
	if (st.st_size > 0) {
		data = mmap(
		    NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
		if (data == MAP_FAILED)
			err(1, "%s", path);
		l->l_files[i].f_data = data;
	}
	close(fd);
	free(path);
}

static bool
verified(struct lab *l, const struct slow *s, const struct chunk *ch)
{
	struct file *f = &l->l_files[s->s_target];
	size_t at = (size_t)ch->ch_offset;

	if (l->l_root == NULL || s->s_response.r_status != 200)
		return true;
	if (f->f_data == NULL)
		map_file(l, s->s_target);
	if (at > f->f_len || ch->ch_len > f->f_len - at)
		return false;
	if (s->s_response.r_state == RESPONSE_DONE &&
	    at + ch->ch_len != f->f_len)
		return false;
	return ch->ch_len == 0 ||
	       memcmp(f->f_data + at, ch->ch_body, ch->ch_len) == 0;
}

static void
slow_close(struct lab *l, struct slow *s)
{
	if (s->s_state == SLOW_CONNECTING)
		l->l_starting--;
	if (s->s_state == SLOW_READING)
		l->l_up--;
	if (s->s_state != SLOW_QUEUED)
		client_close(s->s_fd);
	s->s_state = SLOW_QUEUED;
}

static void
slow_back_off(struct lab *l, struct slow *s)
{
	s->s_not_before = client_now() + BACK_OFF;
	TAILQ_INSERT_TAIL(&l->l_queue, s, s_entry);
}

/* The queue is in the order of s_not_before. */
static void
slow_again(struct lab *l, struct slow *s, enum failure why)
{
	slow_close(l, s);
	if (why == FAILURE_NONE) {
		s->s_not_before = 0;
		TAILQ_INSERT_HEAD(&l->l_queue, s, s_entry);
		return;
	}
	l->l_tally.ta_failures[why]++;
	slow_back_off(l, s);
}

static void
slow_request(struct lab *l, struct slow *s)
{
	struct target *t;

	s->s_target = l->l_in_order ? targets_next(&l->l_targets)
				    : targets_pick(&l->l_targets);
	t = &l->l_targets.ts_list[s->s_target];
	if (client_send(s->s_fd, t, &s->s_response) != FAILURE_NONE)
		slow_again(l, s, FAILURE_WRITE);
}

static void
slow_connected(struct lab *l, struct slow *s)
{
	struct epoll_event ev = {
	    .events = EPOLLIN | EPOLLONESHOT, .data.ptr = s};
	int error = client_connected(s->s_fd);

	if (error == EAGAIN) {
		if (epoll_ctl(l->l_epoll, EPOLL_CTL_MOD, s->s_fd, &ev) == -1)
			err(1, "epoll_ctl");
		return;
	}
	if (error != 0) {
		slow_again(l, s, FAILURE_CONNECT);
		return;
	}
	l->l_starting--;
	s->s_state = SLOW_READING;
	s->s_tick = client_now();
	s->s_credit = s->s_burst = l->l_burst;
	if (s->s_up == 0)
		s->s_up = s->s_tick;
	if (++l->l_up > l->l_up_max)
		l->l_up_max = l->l_up;
	if (l->l_up == l->l_n && l->l_ramp == 0)
		l->l_ramp = s->s_tick - l->l_start;
	slow_request(l, s);
}

static void
slow_connect(struct lab *l, struct slow *s)
{
	struct epoll_event ev = {
	    .events = EPOLLOUT | EPOLLONESHOT, .data.ptr = s};

	if (l->l_first > 0)
		l->l_source =
		    l->l_first + (unsigned)(s - l->l_clients) % l->l_sources;
	s->s_fd = client_connect_from(&l->l_targets, l->l_rcvbuf, &l->l_source);
	if (s->s_fd < 0) {
		slow_again(l, s, FAILURE_CONNECT);
		return;
	}
	s->s_state = SLOW_CONNECTING;
	l->l_starting++;
	if (epoll_ctl(l->l_epoll, EPOLL_CTL_ADD, s->s_fd, &ev) == -1)
		err(1, "epoll_ctl");
}

/* Those that come for the first time do so evenly over the ramp. */
static bool
may_come(const struct lab *l, uint64_t now)
{
	double past = (double)(now - l->l_start) / 1e9;

	return past >= l->l_ramp_seconds ||
	       l->l_come < past / l->l_ramp_seconds * l->l_n;
}

static void
connect_some(struct lab *l, uint64_t now)
{
	struct slow *s;

	for (int i = 0; i < STARTS && l->l_starting < STARTING; i++) {
		s = TAILQ_FIRST(&l->l_queue);
		if (s == NULL || s->s_not_before > now ||
		    (!s->s_come && !may_come(l, now)))
			return;
		l->l_come += !s->s_come;
		s->s_come = true;
		TAILQ_REMOVE(&l->l_queue, s, s_entry);
		slow_connect(l, s);
	}
}

static void
slow_got(struct lab *l, struct slow *s, size_t n, uint64_t now)
{
	uint64_t second = (now - l->l_start) / NSEC;

	s->s_credit -= (double)n;
	s->s_burst = s->s_burst > (double)n ? s->s_burst - (double)n : 0;
	s->s_bytes[s->s_seconds % STRETCH] += n;
	l->l_bytes += n;
	/* The last turn may end a little late. */
	l->l_series[second < l->l_series_n ? second : l->l_series_n - 1] += n;
}

static void
slow_done(struct lab *l, struct slow *s)
{
	l->l_completed++;
	l->l_tally.ta_statuses[s->s_response.r_status]++;
	if (s->s_response.r_status >= 500) {
		slow_close(l, s);
		slow_back_off(l, s);
	} else if (s->s_response.r_close)
		slow_again(l, s, FAILURE_NONE);
	else
		slow_request(l, s);
}

static void
slow_drain(struct lab *l, struct slow *s, uint64_t now)
{
	struct response *r = &s->s_response;
	enum failure why;
	struct chunk ch;

	s->s_credit += (double)(now - s->s_tick) / 1e9 * l->l_rate;
	if (s->s_credit > l->l_rate * CREDIT + 1 + s->s_burst)
		s->s_credit = l->l_rate * CREDIT + 1 + s->s_burst;
	s->s_tick = now;
	while (s->s_state == SLOW_READING && s->s_credit >= l->l_quantum) {
		why = client_recv(
		    s->s_fd, r, (size_t)s->s_credit, l->l_root == NULL, &ch);
		if (why == FAILURE_AGAIN)
			return;
		slow_got(l, s, ch.ch_read, now);
		l->l_body += ch.ch_len;
		if (why == FAILURE_NONE && !verified(l, s, &ch))
			why = FAILURE_VERIFY;
		if (why != FAILURE_NONE)
			slow_again(l, s, why);
		else if (r->r_state == RESPONSE_DONE)
			slow_done(l, s);
	}
}

/* A second has ended: looks back on the stretch that ends with it. */
static void
slow_second(struct lab *l, struct slow *s)
{
	uint64_t sum = 0;

	for (int i = 0; i < STRETCH; i++)
		sum += s->s_bytes[i];
	s->s_seconds++;
	s->s_bytes[s->s_seconds % STRETCH] = 0;
	if (s->s_seconds < STRETCH || (double)sum >= l->l_rate * STRETCH / 2)
		return;
	l->l_starved_seconds++;
	if (!s->s_starved)
		l->l_starved++;
	s->s_starved = true;
}

static void
slot(struct lab *l, uint64_t now)
{
	struct slow *s;

	for (unsigned i = l->l_slot; i < l->l_n; i += SLOTS) {
		s = &l->l_clients[i];
		if (s->s_up == 0)
			continue;
		while ((now - s->s_up) / NSEC > s->s_seconds)
			slow_second(l, s);
		if (s->s_state == SLOW_READING)
			slow_drain(l, s, now);
	}
	l->l_slot = (l->l_slot + 1) % SLOTS;
}

/* What could not be done in time is done once, not several times. */
static void
timer(struct lab *l)
{
	uint64_t n, now;

	if (read(l->l_timer, &n, sizeof(n)) != sizeof(n))
		return;
	if (n - 1 > l->l_late_max)
		l->l_late_max = n - 1;
	for (uint64_t i = 0; i < n && i < SLOTS; i++) {
		now = client_now();
		slot(l, now);
		connect_some(l, now);
	}
}

static void
setup(struct lab *l)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct itimerspec its = {{0, SLOT}, {0, SLOT}};

	/* A segment, or what comes in a quarter of a second. */
	l->l_quantum = l->l_rate / 4 < 1460 ? l->l_rate / 4 : 1460;
	if (l->l_quantum < 1)
		l->l_quantum = 1;
	client_descriptors(l->l_n + DESCRIPTORS);
	l->l_series_n = (uint64_t)(l->l_seconds + 1 - 1e-9);
	l->l_clients = calloc(l->l_n, sizeof(*l->l_clients));
	l->l_series = calloc(l->l_series_n, sizeof(*l->l_series));
	l->l_files = calloc(l->l_targets.ts_n, sizeof(*l->l_files));
	if (l->l_clients == NULL || l->l_series == NULL || l->l_files == NULL)
		err(1, NULL);
	TAILQ_INIT(&l->l_queue);
	for (unsigned i = 0; i < l->l_n; i++)
		TAILQ_INSERT_TAIL(&l->l_queue, &l->l_clients[i], s_entry);
	l->l_epoll = epoll_create1(EPOLL_CLOEXEC);
	l->l_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (l->l_epoll == -1 || l->l_timer == -1 ||
	    epoll_ctl(l->l_epoll, EPOLL_CTL_ADD, l->l_timer, &ev) == -1 ||
	    timerfd_settime(l->l_timer, 0, &its, NULL) == -1)
		err(1, "epoll");
}

static double
run(struct lab *l)
{
	struct epoll_event evs[EVENTS];
	uint64_t end;
	int i, n;

	l->l_start = client_now();
	end = l->l_start + (uint64_t)(l->l_seconds * 1e9);
	while (client_now() < end && !client_stopped) {
		n = epoll_wait(l->l_epoll, evs, EVENTS, -1);
		if (n == -1 && errno != EINTR)
			err(1, "epoll_wait");
		for (i = 0; i < n; i++) {
			if (evs[i].data.ptr == NULL)
				timer(l);
			else
				slow_connected(l, evs[i].data.ptr);
		}
	}
	return (double)(client_now() - l->l_start) / 1e9;
}

static void
print(const struct lab *l, double elapsed)
{
	printf("{\"clients\": %u, \"rate\": %.15g, \"seconds\": %.3f, "
	       "\"interrupted\": %s,\n\"connected\": %u, "
	       "\"connected_max\": %u, \"ramp_seconds\": ",
	    l->l_n, l->l_rate, elapsed, client_stopped ? "true" : "false",
	    l->l_up, l->l_up_max);
	if (l->l_ramp > 0)
		printf("%.3f", (double)l->l_ramp / 1e9);
	else
		printf("null");
	printf(", \"source_addresses\": %u,\n\"bytes\": %" PRIu64
	       ", \"body_bytes\": %" PRIu64 ", \"bytes_per_second\": %.1f, "
	       "\"completed\": %" PRIu64 ",\n\"starved\": %u, "
	       "\"starved_stretches\": %" PRIu64 ", \"late_ms_max\": %" PRIu64
	       ",\n",
	    l->l_first > 0     ? l->l_sources
	    : l->l_source == 0 ? 1
			       : l->l_source,
	    l->l_bytes, l->l_body, (double)l->l_bytes / elapsed, l->l_completed,
	    l->l_starved, l->l_starved_seconds,
	    l->l_late_max * (SLOT / 1000000));
	tally_print(stdout, &l->l_tally);
	printf(",\n\"bytes_each_second\": [");
	for (uint64_t i = 0; i < l->l_series_n; i++)
		printf("%s%" PRIu64, i > 0 ? ", " : "", l->l_series[i]);
	printf("]}\n");
}

static void
parse(struct lab *l, int argc, char **argv)
{
	static const struct option options[] = {{"clients", 1, NULL, 'c'},
	    {"rate", 1, NULL, 'r'}, {"seconds", 1, NULL, 's'},
	    {"rcvbuf", 1, NULL, 'b'}, {"urls", 1, NULL, 'u'},
	    {"seed", 1, NULL, 'x'}, {"in-order", 0, NULL, 'o'},
	    {"burst", 1, NULL, 'f'}, {"ramp", 1, NULL, 'a'},
	    {"source", 1, NULL, 'i'}, {"sources", 1, NULL, 'n'},
	    {"verify", 0, NULL, 'v'}, {"root", 1, NULL, 'd'}, {0}};
	const char *file = NULL, *name, *root = NULL;
	bool verify = false;
	int c, i;

	while ((c = getopt_long(argc, argv, "", options, &i)) != -1) {
		name = c == '?' ? "" : options[i].name;
		if (c == 'c')
			l->l_n = (unsigned)client_number(name, optarg, 1, 1e6);
		else if (c == 'r')
			l->l_rate = client_number(name, optarg, 1, 1e9);
		else if (c == 's')
			l->l_seconds = client_number(name, optarg, 0.001, 1e6);
		else if (c == 'f')
			l->l_burst = client_number(name, optarg, 0, 1e12);
		else if (c == 'a')
			l->l_ramp_seconds = client_number(name, optarg, 0, 1e6);
		else if (c == 'b')
			l->l_rcvbuf = (int)client_number(name, optarg, 1, 1e9);
		else if (c == 'u')
			file = optarg;
		else if (c == 'x')
			l->l_targets.ts_random =
			    (uint64_t)client_number(name, optarg, 0, 1e15);
		else if (c == 'o')
			l->l_in_order = true;
		else if (c == 'i')
			l->l_first =
			    (unsigned)client_number(name, optarg, 1, 200);
		else if (c == 'n')
			l->l_sources =
			    (unsigned)client_number(name, optarg, 1, 200);
		else if (c == 'v')
			verify = true;
		else if (c == 'd')
			root = optarg;
		else
			usage();
	}
	if (argc - optind > 1 || verify != (root != NULL))
		usage();
	l->l_root = root;
	targets_load(&l->l_targets, argv[optind], file);
}

int
main(int argc, char **argv)
{
	static struct lab l = {.l_n = 1000,
	    .l_rate = 16384,
	    .l_seconds = 10,
	    .l_rcvbuf = 16384,
	    .l_sources = 1};
	double elapsed;

	parse(&l, argc, argv);
	client_catch_signals();
	setup(&l);
	elapsed = run(&l);
	print(&l, elapsed);
	for (unsigned i = 0; i < l.l_n; i++)
		slow_close(&l, &l.l_clients[i]);
	for (size_t i = 0; i < l.l_targets.ts_n; i++)
		if (l.l_files[i].f_data != NULL)
			munmap((void *)(uintptr_t)l.l_files[i].f_data,
			    l.l_files[i].f_len);
	targets_free(&l.l_targets);
	free(l.l_clients);
	free(l.l_series);
	free(l.l_files);
	return 0;
}
