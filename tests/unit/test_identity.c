/*
 * Reasons of OpenSSL in messages (server/tls/identity.h).
 */
#include "test.h"

#include <openssl/err.h>

#include "server/tls/identity.h"

TEST(an_error_is_the_cause_of_one_failure_only)
{
	char first[128], second[128];

	ERR_raise(ERR_LIB_SYS, 2);
	assert_string_equal(
	    tls_cause(first, sizeof(first)), "No such file or directory");
	assert_string_equal(tls_cause(second, sizeof(second)), "unknown cause");
}
