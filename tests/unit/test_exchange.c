/*
 * Tests of server/content/exchange.h with an owner that is no connection of HTTP/1: a hundred
 * exchanges at once go out by one connection, as HTTP/2 will have it.  Each has a sink that
 * takes a little at a time.
 */
#define ON_ONE_CPU
#include "lib_fixture.h"

#include <limits.h>

#include "lib/util/clock.h"
#include "server/content/autoindex_cache.h"
#include "server/content/exchange.h"

#define EXCHANGES 100
#define SIZE	  ((size_t)200 * KIB + 7)
#define FRAME	  ((size_t)16 << 10) /* bytes that one takes in its turn */

enum kind { HOT, COLD, LISTING, ABSENT, KINDS };

static const struct {
	const char *head;
	int status;
} asked[KINDS] = {
    [HOT] = {"GET /hot HTTP/1.1\r\nHost: a.example\r\n\r\n", 200},
    [COLD] = {"GET /cold HTTP/1.1\r\nHost: a.example\r\n\r\n", 200},
    [LISTING] = {"GET /d/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 200},
    [ABSENT] = {"GET /nobody HTTP/1.1\r\nHost: a.example\r\n\r\n", 404},
};

/* A stream: what came out of it, and where it stands. */
struct stream {
	struct pw_sink sm_sink; /* the first */
	struct exchange *sm_ex; /* NULL: it has ended */
	enum kind sm_kind;
	int sm_cancel; /* after so many steps; -1: never */
	int sm_steps;
	bool sm_answered; /* the answer is being sent */
	bool sm_cut;
	size_t sm_due_entry; /* bytes that it may still take in this turn */
	size_t sm_len;
	char sm_data[SIZE + 8192];
};

struct many {
	struct service my_service;
	struct stream my_streams[EXCHANGES];
	unsigned my_waits, my_resumed, my_cut_waiting;
};

static struct many *many;

static int
take(struct pw_sink *sk, const char *mem, size_t len, bool more, size_t *taken)
{
	struct stream *sm = (struct stream *)sk;

	(void)more;
	if (sm->sm_due_entry == 0)
		return -EAGAIN;
	*taken = len < sm->sm_due_entry ? len : sm->sm_due_entry;
	assert_true(sm->sm_len + *taken < sizeof(sm->sm_data));
	memcpy(sm->sm_data + sm->sm_len, mem, *taken);
	sm->sm_len += *taken;
	sm->sm_due_entry -= *taken;
	return 0;
}

static long
unacked(struct pw_sink *sk)
{
	(void)sk;
	return -1;
}

static void
resumed(struct exchange *ex)
{
	struct stream *sm = ex->ex_owner;

	assert_false(ex->ex_pending);
	many->my_resumed++;
	if (sm->sm_cut)
		exchange_free(&sm->sm_ex);
}

static bool
last(const struct exchange *ex)
{
	(void)ex;
	return false;
}

static bool
send_now(struct exchange *ex, const char *text, size_t len)
{
	(void)ex, (void)text, (void)len;
	fail_msg("no disk hangs here");
	return false;
}

static const union sockaddr_any client = {
    .in = {.sin_family = AF_INET, .sin_port = 4711}};

static void
begin(struct stream *sm)
{
	static const struct pw_sink_ops sinks = {
	    .take = take, .unacked = unacked};
	static const struct exchange_ops ops = {
	    .resumed = resumed, .last = last, .send_now = send_now};
	const char *head = asked[sm->sm_kind].head;
	struct exchange *ex = exchange_create(&many->my_service, &ops, sm);

	assert_non_null(ex);
	ex->ex_peer = &client.sa;
	sm->sm_sink.sk_ops = &sinks;
	sm->sm_ex = ex;
	ex->ex_sock = -1;
	ex->ex_sink = &sm->sm_sink;
	assert_int_equal(
	    request_parse(&ex->ex_request, (struct str){head, strlen(head)}, 0,
		&many->my_service.svc_bufs),
	    0);
	sm->sm_answered = exchange_respond(ex, 0);
	if (!sm->sm_answered)
		exchange_wait(ex);
}

static void
cancel(struct stream *sm)
{
	sm->sm_cut = true;
	if (!sm->sm_ex->ex_pending) {
		exchange_free(&sm->sm_ex);
		return;
	}
	many->my_cut_waiting++;
	exchange_cancel(sm->sm_ex);
}

static void
send_on(struct stream *sm)
{
	sm->sm_due_entry = FRAME;
	switch (response_step(sm->sm_ex)) {
	case PW_SEND_DONE:
		exchange_free(&sm->sm_ex);
		break;
	case PW_SEND_PENDING:
		exchange_wait(sm->sm_ex);
		break;
	case PW_SEND_ERROR:
		fail_msg("error %d", sm->sm_ex->ex_response.rs_send.snd_error);
		break;
	case PW_SEND_AGAIN:
	case PW_SEND_WANT_WRITE:
		break;
	}
}

static void
go_on(struct stream *sm)
{
	if (sm->sm_ex == NULL || sm->sm_cut)
		return;
	if (sm->sm_steps++ == sm->sm_cancel) {
		cancel(sm);
		return;
	}
	if (sm->sm_ex->ex_pending) {
		many->my_waits++;
		return;
	}
	if (sm->sm_answered)
		send_on(sm);
	else if (exchange_continue(sm->sm_ex))
		sm->sm_answered = true;
	else
		exchange_wait(sm->sm_ex);
}

static size_t
living(void)
{
	size_t i, n = 0;

	for (i = 0; i < EXCHANGES; i++)
		n += many->my_streams[i].sm_ex != NULL;
	return n;
}

static void
run(void)
{
	while (living() > 0) {
		for (size_t i = 0; i < EXCHANGES; i++)
			go_on(&many->my_streams[i]);
		if (pw_loop_pending(fx->fx_loop) > 0) {
			pw_loop_tick(fx->fx_loop, clock_now());
			settle(fx->fx_loop);
		}
	}
}

static void
is_whole(const struct stream *sm)
{
	const char *body = strstr(sm->sm_data, "\r\n\r\n");
	char line[32], *expected;
	size_t len;

	assert_non_null(body);
	body += 4;
	len = sm->sm_len - (size_t)(body - sm->sm_data);
	snprintf(line, sizeof(line), "HTTP/1.1 %d ", asked[sm->sm_kind].status);
	assert_memory_equal(sm->sm_data, line, strlen(line));
	if (sm->sm_kind == LISTING)
		assert_non_null(strstr(body, "href=\"inside\""));
	if (sm->sm_kind == LISTING || sm->sm_kind == ABSENT)
		return;
	expected = malloc(SIZE);
	assert_non_null(expected);
	fill(expected, 0, SIZE);
	assert_int_equal(len, SIZE);
	assert_memory_equal(body, expected, SIZE);
	free(expected);
}

static struct conf *
load(void)
{
	char *argv[] = {"pagewise", "--root", fx->fx_dir, "--autoindex", NULL};
	struct conf *conf;

	assert_int_equal(conf_load(4, argv, NULL, &conf), CONF_RUN);
	return conf;
}

static void
create(struct log *lg)
{
	struct service *svc;

	many = calloc(1, sizeof(*many));
	assert_non_null(many);
	svc = &many->my_service;
	svc->svc_conf = load();
	svc->svc_loop = fx->fx_loop;
	svc->svc_log = log_writer(lg, 0);
	svc->svc_roots = &fx->fx_root;
	svc->svc_listings = autoindex_cache_create(AUTOINDEX_CACHE_ALIVE);
	svc->svc_ranges = calloc(RANGE_MOST, sizeof(*svc->svc_ranges));
}

static void
destroy(void)
{
	struct conf *conf = (struct conf *)(uintptr_t)many->my_service.svc_conf;

	autoindex_cache_destroy(&many->my_service.svc_listings);
	service_end(&many->my_service);
	free(many);
	conf_destroy(&conf);
}

static void
make_files(void)
{
	SCOPED_FILE *file;

	make_file("hot", SIZE);
	make_file("cold", SIZE);
	assert_int_equal(mkdir(path_in("d"), 0755), 0);
	make_empty("d/inside");
	file = open_file("cold");
	evict(file->fil_fd, SIZE);
}

TEST(one_connection_sends_a_hundred_responses)
{
	_Atomic uint64_t *counts;
	SCOPED(log_destroy) struct log *lg;
	struct stream *sm;
	uint64_t expected[KINDS] = {0}, cut = 0;

	assert_int_equal(
	    log_create(NULL, LOG_COMBINED, 1, &lg, &(bool){false}), 0);
	make_files();
	create(lg);
	for (size_t i = 0; i < EXCHANGES; i++) {
		sm = &many->my_streams[i];
		sm->sm_kind = (enum kind)(i % KINDS);
		/* Every second one of a kind is cancelled, each in another step. */
		sm->sm_cancel = i / KINDS % 2 == 0 ? -1 : (int)(i / KINDS / 2);
		begin(sm);
	}
	run();
	for (size_t i = 0; i < EXCHANGES; i++) {
		sm = &many->my_streams[i];
		if (!sm->sm_cut) {
			is_whole(sm);
			expected[sm->sm_kind]++;
		}
		cut += sm->sm_cut;
	}
	counts = many->my_service.svc_stats.sta_status;
	assert_true(cut > 0 && many->my_cut_waiting > 0);
	assert_true(many->my_waits > 0 && many->my_resumed > 0);
	/* Each is counted once: as what it was answered with, or as never answered. */
	assert_in_range(counter_get(&counts[200 - STATS_STATUS]),
	    expected[HOT] + expected[COLD] + expected[LISTING],
	    expected[HOT] + expected[COLD] + expected[LISTING] + cut);
	assert_true(
	    counter_get(&counts[404 - STATS_STATUS]) >= expected[ABSENT]);
	assert_int_equal(counter_get(&counts[200 - STATS_STATUS]) +
			     counter_get(&counts[404 - STATS_STATUS]) +
			     counter_get(&counts[499 - STATS_STATUS]),
	    EXCHANGES);
	destroy();
}

static bool made_progress;

static bool
is_slow(struct exchange *ex)
{
	(void)ex;
	return made_progress;
}

/* Returns after how many parts of disk_timeout the wait ends, if the disk makes progress in the first `n`. */
static unsigned
patience(const struct pending *pn, unsigned n)
{
	static struct exchange ex;
	unsigned parts = 0;

	exchange_pend(&ex, pn);
	exchange_wait(&ex);
	do
		made_progress = parts++ < n;
	while (exchange_has_patience(&ex));
	return parts;
}

TEST(a_wait_for_a_disk_ends_after_disk_timeout_unless_the_disk_goes_on, NULL)
{
	static const struct pending window = {.slow = is_slow}, lookup = {0};

	for (unsigned n = 0; n < DISK_LOOKS; n++)
		assert_int_equal(patience(&window, n), DISK_LOOKS);
	for (unsigned n = DISK_LOOKS; n < 10 * DISK_LOOKS; n++)
		assert_int_equal(patience(&window, n), n + 1);
	assert_int_equal(patience(&window, UINT_MAX), 10 * DISK_LOOKS);
	assert_int_equal(patience(&lookup, UINT_MAX), DISK_LOOKS);
}
