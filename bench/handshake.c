/*
 * handshake: TLS connections that come and go: each connects, shakes hands, sends one
 * request (unless told not to), takes the answer and closes.  As many as there can be,
 * or at a fixed rate; full handshakes, or, with --resume, each with the ticket of the
 * first one.  Linux.
 */
#include <sys/epoll.h>

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "client_tls.h"
#include "hdr.h"

#define EVENTS	    256
#define PER_SOURCE  10000 /* connections: an address has 28232 ports ... */
#define FIRST	    2	  /* ... and a closed one keeps its own for a minute */
#define SOURCES	    100
#define DESCRIPTORS 16 /* beside the connections' */
#define PATIENCE    10 /* s, for the first ticket */

enum slot_state { SLOT_FREE, SLOT_SHAKING, SLOT_ASKING };

struct slot {
	enum slot_state sl_state;
	int sl_fd;
	uint64_t sl_since; /* it was begun, ns */
	struct response sl_response;
};

struct shaker {
	unsigned s_n;
	double s_seconds, s_rate; /* s_rate 0: as fast as it goes */
	bool s_resume, s_ask;
	struct targets s_targets;

	int s_epoll;
	unsigned s_open;
	struct slot *s_slots;
	uint64_t s_start, s_begun, s_done, s_resumed, s_answered;
	uint64_t s_connections; /* of all, for the addresses */
	struct hdr s_time; /* from connecting to the end of the handshake */
	struct tally s_tally;
};

static void
usage(void)
{
	fputs("usage: handshake [--connections N] [--seconds S] [--rate N] "
	      "[--resume]\n"
	      "    [--no-request] URL\n",
	    stderr);
	exit(2);
}

static void
watch(struct shaker *s, int op, struct slot *sl, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = sl};

	if (epoll_ctl(s->s_epoll, op, sl->sl_fd, &ev) == -1)
		err(1, "epoll_ctl");
}

static void
slot_close(struct shaker *s, struct slot *sl)
{
	client_close(sl->sl_fd);
	sl->sl_state = SLOT_FREE;
	s->s_open--;
}

static void
slot_failed(struct shaker *s, struct slot *sl, enum failure why)
{
	s->s_tally.ta_failures[why]++;
	slot_close(s, sl);
}

static void
slot_begin(struct shaker *s, struct slot *sl)
{
	unsigned source =
	    FIRST + (unsigned)(s->s_connections++ / PER_SOURCE % SOURCES);

	s->s_begun++;
	sl->sl_since = client_now();
	sl->sl_fd = client_connect_from(&s->s_targets, 0, &source);
	if (sl->sl_fd < 0) {
		s->s_tally.ta_failures[FAILURE_CONNECT]++;
		return;
	}
	sl->sl_state = SLOT_SHAKING;
	s->s_open++;
	watch(s, EPOLL_CTL_ADD, sl, EPOLLOUT);
}

static void
slot_shaken(struct shaker *s, struct slot *sl)
{
	const struct target *t = &s->s_targets.ts_list[0];

	hdr_record(&s->s_time, (client_now() - sl->sl_since + 999) / 1000);
	s->s_done++;
	s->s_resumed += client_tls_resumed(sl->sl_fd);
	if (!s->s_ask) {
		slot_close(s, sl);
		return;
	}
	sl->sl_state = SLOT_ASKING;
	if (client_send(sl->sl_fd, t, &sl->sl_response) != FAILURE_NONE)
		slot_failed(s, sl, FAILURE_WRITE);
}

static void
slot_shake(struct shaker *s, struct slot *sl)
{
	int error = client_connected(sl->sl_fd);

	if (error != 0 && error != EAGAIN) {
		slot_failed(s, sl, FAILURE_CONNECT);
		return;
	}
	watch(s, EPOLL_CTL_MOD, sl, EPOLLIN);
	if (error == 0)
		slot_shaken(s, sl);
}

static void
slot_read(struct shaker *s, struct slot *sl)
{
	struct response *r = &sl->sl_response;
	struct chunk ch;
	enum failure why = client_recv(sl->sl_fd, r, SIZE_MAX, true, &ch);

	if (why == FAILURE_AGAIN)
		return;
	if (why != FAILURE_NONE) {
		slot_failed(s, sl, why);
		return;
	}
	if (r->r_state != RESPONSE_DONE)
		return;
	s->s_answered++;
	s->s_tally.ta_statuses[r->r_status]++;
	slot_close(s, sl);
}

static void
wait_for_events(struct shaker *s, int timeout_ms)
{
	struct epoll_event evs[EVENTS];
	int n = epoll_wait(s->s_epoll, evs, EVENTS, timeout_ms);
	struct slot *sl;

	if (n == -1 && errno != EINTR)
		err(1, "epoll_wait");
	for (int i = 0; i < n; i++) {
		sl = evs[i].data.ptr;
		if (sl->sl_state == SLOT_SHAKING)
			slot_shake(s, sl);
		else if (sl->sl_state == SLOT_ASKING)
			slot_read(s, sl);
	}
}

/* How many should have been begun by now. */
static uint64_t
due(const struct shaker *s)
{
	double past = (double)(client_now() - s->s_start) / 1e9;

	return s->s_rate == 0 ? UINT64_MAX : (uint64_t)(past * s->s_rate) + 1;
}

static void
begin_some(struct shaker *s)
{
	uint64_t until = due(s);

	for (unsigned i = 0;
	     i < s->s_n && s->s_open < s->s_n && s->s_begun < until; i++)
		if (s->s_slots[i].sl_state == SLOT_FREE)
			slot_begin(s, &s->s_slots[i]);
}

/* One connection, for its ticket. */
static void
take_ticket(struct shaker *s)
{
	uint64_t end = client_now() + PATIENCE * NSEC;
	bool ask = s->s_ask;

	client_tls_resume();
	s->s_ask = true;
	slot_begin(s, &s->s_slots[0]);
	while (s->s_open > 0 && !client_stopped && client_now() < end)
		wait_for_events(s, 100);
	if (!client_tls_has_ticket())
		errx(1, "%s: no ticket", s->s_targets.ts_authority);
	s->s_ask = ask;
	s->s_begun = s->s_done = s->s_resumed = s->s_answered = 0;
	memset(&s->s_time, 0, sizeof(s->s_time));
	memset(&s->s_tally, 0, sizeof(s->s_tally));
}

static void
run(struct shaker *s)
{
	uint64_t end;

	s->s_start = client_now();
	end = s->s_start + (uint64_t)(s->s_seconds * 1e9);
	while (!client_stopped && client_now() < end) {
		begin_some(s);
		wait_for_events(s, s->s_rate == 0 ? 100 : 1);
	}
}

static void
print(const struct shaker *s)
{
	double seconds = (double)(client_now() - s->s_start) / 1e9;

	printf("{\"connections\": %u, \"seconds\": %.3f, "
	       "\"requested_rate\": %.15g, \"begun\": %" PRIu64
	       ", \"handshakes\": %" PRIu64 ", \"resumed\": %" PRIu64
	       ", \"answered\": %" PRIu64 ",\n",
	    s->s_n, seconds, s->s_rate, s->s_begun, s->s_done, s->s_resumed,
	    s->s_answered);
	tally_print(stdout, &s->s_tally);
	printf(",\n\"handshake_us\": {");
	hdr_print_summary(stdout, &s->s_time);
	printf("}}\n");
}

static void
parse(struct shaker *s, int argc, char **argv)
{
	static const struct option options[] = {{"connections", 1, NULL, 'c'},
	    {"seconds", 1, NULL, 's'}, {"rate", 1, NULL, 'r'},
	    {"resume", 0, NULL, 'e'}, {"no-request", 0, NULL, 'n'}, {0}};
	const char *name;
	int c, i;

	while ((c = getopt_long(argc, argv, "", options, &i)) != -1) {
		name = c == '?' ? "" : options[i].name;
		if (c == 'c')
			s->s_n = (unsigned)client_number(name, optarg, 1, 1e4);
		else if (c == 's')
			s->s_seconds = client_number(name, optarg, 0.001, 1e6);
		else if (c == 'r')
			s->s_rate = client_number(name, optarg, 0.001, 1e6);
		else if (c == 'e')
			s->s_resume = true;
		else if (c == 'n')
			s->s_ask = false;
		else
			usage();
	}
	if (argc - optind != 1)
		usage();
	targets_load(&s->s_targets, argv[optind], NULL);
	if (!s->s_targets.ts_tls)
		errx(2, "%s: not https", argv[optind]);
}

int
main(int argc, char **argv)
{
	static struct shaker s = {.s_n = 32, .s_seconds = 10, .s_ask = true};

	parse(&s, argc, argv);
	client_descriptors(s.s_n + DESCRIPTORS);
	client_catch_signals();
	s.s_slots = calloc(s.s_n, sizeof(*s.s_slots));
	s.s_epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s.s_slots == NULL || s.s_epoll == -1)
		err(1, NULL);
	if (s.s_resume)
		take_ticket(&s);
	run(&s);
	print(&s);
	for (unsigned i = 0; i < s.s_n; i++)
		if (s.s_slots[i].sl_state != SLOT_FREE)
			slot_close(&s, &s.s_slots[i]);
	targets_free(&s.s_targets);
	free(s.s_slots);
	return 0;
}
