/*
 * How often a message is told (server/log/message_rate.c); each test has the name of the
 * rule that it pins.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/log/message_rate.h"

#define BEGIN UINT64_C(5000000) /* less than a period after the clock's 0 */

static void
the_first_message_is_logged_at_once(void **state)
{
	struct message_rate lim = {0};

	(void)state;
	assert_true(message_rate_tell(&lim, BEGIN));
	assert_int_equal(
	    message_rate_left_out(&lim, BEGIN + MESSAGE_RATE_PERIOD), 0);
}

static void
messages_of_the_next_minute_are_counted_and_logged_once(void **state)
{
	struct message_rate lim = {0};
	uint64_t i;

	(void)state;
	assert_true(message_rate_tell(&lim, BEGIN));
	for (i = 0; i < 1000; i++) {
		assert_false(message_rate_tell(&lim, BEGIN + i));
		assert_int_equal(message_rate_left_out(&lim, BEGIN + i), 0);
	}
	assert_int_equal(
	    message_rate_left_out(&lim, BEGIN + MESSAGE_RATE_PERIOD - 1), 0);
	assert_int_equal(
	    message_rate_left_out(&lim, BEGIN + MESSAGE_RATE_PERIOD), 1000);
	assert_int_equal(
	    message_rate_left_out(&lim, BEGIN + MESSAGE_RATE_PERIOD), 0);
}

static void
a_logged_number_starts_a_new_minute(void **state)
{
	struct message_rate lim = {0};
	uint64_t second = BEGIN + MESSAGE_RATE_PERIOD;

	(void)state;
	assert_true(message_rate_tell(&lim, BEGIN));
	assert_false(message_rate_tell(&lim, second - 1));
	assert_int_equal(message_rate_left_out(&lim, second), 1);
	assert_false(message_rate_tell(&lim, second + MESSAGE_RATE_PERIOD - 1));
	assert_int_equal(
	    message_rate_left_out(&lim, second + MESSAGE_RATE_PERIOD), 1);
}

static void
after_a_quiet_minute_a_message_is_logged_at_once(void **state)
{
	struct message_rate lim = {0};

	(void)state;
	assert_true(message_rate_tell(&lim, BEGIN));
	assert_true(message_rate_tell(&lim, BEGIN + MESSAGE_RATE_PERIOD));
	assert_false(message_rate_tell(&lim, BEGIN + MESSAGE_RATE_PERIOD + 1));
}

static void
a_late_query_counts_all_messages(void **state)
{
	struct message_rate lim = {0};

	(void)state;
	assert_true(message_rate_tell(&lim, BEGIN));
	assert_false(message_rate_tell(&lim, BEGIN + 1));
	assert_false(message_rate_tell(&lim, BEGIN + 2 * MESSAGE_RATE_PERIOD));
	assert_int_equal(
	    message_rate_left_out(&lim, BEGIN + 2 * MESSAGE_RATE_PERIOD), 2);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_first_message_is_logged_at_once),
	    cmocka_unit_test(
		messages_of_the_next_minute_are_counted_and_logged_once),
	    cmocka_unit_test(a_logged_number_starts_a_new_minute),
	    cmocka_unit_test(after_a_quiet_minute_a_message_is_logged_at_once),
	    cmocka_unit_test(a_late_query_counts_all_messages),
	};

	return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
