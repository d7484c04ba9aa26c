/*
 * Values of keys: sizes, numbers, words, addresses, users; each test has the name of the rule that
 * it pins.
 */
#include "conf_fixture.h"

TEST(a_size_takes_one_suffix_of_1024s)
{
	static const struct {
		const char *text;
		int error;
		uint64_t value;
	} table[] = {
	    {"0", 0, 0},
	    {"65536", 0, 65536},
	    {"64K", 0, 65536},
	    {"2m", 0, 2 << 20},
	    {"3G", 0, (uint64_t)3 << 30},
	    {"18446744073709551615", 0, UINT64_MAX},
	    {"18446744073709551616", -ERANGE, 0},
	    {"18446744073709551615K", -ERANGE, 0},
	    {"", -EINVAL, 0},
	    {"K", -EINVAL, 0},
	    {"1KB", -EINVAL, 0},
	    {"1T", -EINVAL, 0},
	    {"-1", -EINVAL, 0},
	    {" 1", -EINVAL, 0},
	    {"1 K", -EINVAL, 0},
	    {"0x10", -EINVAL, 0},
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		uint64_t value = 0;

		assert_int_equal(
		    conf_size(table[i].text, &value), table[i].error);
		if (table[i].error == 0)
			assert_int_equal(value, table[i].value);
	}
}

TEST(agent_has_an_address_of_its_own)
{
	struct conf *conf = must_load_text("agent = \"*:8082\"\n" SITE, "");

	assert_string_equal(conf->conf_agent.la_text, "*:8082");
	conf = must_load_text("agent = \"off\"\n" SITE, "");
	assert_null(conf->conf_agent.la_text);
	conf =
	    must_load_text("admin = {\"127.0.0.1:1\", \"/run/a\"}\n" SITE, "");
	assert_int_equal(conf->conf_nadmin, 2);
	assert_string_equal(conf->conf_admin[1].la_text, "/run/a");
	expect_file_error("admin = {\"/a\",\n\"/a\"}\n" SITE,
	    ":2: admin: /a is listed twice");
	expect_file_error("agent = \"/run/agent\"\n" SITE,
	    ":1: agent: \"/run/agent\" is not an address: write ADDR:PORT, as "
	    "in "
	    "10.0.0.1:8082 (\"off\" for none)");
	assert_int_equal(load_text("listen = \"127.0.0.1:81\"\nagent = "
				   "\"*:81\"\n" SITE,
			     "", &conf),
	    CONF_EXIT_ERROR);
	assert_non_null(strstr(err_text,
	    "agent: *:81 is already used by the sites (listen = "
	    "127.0.0.1:81): choose another address"));
	assert_int_equal(load_text("admin = \"127.0.0.1:81\"\nagent = "
				   "\"127.0.0.1:81\"\n" SITE,
			     "", &conf),
	    CONF_EXIT_ERROR);
	assert_non_null(strstr(err_text,
	    "agent: 127.0.0.1:81 is already used by the metrics (admin "
	    "= 127.0.0.1:81): choose another address"));
}

TEST(admin_is_a_socket_beside_the_file_or_a_loopback_address)
{
	static const char *const loopback[] = {
	    "127.0.0.1:1", "127.255.0.9:0", "[::1]:8081"};
	static const char *const others[] = {"*:8081", "8081", "0.0.0.0:1",
	    "192.0.2.7:1", "[::]:1", "[2001:db8::1]:1"};
	char text[256], expected[256];
	struct conf *conf;

	for (size_t i = 0; i < COUNT(loopback); i++) {
		snprintf(
		    text, sizeof(text), "admin = \"%s\"\n" SITE, loopback[i]);
		conf = must_load_text(text, "");
		assert_string_equal(conf->conf_admin[0].la_text, loopback[i]);
	}
	for (size_t i = 0; i < COUNT(others); i++) {
		snprintf(
		    text, sizeof(text), "admin = \"%s\"\n" SITE, others[i]);
		snprintf(expected, sizeof(expected),
		    ":1: admin: %s is reachable from outside: write "
		    "127.0.0.1:PORT, [::1]:PORT, or a socket path",
		    others[i]);
		expect_file_error(text, expected);
	}
	conf = must_load_text("admin = \"run/admin\"\n" SITE, "");
	snprintf(expected, sizeof(expected), "%s/run/admin", dir);
	assert_int_equal(conf->conf_admin[0].la_addr.ss_family, AF_UNIX);
	assert_string_equal(conf->conf_admin[0].la_text, expected);
	conf = must_load_text("admin = off\n" SITE, "");
	assert_int_equal(conf->conf_nadmin, 0);
}

TEST(a_number_is_checked_against_its_range)
{
	static const struct {
		const char *line;
		const char *cause;
	} table[] = {
	    {"workers = 0", "0 is out of range (1 to 1024, or auto)"},
	    {"workers = 1025", "1025 is out of range (1 to 1024, or auto)"},
	    {"workers = x", "x is not a number (1 to 1024, or auto)"},
	    {"threads = 0", "0 is out of range (1 to 256)"},
	    {"threads = 257", "257 is out of range (1 to 256)"},
	    {"threads = 1K", "1K is not a number (1 to 256)"},
	    {"threads = 99999999999999999999",
		"99999999999999999999 is out of range (1 to 256)"},
	    {"open_files = 15", "15 is out of range (16 to 1000000)"},
	    {"open_files = 1000001", "1000001 is out of range (16 to 1000000)"},
	    {"hot_set = 65G", "65G is out of range (0 to 64G, or auto)"},
	    {"max_head_size = 1023", "1023 is out of range (1K to 1M)"},
	    {"max_head_size = 1025K", "1025K is out of range (1K to 1M)"},
	    {"readahead = 63K", "63K is out of range (64K to 64M, 0 or auto)"},
	    {"readahead = 65M", "65M is out of range (64K to 64M, 0 or auto)"},
	    {"readahead = big", "big is not a size (64K to 64M, 0 or auto)"},
	    {"head_timeout = 0", "0 is out of range (1 to 3600)"},
	    {"send_timeout = 0", "0 is out of range (1 to 86400)"},
	    {"max_fields = 0", "0 is out of range (1 to 1024)"},
	    {"max_ranges = 0", "0 is out of range (1 to 1024)"},
	    {"max_connections = 10000001",
		"10000001 is out of range (0 to 10000000)"},
	    {"min_send_rate = 2M", "2M is out of range (0 to 1M)"},
	    {"tcp_memory = 65G", "65G is out of range (0 to 64G, or auto)"},
	    {"tcp_memory = much", "much is not a size (0 to 64G, or auto)"},
	    {"stall_log = 60001", "60001 is out of range (0 to 60000)"},
	    {"busy_poll = 10001", "10001 is out of range (0 to 10000)"},
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		size_t len = strcspn(table[i].line, " ");
		char text[128], expected[128];

		snprintf(text, sizeof(text), "\n%s\n" SITE, table[i].line);
		snprintf(expected, sizeof(expected), ":2: %.*s: %s", (int)len,
		    table[i].line, table[i].cause);
		expect_file_error(text, expected);
	}
	expect_usage_error("--root / --workers 0",
	    "--workers: 0 is out of range (1 to 1024, or auto)");
}

TEST(an_unknown_word_is_an_error)
{
	expect_file_error("cache = lose\n" SITE,
	    ":1: cache: \"lose\" is not keep, drop or auto");
	expect_file_error("autoindex = maybe\n" SITE,
	    ":1: autoindex: \"maybe\" is not true "
	    "or false (also on, yes, off, no)");
	expect_file_error("index = {\"a\",\n\"b/c\"}\n" SITE,
	    ":2: index: \"b/c\" is not a file name: write a name without a "
	    "\"/\"");
	expect_file_error("access_log = \"\"\n" SITE,
	    ":1: access_log: the path is empty (write \"off\" for none)");
}

TEST(an_unknown_send_path_lists_the_known_ones)
{
	char expected[256] =
	    ":1: send_path: unknown send path \"warp\": write one of auto";

	for (const char *const *s = pw_send_path_names(); *s != NULL; s++) {
		strcat(expected, ", ");
		strcat(expected, *s);
	}
	expect_file_error("send_path = warp\n" SITE, expected);
	assert_non_null(strstr(err_text, "nodiskio"));
}

TEST(a_user_and_a_group_must_exist)
{
	struct conf *conf = must_load_text("user = 0\n" SITE, "");

	assert_string_equal(conf->conf_user, "root");
	assert_int_equal(conf->conf_gid, 0);
	assert_int_equal(conf->conf_groups[0], 0);
	expect_file_error(
	    "\nuser = nosuch\n" SITE, ":2: user: there is no user \"nosuch\"");
	expect_file_error("user = 4294967295\n" SITE,
	    ":1: user: there is no user \"4294967295\"");
	expect_file_error("user = root\ngroup = nosuch\n" SITE,
	    ":2: group: there is no group \"nosuch\"");
}

TEST(a_group_needs_a_user_and_an_unknown_user_a_group)
{
	struct conf *conf;

	expect_file_error("\ngroup = 0\n" SITE,
	    ":2: group: user is not set: set user as well");
	assert_int_equal(
	    load_text("user = 987654\n" SITE, "", &conf), CONF_EXIT_ERROR);
	assert_string_equal(err_text,
	    "pagewise: group: user 987654 has no entry in passwd(5): "
	    "set group as well\n");
	conf = must_load_text("group = 7\nuser = 987654\n" SITE, "");
	assert_int_equal(conf->conf_uid, 987654);
	assert_int_equal(conf->conf_gid, 7);
}
