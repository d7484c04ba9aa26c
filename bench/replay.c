/*
 * replay: asks for every target of a list once, in its order, over a number of
 * connections that each wait for an answer before they ask again.  It ends with the
 * list and not after some time: so every server gets the same requests.  Linux.
 */
#include <sys/epoll.h>

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "client.h"

#define EVENTS 64
#define READS  32    /* in a row, of one connection */
#define PIECE  65536 /* bytes */

enum conn_state { CONN_DOWN, CONN_CONNECTING, CONN_BUSY };

struct conn {
	enum conn_state c_state;
	int c_fd;
	struct response c_response;
};

struct replay {
	unsigned r_n;
	double r_timeout; /* s, for all of it */
	struct targets r_targets;

	int r_epoll;
	struct conn *r_conns;
	unsigned r_open, r_connecting;
	size_t r_next; /* target */
	uint64_t r_start, r_answered, r_bytes, r_body;
	struct tally r_tally;
};

static void
usage(void)
{
	fputs("usage: replay [--connections N] [--timeout S] [--urls FILE] "
	      "[URL]\n",
	    stderr);
	exit(2);
}

static void
conn_close(struct replay *r, struct conn *c)
{
	if (c->c_state == CONN_DOWN)
		return;
	client_close(c->c_fd);
	if (c->c_state == CONN_CONNECTING)
		r->r_connecting--;
	c->c_state = CONN_DOWN;
	r->r_open--;
}

static void
conn_watch(struct replay *r, struct conn *c, int op, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = c};

	if (epoll_ctl(r->r_epoll, op, c->c_fd, &ev) == -1)
		err(1, "epoll_ctl");
}

/* Those that are connecting will ask for what is left. */
static void
conn_open(struct replay *r, struct conn *c)
{
	conn_close(r, c);
	if (r->r_targets.ts_n - r->r_next <= r->r_connecting)
		return;
	c->c_fd = client_connect(&r->r_targets, 0, 0);
	if (c->c_fd < 0) {
		r->r_tally.ta_failures[FAILURE_CONNECT]++;
		return;
	}
	c->c_state = CONN_CONNECTING;
	r->r_connecting++;
	r->r_open++;
	conn_watch(r, c, EPOLL_CTL_ADD, EPOLLOUT);
}

/* What failed is not asked for again. */
static void
conn_failed(struct replay *r, struct conn *c, enum failure why)
{
	r->r_tally.ta_failures[why]++;
	conn_open(r, c);
}

static void
conn_ask(struct replay *r, struct conn *c)
{
	const struct target *t;

	if (r->r_next == r->r_targets.ts_n) {
		conn_close(r, c);
		return;
	}
	t = &r->r_targets.ts_list[r->r_next++];
	if (client_send(c->c_fd, t, &c->c_response) != FAILURE_NONE)
		conn_failed(r, c, FAILURE_WRITE);
}

/* Whoever cannot connect does not try again, or it would never end. */
static void
conn_established(struct replay *r, struct conn *c)
{
	int error = client_connected(c->c_fd);

	if (error != 0 && error != EAGAIN) {
		r->r_tally.ta_failures[FAILURE_CONNECT]++;
		conn_close(r, c);
		return;
	}
	conn_watch(r, c, EPOLL_CTL_MOD, EPOLLIN);
	if (error == EAGAIN)
		return;
	c->c_state = CONN_BUSY;
	r->r_connecting--;
	conn_ask(r, c);
}

static void
conn_answered(struct replay *r, struct conn *c)
{
	r->r_answered++;
	r->r_tally.ta_statuses[c->c_response.r_status]++;
	if (c->c_response.r_close)
		conn_open(r, c);
	else
		conn_ask(r, c);
}

static void
conn_read(struct replay *r, struct conn *c)
{
	enum failure why;
	struct chunk ch;

	for (int i = 0; i < READS; i++) {
		why = client_recv(c->c_fd, &c->c_response, PIECE, true, &ch);
		if (why == FAILURE_AGAIN)
			return;
		r->r_bytes += ch.ch_read;
		r->r_body += ch.ch_len;
		if (why != FAILURE_NONE) {
			conn_failed(r, c, why);
			return;
		}
		if (c->c_response.r_state == RESPONSE_DONE) {
			conn_answered(r, c);
			return;
		}
	}
}

static void
run(struct replay *r)
{
	uint64_t end = client_now() + (uint64_t)(r->r_timeout * 1e9);
	struct epoll_event evs[EVENTS];
	struct conn *c;
	int i, n;

	r->r_start = client_now();
	for (unsigned j = 0; j < r->r_n; j++)
		conn_open(r, &r->r_conns[j]);
	while (r->r_open > 0 && !client_stopped && client_now() < end) {
		n = epoll_wait(r->r_epoll, evs, EVENTS, 100);
		if (n == -1 && errno != EINTR)
			err(1, "epoll_wait");
		for (i = 0; i < n; i++) {
			c = evs[i].data.ptr;
			if (c->c_state == CONN_CONNECTING)
				conn_established(r, c);
			else if (c->c_state == CONN_BUSY)
				conn_read(r, c);
		}
	}
}

static void
finish(struct replay *r)
{
	for (unsigned i = 0; i < r->r_n; i++) {
		if (r->r_conns[i].c_state == CONN_BUSY)
			r->r_tally.ta_failures[FAILURE_UNANSWERED]++;
		conn_close(r, &r->r_conns[i]);
	}
	r->r_tally.ta_failures[FAILURE_UNSENT] = r->r_targets.ts_n - r->r_next;
}

static void
print(const struct replay *r)
{
	printf("{\"connections\": %u, \"requests\": %zu, \"answered\": %" PRIu64
	       ", \"seconds\": %.3f, \"bytes\": %" PRIu64
	       ", \"body_bytes\": %" PRIu64 ",\n",
	    r->r_n, r->r_targets.ts_n, r->r_answered,
	    (double)(client_now() - r->r_start) / 1e9, r->r_bytes, r->r_body);
	tally_print(stdout, &r->r_tally);
	printf("}\n");
}

static void
parse(struct replay *r, int argc, char **argv)
{
	static const struct option options[] = {{"connections", 1, NULL, 'c'},
	    {"timeout", 1, NULL, 't'}, {"urls", 1, NULL, 'u'}, {0}};
	const char *file = NULL, *name;
	int c, i;

	while ((c = getopt_long(argc, argv, "", options, &i)) != -1) {
		name = c == '?' ? "" : options[i].name;
		if (c == 'c')
			r->r_n = (unsigned)client_number(name, optarg, 1, 1e4);
		else if (c == 't')
			r->r_timeout = client_number(name, optarg, 0.001, 1e6);
		else if (c == 'u')
			file = optarg;
		else
			usage();
	}
	if (argc - optind > 1)
		usage();
	targets_load(&r->r_targets, argv[optind], file);
}

int
main(int argc, char **argv)
{
	static struct replay r = {.r_n = 8, .r_timeout = 600};

	parse(&r, argc, argv);
	client_catch_signals();
	r.r_conns = calloc(r.r_n, sizeof(*r.r_conns));
	r.r_epoll = epoll_create1(EPOLL_CLOEXEC);
	if (r.r_conns == NULL || r.r_epoll == -1)
		err(1, NULL);
	run(&r);
	finish(&r);
	print(&r);
	targets_free(&r.r_targets);
	free(r.r_conns);
	return 0;
}
