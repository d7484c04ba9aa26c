/*
 * How often a message is told (server/log/message_rate.c); each test has the name of the
 * rule that it pins, and tries each message.
 */

#include "test.h"

#include "server/log/message_rate.h"

#define BEGIN	    UINT64_C(5000000) /* less than a period after the clock's 0 */
#define KINDS(kind) for (kind = 0; kind < TOLD_KINDS; kind++)

static void
assert_left(struct message_rate *list, uint64_t now, uint64_t count)
{
	struct message_rate_left ml;

	assert_true(message_rate_left_out(list, now, &ml));
	assert_int_equal(ml.ml_count, count);
	assert_false(message_rate_left_out(list, now, &ml));
}

static void
assert_none_left(struct message_rate *list, uint64_t now)
{
	struct message_rate_left ml;

	assert_false(message_rate_left_out(list, now, &ml));
}

TEST(the_first_message_is_logged_at_once)
{
	struct message_rate list[TOLD_KINDS] = {0};
	unsigned kind;

	KINDS(kind)
	assert_true(message_rate_tell(list, kind, BEGIN));
	assert_none_left(list, BEGIN + MESSAGE_RATE_PERIOD);
}

TEST(messages_of_the_next_minute_are_counted_and_logged_once)
{
	struct message_rate list[TOLD_KINDS] = {0};
	unsigned i, kind;

	KINDS(kind)
	{
		assert_true(message_rate_tell(list, kind, BEGIN));
		for (i = 1; i <= 1000; i++) {
			assert_false(message_rate_tell(list, kind, BEGIN + i));
			assert_none_left(list, BEGIN + i);
		}
		assert_none_left(list, BEGIN + MESSAGE_RATE_PERIOD - 1);
		assert_left(list, BEGIN + MESSAGE_RATE_PERIOD, 1000);
	}
}

TEST(each_message_comes_again_after_a_minute)
{
	struct message_rate list[TOLD_KINDS] = {0};
	uint64_t minute;
	unsigned kind;

	KINDS(kind)
	for (minute = 0; minute < 5; minute++) {
		uint64_t now = BEGIN + minute * MESSAGE_RATE_PERIOD;

		if (minute > 0)
			assert_left(list, now, 2);
		assert_true(message_rate_tell(list, kind, now));
		assert_false(message_rate_tell(list, kind, now + 1));
		assert_false(message_rate_tell(list, kind, now + 2));
		if (minute == 4)
			assert_left(list, now + MESSAGE_RATE_PERIOD, 2);
	}
}

TEST(after_a_quiet_minute_a_message_is_logged_at_once)
{
	struct message_rate list[TOLD_KINDS] = {0};
	uint64_t next = BEGIN + MESSAGE_RATE_PERIOD;
	unsigned kind;

	KINDS(kind)
	{
		assert_true(message_rate_tell(list, kind, BEGIN));
		assert_true(message_rate_tell(list, kind, next));
		assert_false(message_rate_tell(list, kind, next + 1));
	}
}

TEST(the_number_is_logged_before_the_next_message)
{
	struct message_rate list[TOLD_KINDS] = {0};
	uint64_t late = BEGIN + 2 * MESSAGE_RATE_PERIOD;
	unsigned kind;

	KINDS(kind)
	{
		assert_true(message_rate_tell(list, kind, BEGIN));
		assert_false(message_rate_tell(list, kind, BEGIN + 1));
		assert_false(message_rate_tell(list, kind, late));
		assert_left(list, late, 2);
		assert_true(message_rate_tell(list, kind, late));
	}
}

TEST(one_message_does_not_hold_back_another)
{
	struct message_rate list[TOLD_KINDS] = {0};

	assert_true(message_rate_tell(list, TOLD_SHORT, BEGIN));
	assert_false(message_rate_tell(list, TOLD_SHORT, BEGIN));
	assert_true(message_rate_tell(list, TOLD_UNACKED, BEGIN));
}

TEST(each_number_has_a_text_of_its_own)
{
	struct message_rate list[TOLD_KINDS] = {0};
	const char *texts[TOLD_KINDS];
	struct message_rate_left ml;
	unsigned kind, other;

	KINDS(kind)
	{
		list[kind].lim_left = 1;
		assert_true(message_rate_left_out(list, BEGIN, &ml));
		texts[kind] = ml.ml_text;
		assert_true(strlen(ml.ml_text) > 0);
		for (other = 0; other < kind; other++)
			assert_string_not_equal(texts[other], ml.ml_text);
	}
}

TEST(a_message_that_counts_by_itself_comes_once_a_minute)
{
	struct message_rate lim = {0};

	assert_true(message_rate_due(&lim, BEGIN));
	assert_false(message_rate_due(&lim, BEGIN + MESSAGE_RATE_PERIOD - 1));
	assert_true(message_rate_due(&lim, BEGIN + MESSAGE_RATE_PERIOD));
}
