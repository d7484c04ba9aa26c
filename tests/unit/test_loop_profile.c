/*
 * What server/worker/loop_profile.h promises about the length of a turn.
 */
#include "test.h"

#include "server/worker/loop_profile.h"

TEST(an_iteration_is_timed_from_its_first_work)
{
	struct loop_profile laps = {0};

	profile_change(&laps, LOOP_EVENTS, 1000);
	profile_change(&laps, LOOP_DONE, 1500);
	assert_int_equal(profile_end(&laps, 4000), 3000);
	profile_clear(&laps);
	/* What lies between two turns belongs to neither. */
	profile_change(&laps, LOOP_EVENTS, 900000);
	assert_int_equal(profile_end(&laps, 900001), 1);
}

TEST(time_is_reported_for_each_kind_of_work)
{
	struct loop_profile laps = {0};
	char text[128];

	laps.lap_calls[LOOP_EVENTS] = 3;
	laps.lap_calls[LOOP_SLICES] = 14;
	profile_change(&laps, LOOP_EVENTS, 10);
	profile_change(&laps, LOOP_SLICES, 1010);
	profile_change(&laps, LOOP_EVENTS, 62010);
	profile_change(&laps, LOOP_TIMERS, 63510);
	profile_end(&laps, 64000);
	profile_text(&laps, text, sizeof(text));
	assert_string_equal(text, "requests 2 ms (3), responses 61 ms (14)");
}

TEST(short_kinds_of_work_are_reported_after_the_longest)
{
	struct loop_profile laps = {0};
	char text[128];

	laps.lap_calls[LOOP_DONE] = 7;
	profile_change(&laps, LOOP_EVENTS, 0);
	profile_change(&laps, LOOP_DONE, 400);
	profile_change(&laps, LOOP_TIMERS, 1399);
	profile_end(&laps, 1500);
	profile_text(&laps, text, sizeof(text));
	assert_string_equal(text, "completions 0.9 ms (7)");
}

TEST(a_short_buffer_is_not_overrun)
{
	struct loop_profile laps = {0};
	char text[16] = "";
	size_t size;

	profile_change(&laps, LOOP_EVENTS, 0);
	profile_change(&laps, LOOP_SLICES, 5000);
	profile_end(&laps, 90000);
	for (size = 1; size <= sizeof(text); size++) {
		profile_text(&laps, text, size);
		assert_int_equal(text[size - 1], '\0');
	}
}
