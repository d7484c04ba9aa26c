/*
 * Reasons of OpenSSL in messages (server/tls/identity.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/err.h>

#include "server/tls/identity.h"

static void
an_error_is_the_cause_of_one_failure_only(void **state)
{
	char first[128], second[128];

	(void)state;
	ERR_raise(ERR_LIB_SYS, 2);
	assert_string_equal(
	    tls_cause(first, sizeof(first)), "No such file or directory");
	assert_string_equal(tls_cause(second, sizeof(second)), "unknown cause");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_error_is_the_cause_of_one_failure_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
