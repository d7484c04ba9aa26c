/*
 * How many connections there may be (server/clients.c); each test has the name of the
 * rule that it pins.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/clients.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

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

static struct clients *
create(unsigned total, unsigned each)
{
	struct clients *cs;

	assert_int_equal(clients_create(total, each, &cs), 0);
	return cs;
}

static int
enter(struct clients *cs, const char *text, struct client **out)
{
	union address a = address(text);

	return clients_enter(cs, &a.sa, out);
}

static void
which_addresses_are_one(void **state)
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
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(table); i++) {
		union address a = address(table[i].a), b = address(table[i].b);

		if ((clients_key(&a.sa) == clients_key(&b.sa)) != table[i].same)
			fail_msg("%s and %s", table[i].a, table[i].b);
	}
}

static void
the_total_is_exact(void **state)
{
	struct clients *cs = create(3, 0);
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		assert_true(clients_reserve(cs));
	assert_false(clients_reserve(cs));
	assert_false(clients_reserve(cs));
	clients_release(cs);
	assert_true(clients_reserve(cs));
	assert_false(clients_reserve(cs));
	clients_leave(cs, NULL);
	assert_true(clients_reserve(cs));
	clients_destroy(&cs);
}

static void
without_limits_there_is_none(void **state)
{
	struct clients *cs = create(0, 0);
	struct client *cl;
	int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		assert_true(clients_reserve(cs));
		assert_int_equal(enter(cs, "192.0.2.1", &cl), 0);
		assert_null(cl);
	}
	clients_destroy(&cs);
}

static void
an_address_has_its_number_and_others_theirs(void **state)
{
	struct clients *cs = create(0, 2);
	struct client *a[2], *b, *none;

	(void)state;
	assert_int_equal(enter(cs, "192.0.2.1", &a[0]), 0);
	assert_int_equal(enter(cs, "::ffff:192.0.2.1", &a[1]), 0);
	assert_int_equal(enter(cs, "192.0.2.1", &none), -EDQUOT);
	assert_null(none);
	assert_int_equal(enter(cs, "192.0.2.2", &b), 0);
	clients_leave(cs, a[0]);
	assert_int_equal(enter(cs, "192.0.2.1", &a[0]), 0);
	assert_int_equal(enter(cs, "192.0.2.1", &none), -EDQUOT);
	clients_leave(cs, a[0]);
	clients_leave(cs, a[1]);
	clients_leave(cs, b);
	clients_destroy(&cs);
}

/* More addresses than there are places in the table, and all of them gone again. */
static void
many_addresses_are_kept_apart(void **state)
{
	enum { MANY = 200000 };
	struct clients *cs = create(0, 1);
	struct client **all = calloc(MANY, sizeof(struct client *)), *none;
	union address a = {.in.sin_family = AF_INET};
	unsigned i, round;

	(void)state;
	assert_non_null(all);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < MANY; i++) {
			a.in.sin_addr.s_addr = htonl(i);
			assert_int_equal(clients_enter(cs, &a.sa, &all[i]), 0);
			assert_int_equal(
			    clients_enter(cs, &a.sa, &none), -EDQUOT);
		}
		for (i = 0; i < MANY; i++)
			clients_leave(cs, all[i]);
	}
	free(all);
	clients_destroy(&cs);
}

static void *
come_and_go(void *arg)
{
	struct clients *cs = arg;
	struct client *cl;
	int i;

	for (i = 0; i < 20000; i++) {
		if (!clients_reserve(cs))
			continue;
		if (enter(cs, i % 2 ? "192.0.2.1" : "192.0.2.2", &cl) == 0)
			clients_leave(cs, cl);
		else
			clients_release(cs);
	}
	return NULL;
}

static void
threads_lose_no_place(void **state)
{
	struct clients *cs = create(3, 2);
	struct client *cl[2], *none;
	pthread_t threads[4];
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(threads); i++)
		assert_int_equal(
		    pthread_create(&threads[i], NULL, come_and_go, cs), 0);
	for (i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < 3; i++)
		assert_true(clients_reserve(cs));
	assert_false(clients_reserve(cs));
	for (i = 0; i < 2; i++)
		assert_int_equal(enter(cs, "192.0.2.1", &cl[i]), 0);
	assert_int_equal(enter(cs, "192.0.2.1", &none), -EDQUOT);
	clients_leave(cs, cl[0]);
	clients_leave(cs, cl[1]);
	clients_destroy(&cs);
}

static void
a_wish_is_forgotten_after_a_moment(void **state)
{
	struct clients *cs = create(1, 0);

	(void)state;
	assert_false(clients_wanted(cs, 1));
	clients_want(cs, 1000000);
	assert_true(clients_wanted(cs, 1000000));
	assert_true(clients_wanted(cs, 1499999));
	assert_false(clients_wanted(cs, 1500000));
	clients_want(cs, 2000000);
	clients_given(cs);
	assert_false(clients_wanted(cs, 2000000));
	clients_destroy(&cs);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(which_addresses_are_one),
	    cmocka_unit_test(the_total_is_exact),
	    cmocka_unit_test(without_limits_there_is_none),
	    cmocka_unit_test(an_address_has_its_number_and_others_theirs),
	    cmocka_unit_test(many_addresses_are_kept_apart),
	    cmocka_unit_test(threads_lose_no_place),
	    cmocka_unit_test(a_wish_is_forgotten_after_a_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
