/*
 * probe: an open-loop latency probe.  Requests have their turn at a fixed rate,
 * whatever the server does; latency is counted from that turn, so that a
 * request that had to wait for a free connection tells how long.  One that was
 * given up is held with the time that it had waited by then.  Linux.
 */
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/timerfd.h>

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "hdr.h"

#define EVENTS 256
#define SPIN   (NSEC / 20000) /* the last 50 us */
#define PERIOD (NSEC / 10)    /* of timeouts and of connecting again */
#define SHAKE  1 /* s; hands that are shaken later are the server's delay */

enum conn_state { CONN_DOWN, CONN_CONNECTING, CONN_IDLE, CONN_BUSY };

struct conn {
	TAILQ_ENTRY(conn) c_entry; /* of p_idle */
	enum conn_state c_state;
	int c_fd;
	uint64_t c_since; /* the state, ns */
	uint64_t c_turn;  /* of the request that is under way, ns */
	struct response c_response;
};

struct probe {
	double p_rate, p_seconds, p_timeout;
	unsigned p_n;
	/* addresses 127.0.0.first and later; first 0: any */
	unsigned p_first, p_sources;
	bool p_spin;
	uint64_t p_interval; /* of the timeline, ns, 0: none */
	struct targets p_targets;

	int p_epoll, p_timer;
	uint64_t p_armed; /* what the timer is set to */
	struct conn *p_conns;
	TAILQ_HEAD(, conn) p_idle; /* longest idle first */
	uint64_t p_start, p_total, p_next, p_ended, p_answered, p_last;
	struct hdr p_latency;
	struct hdr p_delay; /* the probe's own: a turn that it took too late */
	struct tally p_tally;
	uint64_t *p_timeline, p_timeline_n; /* us */
};

static void
usage(void)
{
	fputs("usage: probe [--rate N] [--connections N] [--seconds S]\n"
	      "    [--timeout S] [--urls FILE] [--seed N] [--timeline MS] "
	      "[--spin]\n"
	      "    [--source N [--sources N]] [URL]\n"
	      "       probe --histogram-test < VALUES\n",
	    stderr);
	exit(2);
}

static uint64_t
turn_of(const struct probe *p, uint64_t i)
{
	return p->p_start + (uint64_t)((double)i * 1e9 / p->p_rate);
}

/* Rounds up: never in the server's favour. */
static uint64_t
to_us(uint64_t ns)
{
	return (ns + 999) / 1000;
}

static void
record(struct probe *p, uint64_t turn, uint64_t now)
{
	uint64_t us = to_us(now - turn), i;

	hdr_record(&p->p_latency, us);
	if (p->p_interval == 0)
		return;
	i = (turn - p->p_start) / p->p_interval;
	if (us > p->p_timeline[i])
		p->p_timeline[i] = us;
}

static void
conn_enter(struct conn *c, enum conn_state state)
{
	c->c_state = state;
	c->c_since = client_now();
}

static void
conn_close(struct probe *p, struct conn *c)
{
	if (c->c_state == CONN_IDLE)
		TAILQ_REMOVE(&p->p_idle, c, c_entry);
	if (c->c_state != CONN_DOWN)
		client_close(c->c_fd);
	conn_enter(c, CONN_DOWN);
}

static void
conn_open(struct probe *p, struct conn *c)
{
	struct epoll_event ev = {.events = EPOLLOUT, .data.ptr = c};
	unsigned source = p->p_first;

	if (source > 0)
		source += (unsigned)(c - p->p_conns) % p->p_sources;
	conn_close(p, c);
	c->c_fd = client_connect(&p->p_targets, 0, source);
	if (c->c_fd < 0) {
		p->p_tally.ta_failures[FAILURE_CONNECT]++;
		return;
	}
	conn_enter(c, CONN_CONNECTING);
	if (epoll_ctl(p->p_epoll, EPOLL_CTL_ADD, c->c_fd, &ev) == -1)
		err(1, "epoll_ctl");
}

static void
conn_idle(struct probe *p, struct conn *c)
{
	conn_enter(c, CONN_IDLE);
	TAILQ_INSERT_TAIL(&p->p_idle, c, c_entry);
}

static void
conn_established(struct probe *p, struct conn *c)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
	int error = client_connected(c->c_fd);

	if (error != 0 && error != EAGAIN) {
		p->p_tally.ta_failures[FAILURE_CONNECT]++;
		conn_close(p, c);
		return;
	}
	if (epoll_ctl(p->p_epoll, EPOLL_CTL_MOD, c->c_fd, &ev) == -1)
		err(1, "epoll_ctl");
	if (error == 0)
		conn_idle(p, c);
}

/* The request of a busy connection has failed, and the connection with it. */
static void
request_lost(struct probe *p, struct conn *c, enum failure why)
{
	p->p_tally.ta_failures[why]++;
	p->p_ended++;
	if (why == FAILURE_TIMEOUT || why == FAILURE_UNANSWERED)
		record(p, c->c_turn, client_now());
	conn_close(p, c);
}

static void
request_answered(struct probe *p, struct conn *c)
{
	p->p_last = client_now();
	record(p, c->c_turn, p->p_last);
	p->p_tally.ta_statuses[c->c_response.r_status]++;
	p->p_answered++;
	p->p_ended++;
	if (c->c_response.r_close)
		conn_open(p, c);
	else
		conn_idle(p, c);
}

static void
conn_read(struct probe *p, struct conn *c)
{
	struct chunk chunk;
	enum failure why;

	why = client_recv(c->c_fd, &c->c_response, SIZE_MAX, true, &chunk);
	if (why == FAILURE_AGAIN)
		return;
	if (why != FAILURE_NONE) {
		request_lost(p, c, why);
		conn_open(p, c);
	} else if (c->c_response.r_state == RESPONSE_DONE) {
		request_answered(p, c);
	}
}

static void
conn_event(struct probe *p, struct conn *c)
{
	switch (c->c_state) {
	case CONN_DOWN:
		break;
	case CONN_CONNECTING:
		conn_established(p, c);
		break;
	case CONN_IDLE:
		/* The server's idle timeout: its right, and no request lost. */
		if (!client_kept(c->c_fd))
			conn_open(p, c);
		break;
	case CONN_BUSY:
		conn_read(p, c);
		break;
	}
}

static void
poll_events(struct probe *p, int timeout_ms)
{
	struct epoll_event evs[EVENTS];
	int n = epoll_wait(p->p_epoll, evs, EVENTS, timeout_ms);

	if (n == -1 && errno != EINTR)
		err(1, "epoll_wait");
	for (int i = 0; i < n; i++)
		if (evs[i].data.ptr != NULL)
			conn_event(p, evs[i].data.ptr);
}

static void
arm(struct probe *p, uint64_t at)
{
	struct itimerspec its = {.it_value = {.tv_sec = (time_t)(at / NSEC),
				     .tv_nsec = (long)(at % NSEC)}};

	if (at == p->p_armed)
		return;
	p->p_armed = at;
	if (timerfd_settime(p->p_timer, TFD_TIMER_ABSTIME, &its, NULL) == -1)
		err(1, "timerfd_settime");
}

/* Without a free connection a turn that comes changes nothing. */
static void
wait_for_turn(struct probe *p)
{
	uint64_t turn = turn_of(p, p->p_next);

	if (p->p_next < p->p_total && !TAILQ_EMPTY(&p->p_idle)) {
		if (p->p_spin && client_now() + SPIN >= turn) {
			poll_events(p, 0);
			return;
		}
		arm(p, p->p_spin ? turn - SPIN : turn);
	}
	poll_events(p, PERIOD / 1000000);
}

static void
send_due(struct probe *p)
{
	uint64_t now, turn;
	struct target *t;
	struct conn *c;

	while (
	    p->p_next < p->p_total && (c = TAILQ_FIRST(&p->p_idle)) != NULL) {
		turn = turn_of(p, p->p_next);
		now = client_now();
		if (turn > now)
			break;
		p->p_next++;
		TAILQ_REMOVE(&p->p_idle, c, c_entry);
		hdr_record(&p->p_delay,
		    to_us(now - (turn > c->c_since ? turn : c->c_since)));
		conn_enter(c, CONN_BUSY);
		c->c_turn = turn;
		t = &p->p_targets.ts_list[targets_pick(&p->p_targets)];
		if (client_send(c->c_fd, t, &c->c_response) != FAILURE_NONE) {
			request_lost(p, c, FAILURE_WRITE);
			conn_open(p, c);
		}
	}
}

static void
conn_check(struct probe *p, struct conn *c, uint64_t now)
{
	bool late = (double)(now - c->c_since) > p->p_timeout * 1e9;

	if (c->c_state == CONN_CONNECTING && late) {
		p->p_tally.ta_failures[FAILURE_CONNECT]++;
		conn_close(p, c);
	} else if (c->c_state == CONN_BUSY && late) {
		request_lost(p, c, FAILURE_TIMEOUT);
		conn_open(p, c);
	} else if (c->c_state == CONN_DOWN && now - c->c_since > PERIOD) {
		conn_open(p, c);
	}
}

static unsigned
connecting(const struct probe *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->p_n; i++)
		n += p->p_conns[i].c_state == CONN_CONNECTING;
	return n;
}

static void
setup(struct probe *p)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	bool tls = p->p_targets.ts_tls;
	double patience = tls && p->p_timeout > SHAKE ? SHAKE : p->p_timeout;
	uint64_t until = client_now() + (uint64_t)(patience * 1e9);

	TAILQ_INIT(&p->p_idle);
	p->p_conns = calloc(p->p_n, sizeof(*p->p_conns));
	if (p->p_interval > 0)
		p->p_timeline_n =
		    ((uint64_t)(p->p_seconds * 1e9) + p->p_interval - 1) /
		    p->p_interval;
	p->p_timeline = calloc(p->p_timeline_n + 1, sizeof(uint64_t));
	if (p->p_conns == NULL || p->p_timeline == NULL)
		err(1, NULL);
	p->p_epoll = epoll_create1(EPOLL_CLOEXEC);
	p->p_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (p->p_epoll == -1 || p->p_timer == -1 ||
	    epoll_ctl(p->p_epoll, EPOLL_CTL_ADD, p->p_timer, &ev) == -1)
		err(1, "epoll");
	for (unsigned i = 0; i < p->p_n; i++)
		conn_open(p, &p->p_conns[i]);
	while (connecting(p) > 0 && client_now() < until && !client_stopped)
		poll_events(p, 100);
	/* With plain HTTP it is the kernel that accepts; a handshake waits for the server. */
	if (TAILQ_EMPTY(&p->p_idle) && (!tls || connecting(p) == 0))
		errx(1, "%s: cannot connect", p->p_targets.ts_authority);
}

static void
run(struct probe *p)
{
	uint64_t end, now, check;

	p->p_total = (uint64_t)(p->p_rate * p->p_seconds + 0.5);
	p->p_start = check = client_now() + NSEC / 1000;
	end = p->p_start + (uint64_t)((p->p_seconds + p->p_timeout) * 1e9);
	while (p->p_ended < p->p_total && !client_stopped) {
		wait_for_turn(p);
		send_due(p);
		now = client_now();
		if (now >= end)
			break;
		if (now < check)
			continue;
		check = now + PERIOD;
		for (unsigned i = 0; i < p->p_n; i++)
			conn_check(p, &p->p_conns[i], now);
	}
}

static void
finish(struct probe *p)
{
	uint64_t now = client_now();

	for (unsigned i = 0; i < p->p_n; i++) {
		if (p->p_conns[i].c_state == CONN_BUSY)
			request_lost(p, &p->p_conns[i], FAILURE_UNANSWERED);
		conn_close(p, &p->p_conns[i]);
	}
	for (; p->p_next < p->p_total && turn_of(p, p->p_next) <= now;
	     p->p_next++) {
		p->p_tally.ta_failures[FAILURE_UNSENT]++;
		record(p, turn_of(p, p->p_next), now);
	}
}

static void
print(const struct probe *p)
{
	double elapsed =
	    p->p_last > p->p_start ? (double)(p->p_last - p->p_start) / 1e9 : 0;

	if (elapsed < p->p_seconds && p->p_next == p->p_total)
		elapsed = p->p_seconds;
	printf("{\"requested_rate\": %.15g, \"achieved_rate\": %.3f, "
	       "\"connections\": %u, \"seconds\": %.15g, "
	       "\"requested\": %" PRIu64 ", \"answered\": %" PRIu64
	       ", \"interrupted\": %s,\n",
	    p->p_rate, elapsed > 0 ? (double)p->p_answered / elapsed : 0,
	    p->p_n, p->p_seconds, p->p_next, p->p_answered,
	    client_stopped ? "true" : "false");
	tally_print(stdout, &p->p_tally);
	printf(",\n\"latency_us\": {");
	hdr_print_summary(stdout, &p->p_latency);
	printf("},\n\"own_delay_us\": {");
	hdr_print_summary(stdout, &p->p_delay);
	printf("},\n");
	if (p->p_interval > 0) {
		printf("\"timeline\": {\"interval_ms\": %" PRIu64
		       ", \"max_us\": [",
		    p->p_interval / 1000000);
		for (uint64_t i = 0; i < p->p_timeline_n; i++)
			printf(
			    "%s%" PRIu64, i > 0 ? ", " : "", p->p_timeline[i]);
		printf("]},\n");
	}
	hdr_print_buckets(stdout, &p->p_latency);
	printf("}\n");
}

static int
histogram_test(void)
{
	static struct hdr h;
	uint64_t us;

	while (scanf("%" SCNu64, &us) == 1)
		hdr_record(&h, us);
	printf("{");
	hdr_print_summary(stdout, &h);
	printf(", ");
	hdr_print_buckets(stdout, &h);
	printf("}\n");
	return 0;
}

static void
parse(struct probe *p, int argc, char **argv)
{
	static const struct option options[] = {{"rate", 1, NULL, 'r'},
	    {"connections", 1, NULL, 'c'}, {"seconds", 1, NULL, 's'},
	    {"timeout", 1, NULL, 't'}, {"urls", 1, NULL, 'u'},
	    {"seed", 1, NULL, 'x'}, {"timeline", 1, NULL, 'l'},
	    {"spin", 0, NULL, 'p'}, {"source", 1, NULL, 'i'},
	    {"sources", 1, NULL, 'n'}, {"histogram-test", 0, NULL, 'h'}, {0}};
	const char *file = NULL, *name;
	int c, i;

	while ((c = getopt_long(argc, argv, "", options, &i)) != -1) {
		name = c == '?' ? "" : options[i].name;
		if (c == 'r')
			p->p_rate = client_number(name, optarg, 0.001, 1e7);
		else if (c == 'c')
			p->p_n = (unsigned)client_number(name, optarg, 1, 1e6);
		else if (c == 's')
			p->p_seconds = client_number(name, optarg, 0.001, 1e6);
		else if (c == 't')
			p->p_timeout = client_number(name, optarg, 0.001, 1e6);
		else if (c == 'u')
			file = optarg;
		else if (c == 'x')
			p->p_targets.ts_random =
			    (uint64_t)client_number(name, optarg, 0, 1e15);
		else if (c == 'l')
			p->p_interval = 1000000 * (uint64_t)client_number(
						      name, optarg, 1, 1e6);
		else if (c == 'p')
			p->p_spin = true;
		else if (c == 'i')
			p->p_first =
			    (unsigned)client_number(name, optarg, 1, 200);
		else if (c == 'n')
			p->p_sources =
			    (unsigned)client_number(name, optarg, 1, 200);
		else if (c == 'h')
			exit(histogram_test());
		else
			usage();
	}
	if (argc - optind > 1)
		usage();
	targets_load(&p->p_targets, argv[optind], file);
}

int
main(int argc, char **argv)
{
	static struct probe p = {.p_rate = 1000,
	    .p_seconds = 10,
	    .p_timeout = 10,
	    .p_n = 16,
	    .p_sources = 1};

	parse(&p, argc, argv);
	client_catch_signals();
	setup(&p);
	run(&p);
	finish(&p);
	print(&p);
	targets_free(&p.p_targets);
	free(p.p_conns);
	free(p.p_timeline);
	return 0;
}
