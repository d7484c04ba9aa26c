/*
 * test: a program of unit tests.  A test registers itself; its name is the rule that it checks.
 *
 *	TEST(a_rule)                    runs between setup() and teardown(), if the program has them
 *	TEST(a_rule, up)                between up() and teardown(); up is NULL: with neither
 *	TEST(a_rule, up, down)          between up() and down()
 *	AGAIN(a_rule, up);              runs it once more, between up() and teardown()
 *
 * `state` is what the set-up has left there.  A program may also have setup_all() and teardown_all().
 */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* In front of a declaration: what is called with its address where its scope ends. */
#define SCOPED(release) __attribute__((cleanup(release)))

#define TEST(...)		      TEST_PICK(__VA_ARGS__, TEST_3, TEST_2, TEST_1, )(__VA_ARGS__)
#define TEST_PICK(a, b, c, pick, ...) pick
#define TEST_1(test)		      TEST_3(test, setup, teardown)
#define TEST_2(test, up)	      TEST_3(test, up, test_down(up))
#define TEST_3(test, up, down)            \
	static void test(void **);        \
	TEST_ADD(test, test##_, up, down) \
	static void test(void **state __attribute__((unused)))
#define AGAIN(test, up)                           \
	TEST_ADD(test, test##_##up, up, teardown) \
	struct test_again
#define TEST_ADD(test, adder, up, down)                                     \
	static void __attribute__((constructor)) adder(void)                \
	{                                                                   \
		test_add(&(struct CMUnitTest){#test, test, up, down, NULL}, \
		    __LINE__);                                              \
	}

/* The same numbers each time: xorshift. */
static inline uint64_t
next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static inline void
free_at(void *pointer)
{
	free(*(void **)pointer);
}

static inline void
close_at(const int *fd)
{
	close(*fd);
}

int setup(void **state) __attribute__((weak));
int teardown(void **state) __attribute__((weak));
int setup_all(void **state) __attribute__((weak));
int teardown_all(void **state) __attribute__((weak));

static inline CMFixtureFunction
test_down(CMFixtureFunction up)
{
	return up == NULL ? NULL : teardown;
}

static struct CMUnitTest test_all[64]; /* in the order of their lines */
static int test_lines[COUNT(test_all)];
static unsigned test_count;

static inline void
test_add(const struct CMUnitTest *test, int line)
{
	unsigned i = test_count++;

	if (i == COUNT(test_all))
		abort();
	for (; i > 0 && test_lines[i - 1] > line; i--) {
		test_all[i] = test_all[i - 1];
		test_lines[i] = test_lines[i - 1];
	}
	test_all[i] = *test;
	test_lines[i] = line;
}

int
main(void)
{
	return _cmocka_run_group_tests(
	    __BASE_FILE__, test_all, test_count, setup_all, teardown_all);
}

#endif
