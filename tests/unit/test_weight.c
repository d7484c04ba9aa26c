/*
 * The share that a node asks for (server/admin/weight.c); each test has the name of the rule that
 * it pins.
 */
#include "test.h"

#include "server/admin/weight.h"

#define SECOND (1000000 / WEIGHT_PERIOD_US) /* samples */

static unsigned
percent(double part)
{
	return (unsigned)(part * 100 + 0.5);
}

/* What is said after so many samples. */
static unsigned
after(struct weight *wt, unsigned samples, double part)
{
	while (samples-- > 0)
		weight_add(wt, part);
	return wt->wt_said;
}

TEST(each_scarce_resource_has_its_formula)
{
	assert_int_equal(percent(weight_of_budget(0, 100)), 100);
	assert_int_equal(percent(weight_of_budget(50, 100)), 100);
	assert_int_equal(percent(weight_of_budget(80, 100)), 55);
	assert_int_equal(percent(weight_of_budget(100, 100)), 25);
	assert_int_equal(percent(weight_of_budget(200, 100)), 25);
	assert_int_equal(percent(weight_of_budget(0, 0)), 25);
	assert_int_equal(percent(weight_of_wait(0)), 100);
	assert_int_equal(percent(weight_of_wait(500000)), 100);
	assert_int_equal(percent(weight_of_wait(2000000)), 25);
	assert_int_equal(percent(weight_of_silence(500000)), 100);
	assert_int_equal(percent(weight_of_silence(750000)), 50);
	assert_int_equal(percent(weight_of_silence(1000000)), 0);
	assert_int_equal(percent(weight_of_silence(UINT64_MAX)), 0);
	assert_int_equal(percent(weight_of_lag(10000)), 100);
	assert_int_equal(percent(weight_of_lag(40000)), 25);
}

TEST(an_idle_node_has_the_full_weight)
{
	struct weight wt;

	weight_init(&wt);
	assert_int_equal(wt.wt_said, 100);
	assert_int_equal(after(&wt, 100, 1), 100);
}

TEST(weight_falls_within_two_seconds_but_not_below_1)
{
	struct weight wt;

	weight_init(&wt);
	assert_in_range(after(&wt, SECOND, 0), 1, 7);
	assert_int_equal(after(&wt, SECOND, 0), 1);
	assert_int_equal(after(&wt, 1000, 0), 1);
}

TEST(weight_recovers_slowly_and_fully)
{
	struct weight wt;

	weight_init(&wt);
	after(&wt, 100, 0);
	assert_in_range(after(&wt, SECOND, 1), 15, 30);
	assert_in_range(after(&wt, 9 * SECOND, 1), 85, 95);
	assert_int_equal(after(&wt, 20 * SECOND, 1), 100);
}

TEST(one_bad_sample_halves_the_weight_once)
{
	struct weight wt;

	weight_init(&wt);
	assert_int_equal(after(&wt, 1, 0), 50);
	assert_true(after(&wt, 3, 1) > 50);
}

TEST(small_changes_are_not_reported)
{
	struct weight wt;
	unsigned said, changes = 0;

	weight_init(&wt);
	said = after(&wt, 100, 0.5);
	for (int i = 0; i < 1000; i++) {
		unsigned now = after(&wt, 1, i % 2 != 0 ? 0.52 : 0.48);

		changes += now != said;
		said = now;
	}
	assert_true(changes <= 1);
}
