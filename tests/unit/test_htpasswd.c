/*
 * The hash that an unknown user is compared with (server/util/htpasswd.h), so that a response does
 * not tell by its time which users exist.
 */
#include "test.h"

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

TEST(the_cost_counts_and_the_salt_does_not)
{
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

TEST(a_salt_may_be_empty)
{
	check_usual("a:$5$rounds=2000$$" SUM "\n", "$5$rounds=2000$$");
}
