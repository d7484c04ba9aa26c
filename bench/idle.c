/*
 * idle: a great many connections that are kept, each after one request and its
 * answer.  When all are there it says so in a line; then it counts those that
 * the server closes.  Nothing is kept for a connection but its descriptor; of HTTP/2
 * all of the state goes when the answer is there.  Then it may ask for more on streams whose
 * window stays closed: these wait in the server.  Linux.
 */
#include <sys/epoll.h>

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "client_http2.h"
#include "frames.h"

#define EVENTS	 256
#define STARTING 256 /* under way at a time: less than any backlog */
#define SHAKING \
	64 /* the same over TLS: servers bound an address's handshakes */
#define PER_SOURCE  10000 /* connections: an address has 28232 ports */
#define FIRST	    2	  /* 127.0.0.2; the first is for others */
#define DESCRIPTORS 16	  /* beside the connections' */
#define STREAMS	    1000  /* at most, of a connection */
#define TURN	    100	  /* ms */
#define IDLE	    NULL  /* in place of a slot */

/* A connection until it has its answer. */
struct slot {
	int sl_fd; /* -1: free */
	bool sl_sent;
	struct response sl_response;
	struct http2 *sl_http2; /* or NULL */
	struct http2_stream sl_stream;
	enum failure sl_why; /* of its stream */
};

struct idle {
	unsigned i_n;
	bool i_http2;
	unsigned i_streams;	/* of each connection, that wait */
	unsigned char *i_asked; /* what is sent for them */
	size_t i_asked_len;
	double i_seconds, i_timeout; /* from the line on; until then */
	struct targets i_targets;
	uint64_t i_start, i_ready; /* ns; i_ready 0: not yet */
	int i_epoll;
	unsigned i_begun, i_done;
	unsigned i_source; /* the last address */
	unsigned i_held, i_lost;
	int i_error; /* of the first connection that failed */
	struct tally i_tally;
	uint64_t i_body; /* bytes, of answers of HTTP/2 */
	struct slot i_slots[STARTING];
};

static void
usage(void)
{
	fputs("usage: idle [--connections N] [--http2 [--streams N]] "
	      "[--seconds S]\n"
	      "    [--timeout S] URL\n",
	    stderr);
	exit(2);
}

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
	i->i_tally.ta_failures[why]++;
	if (i->i_error == 0)
		i->i_error = error;
	if (sl->sl_http2 != NULL)
		http2_leave(&sl->sl_http2);
	if (sl->sl_fd >= 0)
		client_close(sl->sl_fd);
	sl->sl_fd = -1;
	i->i_done++;
}

/* An address is left before its ports are used up, which would make it slow. */
static void
begin(struct idle *i, struct slot *sl)
{
	unsigned source = FIRST + i->i_begun++ / PER_SOURCE;

	if (i->i_source < source)
		i->i_source = source;
	sl->sl_fd = client_connect_from(&i->i_targets, 0, &i->i_source);
	sl->sl_sent = false;
	if (sl->sl_fd < 0)
		failed(i, sl, FAILURE_CONNECT, -sl->sl_fd);
	else
		watch(i, EPOLL_CTL_ADD, sl->sl_fd, EPOLLOUT, sl);
}

static void
begin_some(struct idle *i)
{
	unsigned most = i->i_targets.ts_tls ? SHAKING : STARTING;

	for (unsigned n = 0; n < most && i->i_begun < i->i_n; n++)
		if (i->i_slots[n].sl_fd < 0)
			begin(i, &i->i_slots[n]);
}

static void
on_end(void *owner, struct http2_stream *hs, enum failure why)
{
	struct slot *sl = owner;

	sl->sl_why = why;
	if (why == FAILURE_NONE)
		sl->sl_response = (struct response){
		    .r_state = RESPONSE_DONE, .r_status = hs->hs_status};
}

/* Of a connection all that is sent fits into an empty socket buffer. */
static enum failure
send_request(struct idle *i, struct slot *sl)
{
	const struct target *t =
	    &i->i_targets.ts_list[targets_next(&i->i_targets)];

	if (!i->i_http2)
		return client_send(sl->sl_fd, t, &sl->sl_response);
	response_init(&sl->sl_response);
	sl->sl_why = FAILURE_NONE;
	sl->sl_stream.hs_body = &i->i_body;
	sl->sl_http2 = http2_new(sl->sl_fd, &i->i_targets, on_end, sl);
	http2_ask(sl->sl_http2, t, &sl->sl_stream);
	return http2_write(sl->sl_http2);
}

static void
ask(struct idle *i, struct slot *sl)
{
	int error = client_connected(sl->sl_fd);

	sl->sl_sent = error != EAGAIN;
	if (error == EAGAIN)
		watch(i, EPOLL_CTL_MOD, sl->sl_fd, EPOLLIN, sl);
	else if (error != 0)
		failed(i, sl, FAILURE_CONNECT, error);
	else if (send_request(i, sl) != FAILURE_NONE)
		failed(i, sl, FAILURE_WRITE, errno);
	else
		watch(i, EPOLL_CTL_MOD, sl->sl_fd, EPOLLIN, sl);
}

/* What comes now is not read: tickets of TLS, frames that are about the connection. */
static uint32_t
end_only(const struct idle *i)
{
	return i->i_targets.ts_tls || i->i_http2 ? EPOLLRDHUP
						 : EPOLLIN | EPOLLRDHUP;
}

/* From here on windows are closed; stream 1 has had its answer. */
static void
prepare_streams(struct idle *i)
{
	const unsigned char no_window[] = {0, 4, 0, 0, 0, 0};
	unsigned char *to = malloc(
	    FRAMES_HEAD + sizeof(no_window) + i->i_streams * FRAMES_REQUEST);
	size_t n;

	if (to == NULL)
		err(1, NULL);
	n = frames_head(to, sizeof(no_window), FRAME_SETTINGS, 0, 0);
	memcpy(to + n, no_window, sizeof(no_window));
	n += sizeof(no_window);
	for (uint32_t k = 1; k <= i->i_streams; k++)
		n += frames_get(to + n, &i->i_targets, 2 * k + 1);
	i->i_asked = to;
	i->i_asked_len = n;
}

/* It fits into the socket's buffer. */
static bool
ask_for_streams(const struct idle *i, const struct slot *sl)
{
	return i->i_streams == 0 ||
	       client_write(sl->sl_fd, i->i_asked, i->i_asked_len) ==
		   (ssize_t)i->i_asked_len;
}

static void
answered(struct idle *i, struct slot *sl)
{
	i->i_tally.ta_statuses[sl->sl_response.r_status]++;
	if (sl->sl_response.r_close) {
		failed(i, sl, FAILURE_CLOSED, 0);
		return;
	}
	if (sl->sl_http2 != NULL)
		http2_leave(&sl->sl_http2);
	if (!ask_for_streams(i, sl)) {
		failed(i, sl, FAILURE_WRITE, errno);
		return;
	}
	client_forget(sl->sl_fd);
	watch(i, EPOLL_CTL_MOD, sl->sl_fd, end_only(i), IDLE);
	i->i_held++;
	sl->sl_fd = -1;
	i->i_done++;
}

/* With an answer to what the server says of the connection. */
static enum failure
receive(struct slot *sl)
{
	enum failure why;
	struct chunk ch;

	if (sl->sl_http2 == NULL)
		return client_recv(
		    sl->sl_fd, &sl->sl_response, SIZE_MAX, true, &ch);
	why = http2_read(sl->sl_http2);
	if (why != FAILURE_NONE)
		return why;
	if (sl->sl_why != FAILURE_NONE || http2_ending(sl->sl_http2))
		return sl->sl_why != FAILURE_NONE ? sl->sl_why : FAILURE_CLOSED;
	return http2_write(sl->sl_http2);
}

static void
take(struct idle *i, struct slot *sl)
{
	enum failure why = receive(sl);

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
	i->i_held--;
	i->i_lost++;
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
	for (unsigned n = 0; n < STARTING; n++)
		if (i->i_slots[n].sl_fd >= 0)
			failed(i, &i->i_slots[n], FAILURE_TIMEOUT, 0);
	i->i_tally.ta_failures[FAILURE_UNSENT] += i->i_n - i->i_begun;
	i->i_begun = i->i_done = i->i_n;
}

static void
print(const struct idle *i, const char *key, uint64_t since)
{
	printf("{\"%s\": %u, \"connections\": %u, \"lost\": %u, "
	       "\"seconds\": %.3f, \"source_addresses\": %u, "
	       "\"first_error\": ",
	    key, i->i_held, i->i_n, i->i_lost,
	    (double)(client_now() - since) / 1e9,
	    i->i_source < FIRST ? 1 : i->i_source - FIRST + 1);
	if (i->i_error != 0)
		printf("\"%s\", ", strerror(i->i_error));
	else
		printf("null, ");
	tally_print(stdout, &i->i_tally);
	printf("}\n");
	fflush(stdout);
}

static void
settle(struct idle *i)
{
	if (client_now() - i->i_start > (uint64_t)(i->i_timeout * 1e9))
		give_up(i);
	if (i->i_done < i->i_n)
		return;
	i->i_ready = client_now();
	print(i, "ready", i->i_start);
}

static void
wait_for_events(struct idle *i)
{
	struct epoll_event evs[EVENTS];
	int n = epoll_wait(i->i_epoll, evs, EVENTS, TURN);

	if (n == -1 && errno != EINTR)
		err(1, "epoll_wait");
	for (int k = 0; k < n; k++)
		on_event(i, &evs[k]);
}

static void
hold(struct idle *i)
{
	uint64_t length = (uint64_t)(i->i_seconds * 1e9);

	i->i_start = client_now();
	i->i_epoll = epoll_create1(EPOLL_CLOEXEC);
	if (i->i_epoll == -1)
		err(1, "epoll");
	for (int n = 0; n < STARTING; n++)
		i->i_slots[n].sl_fd = -1;
	while (!client_stopped &&
	       (i->i_ready == 0 || client_now() - i->i_ready < length)) {
		begin_some(i);
		wait_for_events(i);
		if (i->i_ready == 0)
			settle(i);
	}
	print(i, "held", i->i_ready != 0 ? i->i_ready : i->i_start);
}

static void
parse(struct idle *i, int argc, char **argv)
{
	static const struct option options[] = {{"connections", 1, NULL, 'c'},
	    {"http2", 0, NULL, '2'}, {"streams", 1, NULL, 'm'},
	    {"seconds", 1, NULL, 's'}, {"timeout", 1, NULL, 't'}, {0}};
	const char *name;
	int c, nth;

	while ((c = getopt_long(argc, argv, "", options, &nth)) != -1) {
		name = c == '?' ? "" : options[nth].name;
		if (c == 'c')
			i->i_n = (unsigned)client_number(name, optarg, 1, 1e6);
		else if (c == '2')
			i->i_http2 = true;
		else if (c == 'm')
			i->i_streams =
			    (unsigned)client_number(name, optarg, 0, STREAMS);
		else if (c == 's')
			i->i_seconds = client_number(name, optarg, 0, 1e6);
		else if (c == 't')
			i->i_timeout = client_number(name, optarg, 0.001, 1e6);
		else
			usage();
	}
	if (argc - optind != 1 || (i->i_streams > 0 && !i->i_http2))
		usage();
	targets_load(&i->i_targets, argv[optind], NULL);
	if (i->i_http2)
		http2_start(&i->i_targets);
	if (i->i_streams > 0)
		prepare_streams(i);
}

int
main(int argc, char **argv)
{
	static struct idle i = {
	    .i_n = 1000, .i_seconds = 1e6, .i_timeout = 120};

	parse(&i, argc, argv);
	client_descriptors(i.i_n + DESCRIPTORS);
	client_catch_signals();
	hold(&i);
	targets_free(&i.i_targets);
	free(i.i_asked);
	return 0;
}
