/*
 * The share that a node asks for (server/admin/weight.c); each test has the name of the rule that
 * it pins.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

static void
each_scarce_resource_has_its_formula(void **state)
{
	(void)state;
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

static void
an_idle_node_has_the_full_weight(void **state)
{
	struct weight wt;

	(void)state;
	weight_init(&wt);
	assert_int_equal(wt.wt_said, 100);
	assert_int_equal(after(&wt, 100, 1), 100);
}

static void
weight_falls_within_two_seconds_but_not_below_1(void **state)
{
	struct weight wt;

	(void)state;
	weight_init(&wt);
	assert_in_range(after(&wt, SECOND, 0), 1, 7);
	assert_int_equal(after(&wt, SECOND, 0), 1);
	assert_int_equal(after(&wt, 1000, 0), 1);
}

static void
weight_recovers_slowly_and_fully(void **state)
{
	struct weight wt;

	(void)state;
	weight_init(&wt);
	after(&wt, 100, 0);
	assert_in_range(after(&wt, SECOND, 1), 15, 30);
	assert_in_range(after(&wt, 9 * SECOND, 1), 85, 95);
	assert_int_equal(after(&wt, 20 * SECOND, 1), 100);
}

static void
one_bad_sample_halves_the_weight_once(void **state)
{
	struct weight wt;

	(void)state;
	weight_init(&wt);
	assert_int_equal(after(&wt, 1, 0), 50);
	assert_true(after(&wt, 3, 1) > 50);
}

static void
small_changes_are_not_reported(void **state)
{
	struct weight wt;
	unsigned said, changes = 0;

	(void)state;
	weight_init(&wt);
	said = after(&wt, 100, 0.5);
	for (int i = 0; i < 1000; i++) {
		unsigned now = after(&wt, 1, i % 2 != 0 ? 0.52 : 0.48);

		changes += now != said;
		said = now;
	}
	assert_true(changes <= 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_scarce_resource_has_its_formula),
	    cmocka_unit_test(an_idle_node_has_the_full_weight),
	    cmocka_unit_test(weight_falls_within_two_seconds_but_not_below_1),
	    cmocka_unit_test(weight_recovers_slowly_and_fully),
	    cmocka_unit_test(one_bad_sample_halves_the_weight_once),
	    cmocka_unit_test(small_changes_are_not_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
