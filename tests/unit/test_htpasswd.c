/*
 * The hash that an unknown user is compared with (server/util/htpasswd.h), so that a response does
 * not tell by its time which users exist.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/util/htpasswd.h"

/* the last field of a hash of SHA-256 */
#define SUM "WEGCM0UY6IpgUiiJ3jpZoxVtOEQvnaFJrJsBKBDFJkA"

/* Checks that of the users in `text` the usual hash begins with `usual`. */
static void
check_usual(const char *text, const char *usual)
{
	char path[] = "/tmp/pw-htpasswd-XXXXXX", why[512] = "";
	int fd = mkstemp(path);
	struct htpasswd *ht;

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	ht = htpasswd_load(path, why, sizeof(why));
	unlink(path);
	assert_string_equal(why, "");
	assert_memory_equal(ht->ht_usual, usual, strlen(usual));
	assert_null(htpasswd_free(ht));
}

static void
the_cost_counts_and_the_salt_does_not(void **state)
{
	(void)state;
	check_usual("a:$5$rounds=2000$one$" SUM "\n"
		    "b:$5$rounds=2000$one$" SUM "\n"
		    "c:$5$rounds=3000$one$" SUM "\n"
		    "d:$5$rounds=3000$two$" SUM "\n"
		    "e:$5$rounds=3000$six$" SUM "\n",
	    "$5$rounds=3000$");
	check_usual("a:$5$same$" SUM "\n"
		    "b:$5$same$" SUM "\n"
		    "c:$5$rounds=2000$one$" SUM "\n"
		    "d:$5$rounds=2000$two$" SUM "\n"
		    "e:$5$rounds=2000$six$" SUM "\n",
	    "$5$rounds=2000$");
}

static void
a_salt_may_be_empty(void **state)
{
	(void)state;
	check_usual("a:$5$rounds=2000$$" SUM "\n", "$5$rounds=2000$$");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_cost_counts_and_the_salt_does_not),
	    cmocka_unit_test(a_salt_may_be_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
