/*
 * Workers that wait for a slot of max_connections, and those that are asked to evict a connection
 * (server/worker/connection_limits.c); each test has the name of the rule that it pins.
 */
#include "limits_fixture.h"

#include <poll.h>
#include <pthread.h>

/* The workers' commands in this test. */
static struct commands orders[WORKERS];
static struct connection_limits *limits;

static struct connection_limits *
begin(unsigned total)
{
	limits = create(total, 0);
	for (unsigned i = 0; i < WORKERS; i++) {
		assert_int_equal(commands_create(&orders[i]), 0);
		limits_join(limits, i, &orders[i]);
	}
	return limits;
}

int
teardown(void **state)
{
	(void)state;
	if (limits == NULL)
		return 0;
	for (unsigned i = 0; i < WORKERS; i++)
		commands_destroy(&orders[i]);
	limits_destroy(&limits);
	return 0;
}

static bool
is_woken(const struct commands *od)
{
	struct pollfd pfd = {.fd = od->od_wake[0], .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

/* What each worker has been told since the last time, as "p--". */
static void
told(const char *expected)
{
	char text[WORKERS + 1] = "";
	unsigned i, given;

	for (i = 0; i < WORKERS; i++) {
		given = is_woken(&orders[i]) ? commands_take(&orders[i]) : 0;
		text[i] = given == COMMAND_PLACE  ? 'p'
			  : given == COMMAND_WISH ? 'w'
			  : given == 0		  ? '-'
						  : '?';
	}
	assert_string_equal(text, expected);
}

TEST(a_freed_slot_goes_to_one_waiting_worker)
{
	struct connection_limits *cs = begin(2);

	reserve(cs, 2);
	told("---");
	assert_true(limits_wait(cs, 2));
	told("---");
	limits_release(cs);
	told("--p");
	/* It does not wait any more. */
	limits_release(cs);
	told("---");
}

TEST(waiting_workers_take_turns)
{
	static const char *const turns[] = {"-p-", "--p", "p--", "-p-", "--p"};
	struct connection_limits *cs = begin(1);
	unsigned i, who;

	reserve(cs, 1);
	for (who = 0; who < WORKERS; who++)
		assert_true(limits_wait(cs, who));
	for (i = 0; i < COUNT(turns); i++) {
		limits_release(cs);
		told(turns[i]);
		who = (unsigned)(strchr(turns[i], 'p') - turns[i]);
		assert_true(limits_reserve(cs, who));
		assert_true(limits_wait(cs, who));
	}
	limits_release(cs);
	told("p--");
}

TEST(an_unused_slot_goes_to_the_next_worker)
{
	struct connection_limits *cs = begin(1);

	reserve(cs, 1);
	assert_true(limits_wait(cs, 1));
	assert_true(limits_wait(cs, 2));
	limits_release(cs);
	told("-p-");
	/* Nobody waits for it any more. */
	assert_true(limits_reserve(cs, 1));
	limits_release(cs);
	told("--p");
	limits_decline(cs, 1);
	told("---");
	assert_true(limits_wait(cs, 0));
	limits_decline(cs, 2);
	told("p--");
	limits_decline(cs, 0);
	told("---");
	reserve(cs, 1);
	limits_release(cs);
}

TEST(a_promised_slot_is_reserved)
{
	struct connection_limits *cs = begin(2);

	reserve(cs, 2);
	assert_true(limits_wait(cs, 1));
	limits_release(cs);
	told("-p-");
	/* Whose connection it was cannot have it back; nor is there one to wait for. */
	assert_false(limits_reserve(cs, 0));
	assert_true(limits_wait(cs, 0));
	assert_true(limits_reserve(cs, 1));
	assert_false(limits_reserve(cs, 1));
	limits_release(cs);
	told("p--");
	assert_true(limits_reserve(cs, 0));
	release(cs, 2);
}

TEST(a_retiring_worker_keeps_no_slot)
{
	struct connection_limits *cs = begin(1);

	reserve(cs, 1);
	for (unsigned i = 0; i < WORKERS; i++)
		assert_true(limits_wait(cs, i));
	limits_release(cs);
	told("-p-");
	limits_retire(cs, 1);
	told("--p");
	limits_retire(cs, 0);
	limits_decline(cs, 2);
	told("---");
	reserve(cs, 1);
	limits_release(cs);
}

TEST(a_free_slot_needs_no_wait)
{
	struct connection_limits *cs = begin(1);

	assert_false(limits_wait(cs, 1));
	reserve(cs, 1);
	limits_release(cs);
	told("---");
}

TEST(workers_without_a_better_victim_are_not_asked)
{
	struct connection_limits *cs = begin(1);

	reserve(cs, 1);
	assert_int_equal(
	    limits_ask(cs, 1, 5, 1000000), 1000000 + LIMITS_RESPONSE_US);
	told("w-w");
	/* One that has better is told for whom; one that has not lets the asker look again. */
	assert_int_equal(limits_asker(cs, 0, 6, 1001000), 1);
	assert_true(limits_is_asked(cs, 0));
	told("---");
	assert_int_equal(limits_asker(cs, 2, 5, 1001000), LIMITS_NOBODY);
	assert_false(limits_is_asked(cs, 2));
	told("-p-");
	limits_responded(cs, 0, 1);
	assert_false(limits_is_asked(cs, 0));
	/* What they have is known for a moment. */
	assert_int_equal(limits_asker(cs, 0, 4, 1002000), LIMITS_NOBODY);
	assert_int_equal(limits_ask(cs, 1, 5, 1010000), 0);
	assert_int_not_equal(limits_ask(cs, 1, 4, 1010000), 0);
	told("--w");
	assert_int_not_equal(
	    limits_ask(cs, 1, 5, 1003000 + LIMITS_FRESH_US), 0);
	told("w-w");
	limits_release(cs);
}

/* Milliseconds since the machine's start have more than 32 bits then. */
TEST(answers_are_remembered_after_fifty_days_too)
{
	const uint64_t now = UINT64_C(50) * 24 * 3600 * 1000000;
	struct connection_limits *cs = begin(1);

	reserve(cs, 1);
	assert_int_not_equal(limits_ask(cs, 1, 5, now), 0);
	assert_int_equal(limits_asker(cs, 0, 5, now + 1000), LIMITS_NOBODY);
	assert_int_equal(limits_asker(cs, 2, 5, now + 1000), LIMITS_NOBODY);
	assert_int_equal(limits_ask(cs, 1, 5, now + 2000), 0);
	limits_release(cs);
}

/* They answer, but so late that what they have is not known any more, or others get their slots. */
TEST(a_wait_for_a_slot_lasts_one_response_time)
{
	struct connection_limits *cs = begin(1);
	const uint64_t begin = 1000000, end = begin + LIMITS_RESPONSE_US;
	uint64_t now;

	reserve(cs, 1);
	for (int i = 0; i < 3; i++)
		for (now = begin; now < end; now += 2 * LIMITS_FRESH_US) {
			assert_int_equal(limits_ask(cs, 1, 5, now), end);
			limits_asker(cs, 0, 4, now);
			limits_asker(cs, 2, 4, now);
		}
	assert_int_equal(limits_ask(cs, 1, 5, end), 0);
	limits_release(cs);
	/* With a slot, or long after the client has gone, it begins anew. */
	for (int i = 0; i < 2; i++) {
		now = end + (uint64_t)(i + 1) * 1000000;
		assert_int_equal(
		    limits_ask(cs, 1, 5, now), now + LIMITS_RESPONSE_US);
		assert_true(limits_reserve(cs, 1));
		limits_release(cs);
		limits_asker(cs, 0, 4, now);
		limits_asker(cs, 2, 4, now);
	}
	now = end + 3000000;
	assert_int_equal(limits_ask(cs, 1, 5, now), now + LIMITS_RESPONSE_US);
	limits_asker(cs, 0, 4, now);
	limits_asker(cs, 2, 4, now);
	now += 2 * LIMITS_RESPONSE_US;
	assert_int_equal(limits_ask(cs, 1, 5, now), now + LIMITS_RESPONSE_US);
}

/* Each has read the clock before that. */
TEST(later_questions_and_offers_are_not_taken_for_old_ones)
{
	struct connection_limits *cs = begin(1);
	const uint64_t now = 1000000;

	reserve(cs, 1);
	assert_int_not_equal(limits_ask(cs, 1, 5, now + 5000), 0);
	told("w-w");
	/* Worker 0 has been asked, and 1 has offered, after now. */
	assert_int_equal(limits_ask(cs, 2, 5, now), now + LIMITS_RESPONSE_US);
	told("w--");
	limits_release(cs);
}

/* What another had a moment ago is no reason not to ask; nor is an answer worth to be woken for. */
TEST(a_worker_without_a_victim_asks_each_time)
{
	struct connection_limits *cs = begin(1);

	reserve(cs, 1);
	assert_int_not_equal(limits_ask(cs, 1, 0, 1000000), 0);
	assert_int_equal(limits_asker(cs, 0, 0, 1000000), LIMITS_NOBODY);
	assert_int_equal(limits_asker(cs, 2, 0, 1000000), LIMITS_NOBODY);
	told("w-w");
	assert_int_not_equal(limits_ask(cs, 1, 0, 1000001), 0);
	told("w-w");
	assert_int_equal(limits_asker(cs, 2, 1, 1000001), 1);
	limits_release(cs);
	told("-p-");
}

TEST(a_freed_slot_ends_the_wait)
{
	struct connection_limits *cs = begin(1);

	reserve(cs, 1);
	assert_int_not_equal(limits_ask(cs, 1, 1, 1000000), 0);
	told("w-w");
	assert_int_equal(limits_asker(cs, 0, 2, 1001000), 1);
	limits_responded(cs, 0, 1);
	limits_release(cs);
	told("-p-");
	/* One that has given is asked again, however late that is. */
	assert_int_not_equal(
	    limits_ask(cs, 2, 1, 1000000 + LIMITS_RESPONSE_US), 0);
	told("ww-");
	limits_retire(cs, 2);
	assert_int_equal(limits_asker(cs, 0, 2, 1001000), LIMITS_NOBODY);
	assert_int_equal(limits_asker(cs, 1, 2, 1001000), LIMITS_NOBODY);
	/* The second one that has better closes nothing more. */
	assert_int_equal(limits_asker(cs, 2, 3, 1001000), LIMITS_NOBODY);
	told("---");
	assert_false(limits_reserve(cs, 0));
	assert_true(limits_reserve(cs, 1));
	limits_release(cs);
}

TEST(a_silent_worker_causes_one_wait)
{
	struct connection_limits *cs = begin(1);
	uint64_t now = 1000000;

	reserve(cs, 1);
	assert_int_equal(limits_ask(cs, 1, 1, now), now + LIMITS_RESPONSE_US);
	assert_int_equal(limits_asker(cs, 2, 1, now), LIMITS_NOBODY);
	told("wpw");
	now += LIMITS_RESPONSE_US;
	limits_asker(cs, 2, 1, now);
	assert_int_equal(limits_ask(cs, 1, 1, now), 0);
	told("---");
	/* Nor does the asker wait for a slot then. */
	limits_release(cs);
	told("---");
	assert_true(limits_reserve(cs, 0));
	/* Late, but it answers. */
	assert_int_equal(limits_asker(cs, 0, 9, now), LIMITS_NOBODY);
	assert_int_not_equal(limits_ask(cs, 1, 1, now), 0);
	told("w--");
	limits_release(cs);
}

/* However much a worker is told while its loop stands still. */
TEST(no_command_is_lost)
{
	struct connection_limits *cs = begin(1);

	for (unsigned i = 0; i < 100000; i++)
		limits_ask(cs, 0, 1, 1000000);
	commands_give(&orders[1], COMMAND_DRAIN);
	assert_true(is_woken(&orders[1]));
	assert_int_equal(
	    commands_take(&orders[1]), COMMAND_WISH | COMMAND_DRAIN);
	assert_false(is_woken(&orders[1]));
	assert_int_equal(commands_take(&orders[1]), 0);
	commands_give(&orders[1], COMMAND_STOP);
	assert_true(is_woken(&orders[1]));
	assert_int_equal(commands_take(&orders[1]), COMMAND_STOP);
}

/* Each of the workers takes the place, or waits for it; whoever has it gives it on. */
struct runner {
	struct connection_limits *rn_clients;
	unsigned rn_worker;
	struct commands *rn_orders;
	unsigned rn_had;
};

static void *
take_turns(void *arg)
{
	struct runner *rn = arg;
	struct pollfd pfd = {.fd = rn->rn_orders->od_wake[0], .events = POLLIN};

	while (rn->rn_had < 20000) {
		if (limits_reserve(rn->rn_clients, rn->rn_worker)) {
			rn->rn_had++;
			limits_release(rn->rn_clients);
			continue;
		}
		if (!limits_wait(rn->rn_clients, rn->rn_worker))
			continue;
		if (poll(&pfd, 1, 30000) != 1)
			return NULL;
		commands_take(rn->rn_orders);
	}
	return rn;
}

TEST(no_worker_waits_for_ever)
{
	struct connection_limits *cs = begin(1);
	struct runner runners[WORKERS];
	pthread_t threads[WORKERS];
	void *result;

	for (unsigned i = 0; i < WORKERS; i++) {
		runners[i] = (struct runner){cs, i, &orders[i], 0};
		assert_int_equal(
		    pthread_create(&threads[i], NULL, take_turns, &runners[i]),
		    0);
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		pthread_join(threads[i], &result);
		assert_non_null(result);
	}
}
