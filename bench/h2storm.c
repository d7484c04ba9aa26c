/*
 * h2storm: one connection of HTTP/2 on which some streams ask for one file again and
 * again (hot ones), and others for those of a list in turn (cold ones).  Hot requests
 * are as many as there can be, or have their turn at a fixed rate, as probe has them:
 * then latency is counted from that turn, also while all hot streams are busy.
 * A connection that the server ends (GOAWAY) is followed by another.  Linux.
 */
#include <sys/queue.h>

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "client_http2.h"
#include "hdr.h"

#define CONNS	4  /* the last one takes requests, the others end */
#define CONNECT 10 /* s, until a connection is there */
#define IDLE	(NSEC / 10)

struct slot {
	struct http2_stream sl_stream; /* first: it is told by it */
	TAILQ_ENTRY(slot) sl_entry;    /* of those that ask nothing */
	bool sl_hot;
	bool sl_busy;	   /* it waits for an answer */
	bool sl_again;	   /* the server did not look at its request */
	uint64_t sl_turn;  /* of its request, ns */
	uint64_t sl_since; /* when it got the one before, ns */
};

TAILQ_HEAD(slots, slot);

struct conn {
	struct http2 *c_http2; /* NULL: none */
	bool c_full;	       /* the socket */
};

struct storm {
	unsigned s_hot, s_cold;
	double s_rate, s_lead, s_seconds, s_timeout; /* s_rate 0: none */
	struct targets s_target, s_targets; /* the hot one; the cold ones */

	struct conn s_conns[CONNS];
	unsigned s_now, s_opened; /* the last one's index; how many */
	struct slot *s_slots;
	struct slots s_free, s_free_cold;
	uint64_t s_start, s_end;  /* of what counts, ns */
	uint64_t s_next, s_total; /* turns, with a rate */
	unsigned s_busy;	  /* hot requests */
	uint64_t s_answered, s_cold_answered;
	uint64_t s_hot_bytes, s_cold_bytes;   /* of bodies, in all */
	uint64_t s_cold_before, s_cold_after; /* at s_start, at s_end */
	struct hdr s_latency;
	struct hdr s_delay; /* our own: a turn that was taken too late */
	struct tally s_tally;
	bool s_failed; /* there is no connection */
};

static void
usage(void)
{
	fputs("usage: h2storm [--hot N] [--cold N --urls FILE] [--rate N]\n"
	      "    [--lead S] [--seconds S] [--timeout S] URL\n",
	    stderr);
	exit(2);
}

/* Rounds up: never in the server's favour. */
static uint64_t
to_us(uint64_t ns)
{
	return (ns + 999) / 1000;
}

static uint64_t
turn_of(const struct storm *s, uint64_t i)
{
	return s->s_start + (uint64_t)((double)i * 1e9 / s->s_rate);
}

/* -------------------------------------------------------------- requests */

static void
ask(struct storm *s, struct slot *sl, uint64_t turn)
{
	struct targets *ts = sl->sl_hot ? &s->s_target : &s->s_targets;

	TAILQ_REMOVE(sl->sl_hot ? &s->s_free : &s->s_free_cold, sl, sl_entry);
	sl->sl_turn = turn;
	s->s_busy += sl->sl_hot && !sl->sl_busy;
	sl->sl_busy = true;
	sl->sl_again = false;
	http2_ask(s->s_conns[s->s_now].c_http2, &ts->ts_list[targets_next(ts)],
	    &sl->sl_stream);
}

static void
ask_at_rate(struct storm *s, struct slot *sl, uint64_t now)
{
	uint64_t turn = turn_of(s, s->s_next++);

	hdr_record(&s->s_delay,
	    to_us(now - (turn > sl->sl_since ? turn : sl->sl_since)));
	ask(s, sl, turn);
}

/* Whether another hot request begins: with a rate, when its turn has come. */
static bool
hot_due(const struct storm *s, uint64_t now)
{
	if (s->s_rate > 0)
		return s->s_next < s->s_total && turn_of(s, s->s_next) <= now;
	return now >= s->s_start && now < s->s_end;
}

static void
ask_due(struct storm *s)
{
	uint64_t now = client_now();
	struct slot *sl;

	while ((sl = TAILQ_FIRST(&s->s_free_cold)) != NULL)
		ask(s, sl, now);
	while ((sl = TAILQ_FIRST(&s->s_free)) != NULL) {
		if (sl->sl_again)
			ask(s, sl, sl->sl_turn);
		else if (!hot_due(s, now))
			break;
		else if (s->s_rate > 0)
			ask_at_rate(s, sl, now);
		else
			ask(s, sl, now);
	}
}

static void
answered(struct storm *s, const struct slot *sl, uint64_t now)
{
	bool counts = now >= s->s_start && now < s->s_end;

	s->s_tally.ta_statuses[sl->sl_stream.hs_status]++;
	if (sl->sl_hot) {
		hdr_record(&s->s_latency, to_us(now - sl->sl_turn));
		s->s_answered += counts;
	} else {
		s->s_cold_answered += counts;
	}
}

static void
on_end(void *owner, struct http2_stream *hs, enum failure why)
{
	struct slot *sl = (struct slot *)(void *)hs;
	struct storm *s = owner;
	struct slots *list = sl->sl_hot ? &s->s_free : &s->s_free_cold;

	sl->sl_again = why == FAILURE_UNSENT;
	if (sl->sl_again) {
		TAILQ_INSERT_HEAD(list, sl, sl_entry);
		return;
	}
	s->s_busy -= sl->sl_hot;
	sl->sl_busy = false;
	sl->sl_since = client_now();
	TAILQ_INSERT_TAIL(list, sl, sl_entry);
	if (why == FAILURE_NONE)
		answered(s, sl, sl->sl_since);
	else
		s->s_tally.ta_failures[why]++;
}

/* ----------------------------------------------------------- connections */

static int
connected(int fd)
{
	uint64_t until = client_now() + CONNECT * NSEC;
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};
	int error = EAGAIN;

	while (error == EAGAIN && client_now() < until && !client_stopped) {
		if (poll(&pfd, 1, 100) <= 0)
			continue;
		error = client_connected(fd);
		pfd.events = POLLIN;
	}
	return error;
}

/* The one before goes on with what it has; this one waits, the time of a handshake. */
static void
conn_open(struct storm *s)
{
	unsigned next = (s->s_now + 1) % CONNS;
	int fd = client_connect(&s->s_target, 0, 0);

	if (fd >= 0 && s->s_conns[next].c_http2 == NULL && connected(fd) == 0) {
		s->s_conns[next].c_http2 =
		    http2_new(fd, &s->s_target, on_end, s);
		s->s_now = next;
		s->s_opened++;
		return;
	}
	if (fd >= 0)
		client_close(fd);
	s->s_tally.ta_failures[FAILURE_CONNECT]++;
	s->s_failed = true;
}

/* Streams that end with it are lost: those of the last connection end the run. */
static void
conn_lost(struct storm *s, struct conn *c, enum failure why)
{
	if (http2_busy(c->c_http2) > 0 || !http2_ending(c->c_http2)) {
		s->s_tally.ta_failures[why]++;
		s->s_failed = true;
	}
	http2_free(&c->c_http2);
}

static void
conn_write(struct storm *s, struct conn *c)
{
	enum failure why = http2_write(c->c_http2);

	c->c_full = why == FAILURE_AGAIN;
	if (why != FAILURE_NONE && why != FAILURE_AGAIN)
		conn_lost(s, c, why);
}

static void
conn_read(struct storm *s, struct conn *c)
{
	enum failure why = http2_read(c->c_http2);

	if (why != FAILURE_NONE && why != FAILURE_AGAIN)
		conn_lost(s, c, why);
	else if (http2_ending(c->c_http2) && http2_busy(c->c_http2) == 0)
		http2_free(&c->c_http2);
}

/* ------------------------------------------------------------------ loop */

/* ns until something is due, at most IDLE. */
static uint64_t
until_due(const struct storm *s, uint64_t now)
{
	uint64_t at = now < s->s_start ? s->s_start : now + IDLE;

	if (s->s_rate > 0 && s->s_next < s->s_total && !TAILQ_EMPTY(&s->s_free))
		at = turn_of(s, s->s_next);
	if (now < s->s_end && at > s->s_end)
		at = s->s_end;
	if (at <= now)
		return 0;
	return at - now < IDLE ? at - now : IDLE;
}

static void
wait_for_events(struct storm *s)
{
	uint64_t ns = until_due(s, client_now());
	struct timespec ts = {
	    .tv_sec = (time_t)(ns / NSEC), .tv_nsec = (long)(ns % NSEC)};
	struct pollfd pfds[CONNS];

	for (unsigned i = 0; i < CONNS; i++) {
		struct conn *c = &s->s_conns[i];

		pfds[i].fd = c->c_http2 != NULL ? http2_fd(c->c_http2) : -1;
		pfds[i].events = (short)(POLLIN | (c->c_full ? POLLOUT : 0));
		pfds[i].revents = 0;
	}
	if (ppoll(pfds, CONNS, &ts, NULL) == -1 && errno != EINTR)
		err(1, "ppoll");
	for (unsigned i = 0; i < CONNS; i++)
		if (pfds[i].revents & (POLLIN | POLLHUP | POLLERR))
			conn_read(s, &s->s_conns[i]);
}

static void
turn(struct storm *s)
{
	struct conn *last = &s->s_conns[s->s_now];

	if (last->c_http2 == NULL || http2_ending(last->c_http2))
		conn_open(s);
	if (s->s_failed)
		return;
	ask_due(s);
	for (unsigned i = 0; i < CONNS; i++)
		if (s->s_conns[i].c_http2 != NULL)
			conn_write(s, &s->s_conns[i]);
	wait_for_events(s);
}

/* Hot requests that have begun, or whose turn has come, are waited for. */
static bool
over(const struct storm *s, uint64_t now)
{
	if (client_stopped || s->s_failed)
		return true;
	if (now < s->s_end)
		return false;
	return (s->s_busy == 0 && s->s_next == s->s_total) ||
	       now >= s->s_end + (uint64_t)(s->s_timeout * 1e9);
}

static void
setup(struct storm *s)
{
	unsigned n = s->s_hot + s->s_cold;

	TAILQ_INIT(&s->s_free);
	TAILQ_INIT(&s->s_free_cold);
	s->s_slots = calloc(n, sizeof(*s->s_slots));
	if (s->s_slots == NULL)
		err(1, NULL);
	for (unsigned i = 0; i < n; i++) {
		struct slot *sl = &s->s_slots[i];

		sl->sl_hot = i < s->s_hot;
		sl->sl_stream.hs_body =
		    sl->sl_hot ? &s->s_hot_bytes : &s->s_cold_bytes;
		TAILQ_INSERT_TAIL(
		    sl->sl_hot ? &s->s_free : &s->s_free_cold, sl, sl_entry);
	}
	http2_start(&s->s_target);
	conn_open(s);
	if (s->s_failed)
		errx(1, "%s: cannot connect with HTTP/2",
		    s->s_target.ts_authority);
}

/* The bytes of cold answers at the first look after a time. */
static void
note_cold(struct storm *s, uint64_t now)
{
	if (now < s->s_start)
		s->s_cold_before = s->s_cold_bytes;
	if (now < s->s_end)
		s->s_cold_after = s->s_cold_bytes;
}

static void
run(struct storm *s)
{
	uint64_t now = client_now();

	s->s_start = now + (uint64_t)(s->s_lead * 1e9);
	s->s_end = s->s_start + (uint64_t)(s->s_seconds * 1e9);
	if (s->s_hot > 0)
		s->s_total = (uint64_t)(s->s_rate * s->s_seconds + 0.5);
	while (!over(s, now)) {
		turn(s);
		now = client_now();
		note_cold(s, now);
	}
	if (s->s_end > now)
		s->s_end = now;
}

/* Who waits has waited until now; so has who could not ask when it was its turn. */
static void
finish(struct storm *s)
{
	uint64_t now = client_now();

	for (unsigned i = 0; i < s->s_hot; i++) {
		const struct slot *sl = &s->s_slots[i];

		if (!sl->sl_busy)
			continue;
		s->s_tally.ta_failures[FAILURE_UNANSWERED]++;
		hdr_record(&s->s_latency, to_us(now - sl->sl_turn));
	}
	for (; s->s_next < s->s_total && turn_of(s, s->s_next) <= now;
	     s->s_next++) {
		s->s_tally.ta_failures[FAILURE_UNSENT]++;
		hdr_record(&s->s_latency, to_us(now - turn_of(s, s->s_next)));
	}
	for (unsigned i = 0; i < CONNS; i++)
		if (s->s_conns[i].c_http2 != NULL)
			http2_free(&s->s_conns[i].c_http2);
}

static void
print(const struct storm *s)
{
	double seconds =
	    s->s_end > s->s_start ? (double)(s->s_end - s->s_start) / 1e9 : 0;
	uint64_t bytes = s->s_cold_after - s->s_cold_before;

	printf("{\"hot\": %u, \"cold\": %u, \"requested_rate\": %.15g, "
	       "\"seconds\": %.3f, \"connections\": %u, "
	       "\"interrupted\": %s,\n",
	    s->s_hot, s->s_cold, s->s_rate, seconds, s->s_opened,
	    client_stopped ? "true" : "false");
	printf("\"requests\": %" PRIu64 ", \"rate\": %.3f, "
	       "\"cold_requests\": %" PRIu64 ", \"cold_bytes\": %" PRIu64
	       ", \"cold_bytes_per_second\": %.0f,\n",
	    s->s_answered, seconds > 0 ? (double)s->s_answered / seconds : 0,
	    s->s_cold_answered, bytes,
	    seconds > 0 ? (double)bytes / seconds : 0);
	tally_print(stdout, &s->s_tally);
	printf(",\n\"latency_us\": {");
	hdr_print_summary(stdout, &s->s_latency);
	printf("},\n\"own_delay_us\": {");
	hdr_print_summary(stdout, &s->s_delay);
	printf("},\n");
	hdr_print_buckets(stdout, &s->s_latency);
	printf("}\n");
}

static void
parse(struct storm *s, int argc, char **argv)
{
	static const struct option options[] = {{"hot", 1, NULL, 'h'},
	    {"cold", 1, NULL, 'c'}, {"urls", 1, NULL, 'u'},
	    {"rate", 1, NULL, 'r'}, {"lead", 1, NULL, 'l'},
	    {"seconds", 1, NULL, 's'}, {"timeout", 1, NULL, 't'}, {0}};
	const char *file = NULL, *name;
	int c, i;

	while ((c = getopt_long(argc, argv, "", options, &i)) != -1) {
		name = c == '?' ? "" : options[i].name;
		if (c == 'h')
			s->s_hot =
			    (unsigned)client_number(name, optarg, 0, 1e4);
		else if (c == 'c')
			s->s_cold =
			    (unsigned)client_number(name, optarg, 0, 1e4);
		else if (c == 'u')
			file = optarg;
		else if (c == 'r')
			s->s_rate = client_number(name, optarg, 0.001, 1e7);
		else if (c == 'l')
			s->s_lead = client_number(name, optarg, 0, 1e6);
		else if (c == 's')
			s->s_seconds = client_number(name, optarg, 0.001, 1e6);
		else if (c == 't')
			s->s_timeout = client_number(name, optarg, 0.001, 1e6);
		else
			usage();
	}
	if (argc - optind != 1 || (s->s_cold > 0) != (file != NULL) ||
	    s->s_hot + s->s_cold == 0)
		usage();
	targets_load(&s->s_target, argv[optind], NULL);
	if (file != NULL)
		targets_load(&s->s_targets, argv[optind], file);
}

int
main(int argc, char **argv)
{
	static struct storm s = {.s_hot = 15, .s_seconds = 10, .s_timeout = 10};

	parse(&s, argc, argv);
	client_catch_signals();
	setup(&s);
	run(&s);
	finish(&s);
	print(&s);
	targets_free(&s.s_target);
	targets_free(&s.s_targets);
	free(s.s_slots);
	return 0;
}
