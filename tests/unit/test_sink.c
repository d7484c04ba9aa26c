/*
 * Tests of lib/send/sink.c: a pw_sink is full, fails, and is never given what would have to be
 * waited for.  That every path sends the same bytes into one: test_send.c.
 */
#define ON_ONE_CPU
#include "xfer_fixture.h"

#include "lib/disk/completion.h"

#include "lib/send/path.h"
#include "lib/os/meter.h"
#include "lib/util/clock.h"

#define SIZE ((off_t)300 * KIB + 77)

/* As if what is copied were a page that is still being read. */
static bool refuses;
static unsigned refused;

long __real_os_read(int, off_t, void *, size_t, bool);
long __wrap_os_read(int, off_t, void *, size_t, bool);

long
__wrap_os_read(int fd, off_t off, void *to, size_t len, bool wait)
{
	if (!refuses || len == 1 || wait)
		return __real_os_read(fd, off, to, len, wait);
	refused++;
	return -EAGAIN;
}

static void
begin(struct xfer *xf, const char *path, struct wire *wr, struct pw_file *file)
{
	wire_wide(wr);
	xfer_init(xf, path, wr, file);
	xf->xf_send.snd_mem = "head";
	xf->xf_send.snd_mem_len = 4;
	xf->xf_send.snd_len = SIZE;
	xf->xf_send.snd_readahead = 64 * KIB;
	pw_send_start(&xf->xf_send);
}

static void
end(struct xfer *xf, struct wire *wr)
{
	pw_send_finish(&xf->xf_send);
	wire_close(wr);
}

static void
came(struct wire *wr)
{
	SCOPED(free_at) char *expected = malloc((size_t)SIZE);

	assert_non_null(expected);
	fill(expected, 0, (size_t)SIZE);
	wire_await(wr, 4 + (size_t)SIZE);
	assert_memory_equal(wr->wr_data, "head", 4);
	assert_memory_equal(wr->wr_data + 4, expected, (size_t)SIZE);
}

TEST(one_that_is_full_is_waited_for_and_goes_on_where_it_was, setup_sinks)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);
	const char *const *path;
	struct wire wr;
	struct xfer xf;
	uint64_t sent;

	for (path = pw_send_path_names(); *path != NULL; path++) {
		begin(&xf, *path, &wr, file);
		xfer_run(&xf, &wr, 50000);
		sent = xf.xf_send.snd_sent;
		if (xf.xf_send.snd_pending)
			settle(fx->fx_loop);
		xf.xf_sink.cy_error = -EAGAIN;
		while (xfer_step(&xf) == PW_SEND_PENDING)
			settle(fx->fx_loop);
		assert_int_equal(xf.xf_full, 1);
		assert_int_equal(xf.xf_send.snd_sent, sent);
		xf.xf_sink.cy_error = 0;
		assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
		assert_int_equal(xf.xf_sink.cy_taken, 4 + (size_t)SIZE);
		came(&wr);
		end(&xf, &wr);
	}
}

TEST(error_of_one_is_that_of_the_transmission, setup_sinks)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);
	const char *const *path;
	struct wire wr;
	struct xfer xf;

	for (path = pw_send_path_names(); *path != NULL; path++) {
		begin(&xf, *path, &wr, file);
		xfer_run(&xf, &wr, 50000);
		xf.xf_sink.cy_error = -EPROTO;
		assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_ERROR);
		assert_int_equal(xf.xf_send.snd_error, -EPROTO);
		end(&xf, &wr);
	}
}

/* As in a group that is short of memory: whatever was fetched has gone. */
TEST(what_is_evicted_again_and_again_is_read_apart, setup_sinks)
{
	SCOPED_FILE *file;
	struct wire wr;
	struct xfer xf;
	enum pw_send_status status;

	skip_unless(NEED_EVICTION);
	file = new_file("f", (size_t)SIZE);
	begin(&xf, "nodiskio", &wr, file);
	while (send_priv(&xf.xf_send)->ss_own == NULL) {
		assert_true(evict(file->fil_fd, (size_t)SIZE));
		usleep(2 * RESIDENCY_HOLDS);
		status = xfer_step(&xf);
		assert_true(
		    status == PW_SEND_PENDING || status == PW_SEND_AGAIN);
		if (send_priv(&xf.xf_send)->ss_own != NULL ||
		    status != PW_SEND_PENDING)
			continue;
		pw_loop_tick(fx->fx_loop, clock_now());
		settle(fx->fx_loop);
		pw_loop_drain(fx->fx_loop);
	}
	settle(fx->fx_loop);
	assert_true(evict(file->fil_fd, (size_t)SIZE));
	/* What it has is sent, without the file. */
	while (send_priv(&xf.xf_send)->ss_own != NULL) {
		status = xfer_step(&xf);
		assert_true(
		    status == PW_SEND_AGAIN || status == PW_SEND_WANT_WRITE);
	}
	assert_true(xf.xf_send.snd_off > 0);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	came(&wr);
	end(&xf, &wr);
}

TEST(what_is_refused_is_read_apart_and_not_asked_again, setup_sinks)
{
	SCOPED_FILE *file;
	struct wire wr;
	struct xfer xf;

	skip_unless(NEED_NOWAIT);
	file = new_file("f", (size_t)SIZE);
	begin(&xf, "nodiskio", &wr, file);
	refused = 0;
	refuses = true;
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	refuses = false;
	came(&wr);
	assert_in_range(refused, 1, SIZE / (16 * KIB));
	end(&xf, &wr);
}

TEST(loop_never_sleeps_in_a_copy, setup_sinks)
{
	struct pw_sleep list[PW_SLEEPS];
	SCOPED_FILE *file;
	struct wire wr;
	struct xfer xf;
	size_t i, n;

	skip_unless(NEED_EVICTION);
	file = new_file("f", (size_t)SIZE);
	for (i = 0; i < 20; i++) {
		assert_true(evict(file->fil_fd, (size_t)SIZE));
		usleep(2 * RESIDENCY_HOLDS);
		begin(&xf, "nodiskio", &wr, file);
		pw_loop_awake(fx->fx_loop, clock_now());
		while (xfer_step(&xf) != PW_SEND_PENDING)
			assert_true(xf.xf_send.snd_len > 0);
		pw_loop_rest(fx->fx_loop, clock_now());
		settle(fx->fx_loop);
		pw_loop_awake(fx->fx_loop, clock_now());
		while (xfer_step(&xf) == PW_SEND_AGAIN)
			continue;
		pw_loop_rest(fx->fx_loop, clock_now());
		if (xf.xf_send.snd_pending)
			settle(fx->fx_loop);
		end(&xf, &wr);
	}
	n = pw_loop_sleeps(fx->fx_loop, list);
	for (i = 0; i < n; i++)
		if (strcmp(list[i].sl_call, "preadv2") == 0)
			assert_int_equal(list[i].sl_times, 0);
}

/* It sends what is in reach, and reads no page behind that. */
TEST(what_is_out_of_reach_is_not_read, setup_sinks)
{
	off_t page = os_page_size();
	SCOPED_FILE *file;
	struct wire wr;
	struct xfer xf;

	skip_unless(NEED_EVICTION);
	file = new_file("f", (size_t)SIZE);
	assert_true(evict(file->fil_fd, (size_t)SIZE));
	begin(&xf, "nodiskio", &wr, file);
	pw_send_reach(&xf.xf_send, 0);
	assert_int_equal(xfer_step(&xf), PW_SEND_WANT_WRITE);
	assert_int_equal(xf.xf_sink.cy_calls, 0);
	for (off_t n = 1, all = 1; n < 20; n += 6, all += n) {
		pw_send_reach(&xf.xf_send, (uint64_t)(n * page) - 1);
		xfer_run(&xf, &wr, 4 + (uint64_t)(all * page));
		assert_int_equal(xf.xf_send.snd_off, all * page);
		assert_int_equal(xfer_step(&xf), PW_SEND_WANT_WRITE);
		/* Residency may be asked by pieces of 64 KiB. */
		assert_in_range(pages_resident(file->fil_fd, 0, (size_t)SIZE),
		    all, all + 64 * KIB / page);
	}
	pw_send_reach(&xf.xf_send, UINT64_MAX);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	came(&wr);
	end(&xf, &wr);
}

/* Has a queue of its own, as an event loop of others: what it was offered, and what has gone. */
struct queueing {
	struct pw_sink qu_sink; /* the first */
	struct pw_send qu_send;
	off_t qu_offered;
	off_t qu_gone;
	off_t qu_room; /* how far it may go now */
	unsigned qu_memory;
	bool qu_cold; /* something was offered that had to be waited for */
};

static int
queueing_take(
    struct pw_sink *sk, const char *mem, size_t len, bool more, size_t *taken)
{
	struct queueing *qu = (struct queueing *)sk;

	off_t room = qu->qu_room - qu->qu_gone;

	(void)mem, (void)more;
	qu->qu_memory++;
	*taken = room < (off_t)len ? (size_t)room : len;
	qu->qu_gone += (off_t)*taken;
	return *taken > 0 ? 0 : -EAGAIN;
}

static long
queueing_unacked(struct pw_sink *sk)
{
	(void)sk;
	return -1;
}

static int
queueing_take_range(
    struct pw_sink *sk, off_t off, size_t len, bool more, size_t *taken)
{
	struct queueing *qu = (struct queueing *)sk;
	off_t end = off + (off_t)len, to;

	assert_int_equal(off, qu->qu_gone);
	assert_int_equal(more, end < SIZE);
	if (end > qu->qu_offered)
		qu->qu_offered = end;
	if (!residency_ask(qu->qu_send.snd_file, off, qu->qu_offered - off))
		qu->qu_cold = true;
	to = qu->qu_room < end ? qu->qu_room : end;
	*taken = to > off ? (size_t)(to - off) : 0;
	qu->qu_gone += (off_t)*taken;
	return to < end ? -EAGAIN : 0;
}

static void
queueing_done(struct pw_send *s)
{
	(void)s;
}

static void
queueing_start(struct queueing *qu, const char *path, struct pw_file *f)
{
	static const struct pw_sink_ops ops = {.take = queueing_take,
	    .unacked = queueing_unacked,
	    .take_range = queueing_take_range};

	*qu = (struct queueing){.qu_sink = {&ops}};
	qu->qu_send.snd_path = pw_send_path(path);
	qu->qu_send.snd_loop = fx->fx_loop;
	qu->qu_send.snd_sock = -1;
	qu->qu_send.snd_sink = &qu->qu_sink;
	qu->qu_send.snd_file = f;
	qu->qu_send.snd_len = SIZE;
	qu->qu_send.snd_readahead = 128 * KIB;
	qu->qu_send.snd_done = queueing_done;
	qu->qu_room = SIZE;
	assert_int_equal(pw_send_start(&qu->qu_send), 0);
}

/* To the end, or until it is full. */
static enum pw_send_status
queueing_run(struct queueing *qu)
{
	enum pw_send_status status = PW_SEND_AGAIN;

	while (status == PW_SEND_AGAIN || status == PW_SEND_PENDING) {
		status = pw_send_step(&qu->qu_send);
		if (status != PW_SEND_PENDING)
			continue;
		pw_loop_tick(fx->fx_loop, clock_now());
		settle(fx->fx_loop);
	}
	return status;
}

TEST(one_that_takes_ranges_is_offered_each_byte_in_order, setup_sinks)
{
	struct pw_file *file = new_file("f", (size_t)SIZE);
	struct queueing qu;

	if (!residency_can_ask(file)) {
		pw_file_unref(&file);
		skip();
	}
	queueing_start(&qu, "nodiskio", file);
	qu.qu_room = 10000;
	assert_int_equal(queueing_run(&qu), PW_SEND_WANT_WRITE);
	assert_int_equal(qu.qu_send.snd_sent, 10000);
	assert_int_equal(queueing_run(&qu), PW_SEND_WANT_WRITE);
	qu.qu_room = SIZE;
	assert_int_equal(queueing_run(&qu), PW_SEND_DONE);
	assert_int_equal(qu.qu_gone, SIZE);
	/* The last byte comes in memory. */
	assert_int_equal(qu.qu_memory, 1);
	assert_int_equal(qu.qu_offered, SIZE - (off_t)SEND_LAST);
	pw_send_finish(&qu.qu_send);
	pw_file_unref(&file);
}

/* It may send the rest of an offer by itself: so that is asked about as well. */
TEST(what_is_offered_and_evicted_is_resident_when_it_is_offered_again,
    setup_sinks)
{
	SCOPED_FILE *file;
	struct queueing qu;

	skip_unless(NEED_EVICTION);
	file = new_file("f", (size_t)SIZE);
	queueing_start(&qu, "nodiskio", file);
	for (qu.qu_room = 10000; qu.qu_room < SIZE; qu.qu_room += 30000) {
		assert_int_equal(queueing_run(&qu), PW_SEND_WANT_WRITE);
		assert_int_equal(qu.qu_gone, qu.qu_room);
		assert_true(qu.qu_offered > qu.qu_gone);
		assert_true(evict(file->fil_fd, (size_t)SIZE));
		usleep(2 * RESIDENCY_HOLDS);
	}
	qu.qu_room = SIZE;
	assert_int_equal(queueing_run(&qu), PW_SEND_DONE);
	assert_true(qu.qu_memory > 0);
	assert_false(qu.qu_cold);
	pw_send_finish(&qu.qu_send);
}

/* What reads apart has memory only. */
TEST(one_that_takes_ranges_takes_memory_too, setup_sinks)
{
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);
	struct queueing qu;

	queueing_start(&qu, "aio", file);
	assert_int_equal(queueing_run(&qu), PW_SEND_DONE);
	assert_int_equal(qu.qu_gone, SIZE);
	assert_int_equal(qu.qu_offered, 0);
	assert_true(qu.qu_memory > 0);
	pw_send_finish(&qu.qu_send);
}

/* One with memory of its own, which is small: frames of 1000 bytes. */
#define FRAME 1000

struct framing {
	struct pw_sink fr_sink; /* the first */
	size_t fr_len;		/* of what lies in the frame */
	size_t fr_in_place;	/* bytes of the file that were put there */
	size_t fr_total;
	char fr_frame[FRAME];
	char fr_all[SIZE + 4];
	struct pw_send fr_send;
};

static char *
framing_room(struct pw_sink *sk, size_t *room)
{
	struct framing *fr = (struct framing *)sk;

	*room = FRAME - fr->fr_len;
	return fr->fr_frame + fr->fr_len;
}

static int
framing_take(
    struct pw_sink *sk, const char *mem, size_t len, bool more, size_t *taken)
{
	struct framing *fr = (struct framing *)sk;
	size_t room = FRAME - fr->fr_len;

	(void)more;
	*taken = len < room ? len : room;
	if (*taken == 0)
		return -EAGAIN;
	if (mem == fr->fr_frame + fr->fr_len)
		fr->fr_in_place += *taken;
	memcpy(fr->fr_all + fr->fr_total, mem, *taken);
	fr->fr_len += *taken;
	fr->fr_total += *taken;
	return 0;
}

static enum pw_send_status
framing_run(struct framing *fr)
{
	enum pw_send_status status = PW_SEND_AGAIN;

	while (status == PW_SEND_AGAIN || status == PW_SEND_PENDING) {
		status = pw_send_step(&fr->fr_send);
		if (status == PW_SEND_PENDING)
			settle(fx->fx_loop);
	}
	return status;
}

TEST(one_with_memory_has_the_file_read_into_that, setup_sinks)
{
	static const struct pw_sink_ops ops = {.take = framing_take,
	    .unacked = queueing_unacked,
	    .room = framing_room};
	SCOPED_FILE *file = new_file("f", (size_t)SIZE);
	SCOPED(free_at) struct framing *fr = calloc(1, sizeof(*fr));
	SCOPED(free_at) char *expected = malloc((size_t)SIZE);

	assert_true(fr != NULL && expected != NULL);
	fill(expected, 0, (size_t)SIZE);
	fr->fr_sink.sk_ops = &ops;
	fr->fr_send.snd_path = pw_send_path("nodiskio");
	fr->fr_send.snd_loop = fx->fx_loop;
	fr->fr_send.snd_sock = -1;
	fr->fr_send.snd_sink = &fr->fr_sink;
	fr->fr_send.snd_mem = "head";
	fr->fr_send.snd_mem_len = 4;
	fr->fr_send.snd_file = file;
	fr->fr_send.snd_len = SIZE;
	fr->fr_send.snd_done = queueing_done;
	assert_int_equal(pw_send_start(&fr->fr_send), 0);
	/* Without room it is asked for, and nothing is lost. */
	fr->fr_len = FRAME;
	assert_int_equal(framing_run(fr), PW_SEND_WANT_WRITE);
	assert_int_equal(fr->fr_send.snd_sent, 0);
	/* With room for less than the head. */
	fr->fr_len = FRAME - 3;
	assert_int_equal(framing_run(fr), PW_SEND_WANT_WRITE);
	assert_int_equal(fr->fr_send.snd_sent, 3);
	do
		fr->fr_len = 0;
	while (framing_run(fr) == PW_SEND_WANT_WRITE);
	assert_int_equal(fr->fr_total, 4 + (size_t)SIZE);
	assert_memory_equal(fr->fr_all, "head", 4);
	assert_memory_equal(fr->fr_all + 4, expected, (size_t)SIZE);
	if (residency_can_ask(file))
		assert_true(fr->fr_in_place >= (size_t)SIZE - FRAME);
	pw_send_finish(&fr->fr_send);
}
