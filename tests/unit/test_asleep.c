/*
 * When and how it is told that a loop has slept (server/worker/asleep.c); each test has the name of
 * the rule that it pins.
 */

#include "test.h"

#include "server/log/message_rate.h"
#include "server/worker/asleep.h"

#define BEGIN UINT64_C(5000000) /* less than a period after the clock's 0 */

static uint64_t
look(struct asleep *as, uint64_t times, uint64_t us, uint64_t now)
{
	const struct pw_sleep list[] = {
	    {"lock", 0, 0}, {"sendfile", times, us}, {"openat2", 1, 50}};

	return asleep_look(as, list, 3, now);
}

TEST(the_first_sleep_is_reported_at_once)
{
	struct asleep as = {0};
	char text[64];

	assert_int_equal(look(&as, 3, 312000, BEGIN), 312050);
	asleep_text(&as, text, sizeof(text));
	assert_string_equal(text, "sendfile 312.0 ms (3), openat2 0.0 ms (1)");
}

TEST(the_longest_sleep_is_reported_first)
{
	const struct pw_sleep list[] = {
	    {"lock", 1, 900}, {"sendfile", 1, 100}, {"page fault", 1, 2500}};
	struct asleep as = {0};
	char text[80];

	assert_int_equal(asleep_look(&as, list, 3, BEGIN), 3500);
	asleep_text(&as, text, sizeof(text));
	assert_string_equal(text,
	    "page fault 2.5 ms (1), lock 0.9 ms (1), sendfile 0.1 ms (1)");
}

TEST(less_than_a_millisecond_between_two_checks_is_not_reported)
{
	struct asleep as = {0};
	uint64_t i;

	for (i = 1; i < 100; i++)
		assert_int_equal(
		    look(&as, i, i * 900, BEGIN + i * MESSAGE_RATE_PERIOD), 0);
}

TEST(sleeps_of_a_minute_are_reported_together_and_once)
{
	struct asleep as = {0};
	char text[64];
	uint64_t i;

	assert_int_equal(look(&as, 1, 2000, BEGIN), 2050);
	for (i = 1; i < 10; i++)
		assert_int_equal(
		    look(&as, 1 + i, 2000 + i * 1500, BEGIN + i), 0);
	assert_int_equal(
	    look(&as, 10, 15500, BEGIN + MESSAGE_RATE_PERIOD - 1), 0);
	assert_int_equal(
	    look(&as, 10, 15500, BEGIN + MESSAGE_RATE_PERIOD), 13500);
	asleep_text(&as, text, sizeof(text));
	assert_string_equal(text, "sendfile 13.5 ms (9)");
	assert_int_equal(
	    look(&as, 10, 15500, BEGIN + 2 * MESSAGE_RATE_PERIOD), 0);
}

TEST(a_text_without_room_is_cut)
{
	struct asleep as = {0};
	char text[10];

	look(&as, 3, 312000, BEGIN);
	asleep_text(&as, text, sizeof(text));
	assert_string_equal(text, "sendfile ");
}
