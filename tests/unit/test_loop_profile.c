/*
 * What server/worker/loop_profile.h promises about the length of a turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "server/worker/loop_profile.h"

static void
a_turn_lasts_from_its_first_change_to_its_end(void **state)
{
	struct laps laps = {0};

	(void)state;
	lap_change(&laps, LAP_EVENTS, 1000);
	lap_change(&laps, LAP_DONE, 1500);
	assert_int_equal(lap_end(&laps, 4000), 3000);
	lap_clear(&laps);
	/* What lies between two turns belongs to neither. */
	lap_change(&laps, LAP_EVENTS, 900000);
	assert_int_equal(lap_end(&laps, 900001), 1);
}

static void
time_is_told_of_what_it_was_spent_on(void **state)
{
	struct laps laps = {0};
	char text[128];

	(void)state;
	laps.lap_calls[LAP_EVENTS] = 3;
	laps.lap_calls[LAP_TURNS] = 14;
	lap_change(&laps, LAP_EVENTS, 10);
	lap_change(&laps, LAP_TURNS, 1010);
	lap_change(&laps, LAP_EVENTS, 62010);
	lap_change(&laps, LAP_TIMERS, 63510);
	lap_end(&laps, 64000);
	lap_text(&laps, text, sizeof(text));
	assert_string_equal(text, "requests 2 ms (3), answers 61 ms (14)");
}

static void
many_short_things_are_told_by_the_longest(void **state)
{
	struct laps laps = {0};
	char text[128];

	(void)state;
	laps.lap_calls[LAP_DONE] = 7;
	lap_change(&laps, LAP_EVENTS, 0);
	lap_change(&laps, LAP_DONE, 400);
	lap_change(&laps, LAP_TIMERS, 1399);
	lap_end(&laps, 1500);
	lap_text(&laps, text, sizeof(text));
	assert_string_equal(text, "completions 0.9 ms (7)");
}

static void
a_short_buffer_is_not_overrun(void **state)
{
	struct laps laps = {0};
	char text[16] = "";
	size_t size;

	(void)state;
	lap_change(&laps, LAP_EVENTS, 0);
	lap_change(&laps, LAP_TURNS, 5000);
	lap_end(&laps, 90000);
	for (size = 1; size <= sizeof(text); size++) {
		lap_text(&laps, text, size);
		assert_int_equal(text[size - 1], '\0');
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_turn_lasts_from_its_first_change_to_its_end),
	    cmocka_unit_test(time_is_told_of_what_it_was_spent_on),
	    cmocka_unit_test(many_short_things_are_told_by_the_longest),
	    cmocka_unit_test(a_short_buffer_is_not_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
