/*
 * What is counted: histograms of times.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/pagewise.h"

static size_t
bucket_of(uint64_t us)
{
	struct pw_histogram hg = {0}, copy;
	size_t i;

	pw_histogram_add(&hg, us);
	pw_histogram_copy(&copy, &hg);
	assert_int_equal(copy.hg_sum, us);
	for (i = 0; copy.hg_count[i] == 0; i++)
		assert_true(i < PW_HISTOGRAM - 1);
	assert_int_equal(copy.hg_count[i], 1);
	return i;
}

static void
a_time_is_in_the_first_bucket_that_holds_it(void **state)
{
	size_t last = PW_HISTOGRAM - 1;

	(void)state;
	assert_int_equal(bucket_of(0), 0);
	assert_int_equal(bucket_of(1), 0);
	assert_int_equal(bucket_of(2), 1);
	assert_int_equal(bucket_of(3), 2);
	assert_int_equal(bucket_of(1024), 10);
	assert_int_equal(bucket_of(1025), 11);
	assert_int_equal(bucket_of((uint64_t)1 << (last - 1)), last - 1);
	assert_int_equal(bucket_of(((uint64_t)1 << (last - 1)) + 1), last);
	assert_int_equal(bucket_of(UINT64_MAX), last);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_time_is_in_the_first_bucket_that_holds_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
