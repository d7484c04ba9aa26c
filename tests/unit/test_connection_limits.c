/*
 * How many connections there may be (server/worker/connection_limits.c); each test has the name of the
 * rule that it pins.
 */
#include "limits_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>

#include "server/util/client_key.h"

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static union address
address(const char *text)
{
	union address a = {0};

	if (inet_pton(AF_INET, text, &a.in.sin_addr) == 1)
		a.sa.sa_family = AF_INET;
	else {
		assert_int_equal(
		    inet_pton(AF_INET6, text, &a.in6.sin6_addr), 1);
		a.sa.sa_family = AF_INET6;
	}
	return a;
}

static int
enter(struct connection_limits *cs, const char *text, struct client **out)
{
	union address a = address(text);

	return limits_enter(cs, &a.sa, out);
}

TEST(which_addresses_are_one)
{
	static const struct {
		const char *a, *b;
		bool same;
	} table[] = {
	    {"192.0.2.1", "192.0.2.1", true},
	    {"192.0.2.1", "192.0.2.2", false},
	    {"192.0.2.1", "::ffff:192.0.2.1", true},
	    {"::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
	    {"2001:db8::1", "2001:db8::2", true},
	    {"2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true},
	    {"2001:db8:0:1::1", "2001:db8:0:2::1", false},
	    {"2001:db8::1", "2001:db9::1", false},
	    {"0.0.0.1", "::1", false},
	    {"0.0.0.0", "::", false},
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		union address a = address(table[i].a), b = address(table[i].b);

		if ((client_key(&a.sa) == client_key(&b.sa)) != table[i].same)
			fail_msg("%s and %s", table[i].a, table[i].b);
	}
}

TEST(the_total_is_exact)
{
	SCOPED(limits_destroy) struct connection_limits *cs = create(3, 0);

	assert_true(limits_are_unused(cs));
	reserve(cs, 3);
	assert_false(limits_are_unused(cs));
	assert_false(limits_reserve(cs, 0));
	assert_false(limits_reserve(cs, 0));
	limits_release(cs);
	reserve(cs, 1);
	assert_false(limits_reserve(cs, 0));
	limits_leave(cs, NULL);
	reserve(cs, 1);
	release(cs, 3);
	assert_true(limits_are_unused(cs));
}

TEST(without_limits_there_is_none)
{
	SCOPED(limits_destroy) struct connection_limits *cs = create(0, 0);
	struct client *cl;

	for (int i = 0; i < 1000; i++) {
		assert_true(limits_reserve(cs, 0));
		assert_int_equal(enter(cs, "192.0.2.1", &cl), 0);
		assert_null(cl);
	}
}

TEST(each_address_has_its_own_count)
{
	SCOPED(limits_destroy) struct connection_limits *cs = create(0, 2);
	struct client *a[2], *b, *none;

	assert_int_equal(enter(cs, "192.0.2.1", &a[0]), 0);
	assert_int_equal(enter(cs, "::ffff:192.0.2.1", &a[1]), 0);
	assert_int_equal(enter(cs, "192.0.2.1", &none), -EDQUOT);
	assert_null(none);
	assert_int_equal(enter(cs, "192.0.2.2", &b), 0);
	limits_leave(cs, a[0]);
	assert_int_equal(enter(cs, "192.0.2.1", &a[0]), 0);
	assert_int_equal(enter(cs, "192.0.2.1", &none), -EDQUOT);
	limits_leave(cs, a[0]);
	limits_leave(cs, a[1]);
	limits_leave(cs, b);
}

/* More addresses than there are places in the table, and all of them gone again. */
TEST(many_addresses_are_kept_apart)
{
	enum { MANY = 200000 };
	SCOPED(limits_destroy) struct connection_limits *cs = create(0, 1);
	struct client **all = calloc(MANY, sizeof(struct client *)), *none;
	union address a = {.in.sin_family = AF_INET};
	unsigned i, round;

	assert_non_null(all);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < MANY; i++) {
			a.in.sin_addr.s_addr = htonl(i);
			assert_int_equal(limits_enter(cs, &a.sa, &all[i]), 0);
			assert_int_equal(
			    limits_enter(cs, &a.sa, &none), -EDQUOT);
		}
		for (i = 0; i < MANY; i++)
			limits_leave(cs, all[i]);
	}
	free(all);
}

struct thread_of {
	pthread_t to_id;
	struct connection_limits *to_limits;
	unsigned to_worker;
};

static void *
come_and_go(void *arg)
{
	const struct thread_of *to = arg;
	struct connection_limits *cs = to->to_limits;
	struct client *cl;

	for (int i = 0; i < 20000; i++) {
		if (!limits_reserve(cs, to->to_worker))
			continue;
		if (enter(cs, i % 2 ? "192.0.2.1" : "192.0.2.2", &cl) == 0)
			limits_leave(cs, cl);
		else
			limits_release(cs);
	}
	return NULL;
}

TEST(threads_lose_no_slot)
{
	SCOPED(limits_destroy) struct connection_limits *cs = create(3, 2);
	struct client *cl[2], *none;
	struct thread_of threads[WORKERS];

	for (unsigned i = 0; i < WORKERS; i++) {
		threads[i] =
		    (struct thread_of){.to_limits = cs, .to_worker = i};
		assert_int_equal(pthread_create(&threads[i].to_id, NULL,
				     come_and_go, &threads[i]),
		    0);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(threads[i].to_id, NULL);
	reserve(cs, 3);
	assert_false(limits_reserve(cs, 0));
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(enter(cs, "192.0.2.1", &cl[i]), 0);
	assert_int_equal(enter(cs, "192.0.2.1", &none), -EDQUOT);
	limits_leave(cs, cl[0]);
	limits_leave(cs, cl[1]);
	limits_release(cs);
}

TEST(fewer_descriptors_than_connections_are_the_limit)
{
	static const struct {
		unsigned total, limit, most;
	} table[] = {{0, 3, 3}, {5, 3, 3}, {3, 5, 3}, {3, 3, 3}};
	struct connection_limits *cs;

	for (size_t i = 0; i < COUNT(table); i++) {
		cs = create(table[i].total, 0);
		limits_limit(cs, table[i].limit);
		assert_int_equal(limits_most(cs), table[i].most);
		reserve(cs, table[i].most);
		assert_false(limits_reserve(cs, 0));
		release(cs, table[i].most);
		limits_destroy(&cs);
	}
}
