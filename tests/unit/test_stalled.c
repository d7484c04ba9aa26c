/*
 * Clients that read nothing return their part of the budget while others wait for it
 * (lib/send/stalled.h).
 */
#include "xfer_fixture.h"

#include "lib/disk/budget.h"
#include "lib/send/holder.h"
#include "lib/util/clock.h"

#define SIZE	((size_t)256 << 10)
#define WAITERS 8 /* each tick lets one in past the budget */

struct stalled {
	struct pw_file *st_file;
	struct wire st_wire;
	struct xfer st_xfer;
	struct pw_waiter st_waiters[WAITERS];
	size_t st_len; /* more than there is */
};

/* Of waiters, since begin. */
static unsigned waiting, let_in;

static void
waiter_done(struct pw_waiter *w)
{
	(void)w;
	let_in++;
	waiting--;
}

/* Leaves a transmission whose window was fetched, and whose socket is full. */
static void
begin(struct stalled *st, const char *path)
{
	struct pw_send *s = &st->st_xfer.xf_send;

	waiting = let_in = 0;
	st->st_file = new_file("f", SIZE);
	st->st_len = 4 * budget_max(pool_room(fx->fx_pool));
	wire_narrow(&st->st_wire);
	xfer_init(&st->st_xfer, path, &st->st_wire, st->st_file);
	s->snd_len = (off_t)SIZE;
	assert_int_equal(pw_send_start(s), 0);
	assert_true(evict(st->st_file->fil_fd, SIZE));
	assert_int_equal(xfer_step(&st->st_xfer), PW_SEND_PENDING);
}

static void
fill_socket(struct stalled *st)
{
	settle(fx->fx_loop);
	assert_int_equal(xfer_step(&st->st_xfer), PW_SEND_WANT_WRITE);
	assert_true(holder_bytes(&st->st_xfer.xf_send) > 0);
}

static void
wait_for_budget(struct stalled *st)
{
	struct pw_waiter *w;

	for (w = st->st_waiters; w < st->st_waiters + WAITERS; w++) {
		*w = (struct pw_waiter){.wt_done = waiter_done};
		assert_int_equal(
		    pool_room_take(file_priv(st->st_file)->fp_device,
			st->st_len, false, fx->fx_loop, w),
		    -EINPROGRESS);
		waiting++;
	}
}

static void
tick_after(uint64_t us)
{
	pw_loop_tick(fx->fx_loop, clock_now() + us);
	drain_all(fx->fx_loop);
}

/* Has each of those who wait get its part, and give it back. */
static void
serve_waiters(struct stalled *st)
{
	while (waiting > 0 || let_in > 0) {
		if (let_in > 0) {
			let_in--;
			pool_room_give(
			    file_priv(st->st_file)->fp_device, st->st_len);
		}
		tick_after(4 * HOLDER_STALLED);
	}
}

static void
end(struct stalled *st)
{
	serve_waiters(st);
	pw_send_finish(&st->st_xfer.xf_send);
	assert_int_equal(budget_used(pool_room(fx->fx_pool)), 0);
	pw_file_unref(&st->st_file);
	wire_close(&st->st_wire);
}

/* Two looks that are HOLDER_STALLED apart. */
static void
look_twice(void)
{
	tick_after(2 * HOLDER_STALLED);
	tick_after(4 * HOLDER_STALLED);
}

TEST(a_stalled_transmission_returns_its_budget_to_waiters)
{
	static const char *const names[] = {"nodiskio", "splice", "uring"};
	struct stalled st;
	const char *why;

	skip_unless(NEED_EXACT | NEED_EVICTION);
	for (size_t i = 0; i < COUNT(names); i++) {
		if (pw_send_probe(pw_send_path(names[i]), &why) != 0)
			continue;
		print_message("%s\n", names[i]);
		begin(&st, names[i]);
		fill_socket(&st);
		wait_for_budget(&st);
		tick_after(HOLDER_STALLED / 4);
		assert_true(holder_bytes(&st.st_xfer.xf_send) > 0);
		look_twice();
		assert_int_equal(holder_bytes(&st.st_xfer.xf_send), 0);
		serve_waiters(&st);
		/* It goes on with what is in memory, and fetches the rest. */
		assert_int_equal(xfer_run(&st.st_xfer, &st.st_wire, UINT64_MAX),
		    PW_SEND_DONE);
		wire_has_file(&st.st_wire, 0, (off_t)SIZE);
		end(&st);
	}
}

TEST(a_stalled_transmission_keeps_its_budget_without_waiters)
{
	struct stalled st;

	skip_unless(NEED_EXACT | NEED_EVICTION);
	begin(&st, "nodiskio");
	fill_socket(&st);
	look_twice();
	assert_true(holder_bytes(&st.st_xfer.xf_send) > 0);
	end(&st);
}

/* Reads less than the budget that a step returns, and waits until it is acknowledged. */
static void
read_some(struct stalled *st)
{
	static char some[8 * KIB];
	struct wire *wr = &st->st_wire;
	uint64_t before = pw_unacked(wr->wr_sock);
	unsigned ms;

	assert_int_equal(
	    recv(wr->wr_peer, some, sizeof(some), MSG_WAITALL), sizeof(some));
	for (ms = 0; pw_unacked(wr->wr_sock) >= before; ms++) {
		assert_true(ms < PATIENCE);
		usleep(1000);
	}
}

TEST(a_slow_reader_keeps_its_budget)
{
	struct stalled st;
	unsigned i;

	skip_unless(NEED_EXACT | NEED_EVICTION);
	begin(&st, "nodiskio");
	fill_socket(&st);
	wait_for_budget(&st);
	for (i = 1; i < 3; i++) {
		read_some(&st);
		tick_after(2 * i * HOLDER_STALLED);
		assert_true(holder_bytes(&st.st_xfer.xf_send) > 0);
	}
	tick_after(2 * i * HOLDER_STALLED);
	assert_int_equal(holder_bytes(&st.st_xfer.xf_send), 0);
	end(&st);
}

TEST(a_wait_for_the_disk_is_no_stall)
{
	struct stalled st;
	size_t held;

	skip_unless(NEED_EXACT | NEED_EVICTION);
	begin(&st, "nodiskio");
	held = holder_bytes(&st.st_xfer.xf_send);
	assert_true(held > 0);
	wait_for_budget(&st);
	pw_loop_tick(fx->fx_loop, clock_now() + 2 * HOLDER_STALLED);
	pw_loop_tick(fx->fx_loop, clock_now() + 4 * HOLDER_STALLED);
	assert_int_equal(holder_bytes(&st.st_xfer.xf_send), held);
	while (st.st_xfer.xf_send.snd_pending)
		pw_loop_drain(fx->fx_loop);
	end(&st);
}
