/*
 * The budget for what was fetched and not sent (lib/disk/budget.h).
 */
#include "lib_fixture.h"

#include "lib/disk/budget.h"
#include "lib/disk/completion.h"
#include "lib/util/clock.h"

#define MAX	64
#define WAITERS 12

struct house {
	struct budget *ho_room;
	struct budget_part ho_parts[3];
	struct pw_waiter ho_waiters[WAITERS];
	size_t ho_let_in[WAITERS]; /* in this order */
	size_t ho_n;
};

static struct house *ho; /* of the test that runs */

static void
let_in(struct pw_waiter *w)
{
	ho->ho_let_in[ho->ho_n++] = (size_t)(w - ho->ho_waiters);
}

static int
setup_house(void **state)
{
	ho = calloc(1, sizeof(*ho));
	if (ho == NULL || setup(state) != 0)
		return -1;
	ho->ho_room = budget_create(MAX);
	for (size_t i = 0; i < COUNT(ho->ho_parts); i++)
		budget_part_init(&ho->ho_parts[i]);
	for (size_t i = 0; i < WAITERS; i++) {
		ho->ho_waiters[i].wt_done = let_in;
		ho->ho_waiters[i].wt_loop = fx->fx_loop;
	}
	return ho->ho_room == NULL ? -1 : 0;
}

static int
teardown_house(void **state)
{
	budget_destroy(&ho->ho_room);
	free(ho);
	return teardown(state);
}

static int
take(size_t part, size_t len)
{
	return budget_take(ho->ho_room, &ho->ho_parts[part], len, false, NULL);
}

static void
held(size_t part, size_t len, bool slow, size_t waiter)
{
	fx->fx_loop->lp_pending++;
	assert_int_equal(budget_take(ho->ho_room, &ho->ho_parts[part], len,
			     slow, &ho->ho_waiters[waiter]),
	    -EINPROGRESS);
}

static void
give(size_t part, size_t len)
{
	budget_give(ho->ho_room, &ho->ho_parts[part], len);
	drain_all(fx->fx_loop);
}

TEST(a_device_may_use_as_much_as_is_free, setup_house, teardown_house)
{
	assert_int_equal(take(0, 49), 0); /* it had nothing */
	assert_int_equal(take(0, 1), -EAGAIN);
	give(0, 1);
	assert_int_equal(take(0, 1), -EAGAIN);
	assert_int_equal(take(1, 12), 0);
	assert_int_equal(take(1, 1), -EAGAIN);
	assert_int_equal(take(2, 3), 0);
	assert_int_equal(take(2, 1), -EAGAIN);
	assert_int_equal(budget_used(ho->ho_room), 63);
	give(0, 32);
	assert_int_equal(take(2, 1), 0);
}

TEST(a_device_without_budget_always_gets_a_window, setup_house, teardown_house)
{
	assert_int_equal(take(0, 10 * MAX), 0);
	assert_int_equal(take(0, 1), -EAGAIN);
	assert_int_equal(take(1, 10 * MAX), 0);
	give(0, 10 * MAX);
	assert_int_equal(take(0, 1), 0);
}

TEST(waiters_continue_in_order_when_budget_is_free, setup_house, teardown_house)
{
	assert_int_equal(take(0, 42), 0);
	held(0, 20, false, 0);
	held(0, 2, false, 1);
	give(0, 2);
	assert_int_equal(ho->ho_n, 0); /* and nobody passes the first */
	give(0, 6);
	assert_int_equal(ho->ho_n, 1);
	assert_int_equal(ho->ho_let_in[0], 0);
	give(0, 12);
	assert_int_equal(ho->ho_n, 2);
	assert_int_equal(budget_used(ho->ho_room), 44);
}

TEST(a_new_transmission_does_not_pass_waiters, setup_house, teardown_house)
{
	assert_int_equal(take(0, 42), 0);
	held(0, 20, false, 0);
	assert_int_equal(take(0, 1), -EAGAIN);
	give(0, 42);
	assert_int_equal(ho->ho_n, 1);
}

/* Slow ones wait first, but not for ever. */
TEST(fast_clients_usually_go_before_slow_ones, setup_house, teardown_house)
{
	static const size_t order[] = {4, 5, 6, 0, 7, 8, 1, 2, 3};
	size_t i;

	assert_int_equal(take(0, 42), 0);
	for (i = 0; i < 4; i++)
		held(0, 42, true, i);
	for (; i < COUNT(order); i++)
		held(0, 42, false, i);
	for (i = 0; i < COUNT(order); i++) {
		give(0, 42);
		assert_int_equal(ho->ho_n, i + 1);
	}
	assert_memory_equal(ho->ho_let_in, order, sizeof(order));
}

TEST(a_device_that_returns_no_budget_delays_no_other, setup_house,
    teardown_house)
{
	assert_int_equal(take(0, 42), 0);
	held(0, 32, false, 0);
	assert_int_equal(take(1, 14), 0);
	held(1, 4, false, 1);
	held(1, 4, false, 2);
	give(1, 14);
	assert_int_equal(ho->ho_n, 2);
	assert_int_equal(ho->ho_let_in[0], 1);
	assert_int_equal(ho->ho_let_in[1], 2);
	assert_false(budget_plenty(ho->ho_room, &ho->ho_parts[0], 8));
	assert_true(budget_plenty(ho->ho_room, &ho->ho_parts[2], 8));
	give(0, 42);
	assert_int_equal(ho->ho_n, 3);
}

/* Nothing that is given is lost; who has much waits until it is less. */
TEST(it_shrinks_by_evictions_and_grows_again, setup_house, teardown_house)
{
	uint64_t now = 1000000;
	int i;

	budget_evicted(ho->ho_room, now);
	assert_int_equal(budget_max(ho->ho_room), MAX - MAX / 8);
	budget_evicted(ho->ho_room, now + 1); /* of the same moment */
	assert_int_equal(budget_max(ho->ho_room), MAX - MAX / 8);
	for (i = 0; i < 100; i++)
		budget_evicted(ho->ho_room, now += 100000);
	assert_in_range(budget_max(ho->ho_room), 1, MAX / 8);
	i = (int)budget_max(ho->ho_room);
	budget_tick(ho->ho_room, now + 700000);
	assert_int_equal(budget_max(ho->ho_room), i);
	budget_tick(ho->ho_room, now += 1000000);
	assert_int_equal(budget_max(ho->ho_room), i + 1);
	budget_tick(ho->ho_room, now + 1);
	assert_int_equal(budget_max(ho->ho_room), i + 1);
	for (i = 0; i < 100; i++)
		budget_tick(ho->ho_room, now += 250000);
	assert_int_equal(budget_max(ho->ho_room), MAX);
}

/* Those who keep what they have do not hold others up for ever. */
TEST(a_long_wait_bypasses_the_budget, setup_house, teardown_house)
{
	uint64_t now = clock_now();

	assert_int_equal(take(0, 42), 0);
	held(0, 32, false, 0);
	held(0, 32, true, 1);
	budget_tick(ho->ho_room, now + 900000);
	drain_all(fx->fx_loop);
	assert_int_equal(ho->ho_n, 0);
	budget_tick(ho->ho_room, now + 1200000);
	drain_all(fx->fx_loop);
	assert_int_equal(ho->ho_n, 1); /* a tick's share of them */
	budget_tick(ho->ho_room, now + 1300000);
	drain_all(fx->fx_loop);
	assert_int_equal(ho->ho_n, 1);
	budget_tick(ho->ho_room, now + 1500000);
	drain_all(fx->fx_loop);
	assert_int_equal(ho->ho_n, 2);
	assert_int_equal(budget_used(ho->ho_room), 106);
}
