/*
 * The configuration file and its messages; each test has the name of the rule
 * that it pins.
 */
#include "conf_fixture.h"

static void
every_key_of_the_file_is_understood(void **state)
{
	struct conf *conf = must_load_text("listen = {\"127.0.0.1:1\", 2}\n"
					   "workers = 3\nthreads = 4\n"
					   "access_log = \"log\"\n"
					   "log_format = json\n"
					   "stall_log = 9\n"
					   "busy_poll = 70\n"
					   "admin = \"[::1]:0\"\n"
					   "user = root\ngroup = 12345\n"
					   "chroot = \"/\"\nsandbox = off\n"
					   "keep_fowner = false\n"
					   "head_timeout = 5\n"
					   "keepalive_timeout = 0\n"
					   "send_timeout = 7\n"
					   "shutdown_timeout = 8\n"
					   "max_head_size = 9K\n"
					   "max_target_size = 1000\n"
					   "max_fields = 11\nmax_ranges = 12\n"
					   "max_requests = 13\n"
					   "max_connections = 14\n"
					   "max_connections_per_address = 15\n"
					   "min_send_rate = 2K\n"
					   "tcp_memory = 5M\n"
					   "open_files = 1000000\n"
					   "hot_set = 3M\n"
					   "send_path = copy\nreadahead = 1M\n"
					   "cache = auto\nautoindex = true\n"
					   "dotfiles = true\n"
					   "index = {\"a\", \"b\"}\n"
					   "site a { names = {A.example, "
					   "b.example.}\n root = \".\" }\n",
	    "");
	struct site *site = &conf->conf_sites[0];
	struct settings *set = &site->site_set;

	(void)state;
	assert_int_equal(conf->conf_nlisten, 2);
	assert_int_equal(conf->conf_workers, 3);
	assert_int_equal(conf->conf_threads, 4);
	assert_int_equal(conf->conf_log_format, LOG_JSON);
	assert_int_equal(conf->conf_stall_log, 9);
	assert_int_equal(conf->conf_busy_poll, 70);
	assert_string_equal(conf->conf_admin[0].la_text, "[::1]:0");
	assert_string_equal(conf->conf_user, "root");
	assert_int_equal(conf->conf_uid, 0);
	assert_int_equal(conf->conf_gid, 12345);
	assert_string_equal(conf->conf_chroot, "/");
	assert_false(conf->conf_sandbox);
	assert_false(conf->conf_keep_fowner);
	assert_int_equal(conf->conf_head_timeout, 5);
	assert_int_equal(conf->conf_keepalive_timeout, 0);
	assert_int_equal(conf->conf_send_timeout, 7);
	assert_int_equal(conf->conf_shutdown_timeout, 8);
	assert_int_equal(conf->conf_max_head, 9216);
	assert_int_equal(conf->conf_max_target, 1000);
	assert_int_equal(conf->conf_max_fields, 11);
	assert_int_equal(conf->conf_max_ranges, 12);
	assert_int_equal(conf->conf_max_requests, 13);
	assert_int_equal(conf->conf_max_connections, 14);
	assert_int_equal(conf->conf_max_per_address, 15);
	assert_int_equal(conf->conf_min_send_rate, 2048);
	assert_int_equal(conf->conf_tcp_memory, 5 << 20);
	assert_int_equal(conf->conf_open_files, 1000000);
	assert_int_equal(conf->conf_hot_set, 3 << 20);
	assert_ptr_equal(set->set_send_path, pw_send_path("copy"));
	assert_int_equal(set->set_readahead, 1 << 20);
	assert_int_equal(set->set_cache, PW_CACHE_AUTO);
	assert_true(set->set_autoindex);
	assert_true(set->set_dotfiles);
	assert_string_equal(set->set_index[0], "a");
	assert_string_equal(set->set_index[1], "b");
	assert_string_equal(site->site_name, "a");
	assert_string_equal(site->site_names[0], "a.example");
	assert_string_equal(site->site_names[1], "b.example");
	conf_destroy(&conf);
}

static void
an_error_names_file_line_key_and_cause(void **state)
{
	(void)state;
	expect_file_error(
	    "# one\n\n// two\nnonsense = 1\n", ":4: nonsense: unknown key");
	expect_file_error("\n\"\" = 1\n", ":2: \"\": unknown key");
	/* A variable is no key, whatever it holds. */
	setenv("EMPTY", "", 1);
	expect_file_error("\n${EMPTY} = 1\n", ":2: ${EMPTY}: unknown key");
	expect_file_error("site a {\n}\n\n'' {}\n", ":4: \"\": unknown key");
	expect_file_error(
	    "site a {\nlocation / {\n'' = 1\n}\n}\n", ":3: \"\": unknown key");
	/* It is one line, and nothing for a terminal. */
	expect_file_error(
	    "\n'a\nb\033[31m' = 1\n", ":2: a?b?[31m: unknown key");
	expect_file_error("workers = 'a\rb'\n",
	    ":1: workers: a?b is not a number (1 to 1024, or auto)");
	expect_file_error("\nworkers 2\n",
	    ":2: workers: '=' is missing: write workers = N|auto");
	expect_file_error("\nworkers = {2}\n",
	    ":2: {: not expected here; a comma before it "
	    "or quotes around the value may be missing");
	expect_file_error("site a {\nroot = /\nnames = {b.org c.org}\n}\n",
	    ":3: c.org: not expected here; a comma before it or quotes around "
	    "the value may be missing");
	expect_file_error(
	    "\nworker = 2\n", ":2: worker: unknown key; did you mean workers?");
	expect_file_error("\nmax_connection_per_adress = 2\n",
	    ":2: max_connection_per_adress: unknown key; did you mean "
	    "max_connections_per_address?");
	expect_file_error("\nsite { }\n",
	    ":2: site: the name is missing or needs quotes: write site "
	    "\"NAME\" {");
	expect_file_error("site a {\nlocation = /x {\n}\n}\n",
	    ":2: location: the name is missing or needs quotes: write "
	    "location \"NAME\" {");
	expect_file_error("\nsite a root\n",
	    ":2: site: '{' is missing: write site \"NAME\" {");
	expect_file_error("\nworkers += 2\n",
	    ":2: \"+=\" is not supported: write the whole list with '='");
	expect_file_error(
	    "\n}\n", ":2: unexpected '}': no block is open; remove it");
}

static void
a_key_in_the_wrong_section_is_told_where_it_belongs(void **state)
{
	static const char in_site[] =
	    "is not allowed at the top level: move it into site \"NAME\" { "
	    "root = \"DIR\" }";
	static const char top[] =
	    "is only allowed at the top level: move it out of the site";
	static const char above[] =
	    "is not allowed in a location: move it to the site";
	static const char below[] =
	    "is only allowed in a location: move it into a location of a site";
	static const struct {
		const char *text;
		const char *key;
		const char *place;
	} table[] = {
	    {"\n\nroot = \"/\"\n", "root", in_site},
	    {"\n\nnames = {a}\n", "names", in_site},
	    {"\n\nlocation / { }\n", "location", in_site},
	    {SITE "site b {\nworkers = 1\n}\n", "workers", top},
	    {"site b {\n\nlisten = {}\n}\n", "listen", top},
	    {SITE "\nsite b { site c { } }\n", "site", top},
	    {"\n\nalias = \"/\"\n", "alias", below},
	    {"site a {\n\nalias = b }\n", "alias", below},
	    {"site a {\nlocation / {\nnames = b } }\n", "names", above},
	    {"site a {\nlocation / {\nlocation /b { } } }\n", "location",
		above},
	    {"site a {\nlocation / {\nthreads = 1 } }\n", "threads", top},
	    {SITE "\nsit b { }\n", "sit", "unknown key; did you mean site?"},
	    {"site a {\n\nrot = b }\n", "rot",
		"unknown key; did you mean root?"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		char expected[256];

		snprintf(expected, sizeof(expected), ":3: %s: %s", table[i].key,
		    table[i].place);
		expect_file_error(table[i].text, expected);
	}
}

static void
an_empty_list_of_addresses_is_an_error_on_its_line(void **state)
{
	static const char cause[] =
	    "listen: the list is empty: write at least one "
	    "ADDR:PORT|unix:PATH";
	static const char *const texts[] = {
	    "\nlisten = {}\n" SITE,
	    "\nlisten={ \n\n }\n" SITE,
	    "\n\"listen\" = {}\n" SITE,
	    "\n'listen'\t= { # none\n}\n" SITE,
	    "/* listen = {}\n*/listen = {} index = {}\n" SITE,
	    "index = {\"a\"}\nlisten = {}\n" SITE,
	    "site a { root = \".\" names = {} }\nindex = {} listen = {}\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		char expected[128];

		snprintf(expected, sizeof(expected), ":2: %s", cause);
		expect_file_error(texts[i], expected);
	}
}

static void
an_empty_list_of_anything_else_stands_for_none(void **state)
{
	struct conf *conf = must_load_text(
	    "listen = {\":1\"}\nindex = {}\n"
	    "site a { root = \".\" names = {} location / { index = {} } }\n",
	    "");

	(void)state;
	assert_int_equal(conf->conf_nlisten, 1);
	assert_null(conf->conf_sites[0].site_names);
	assert_null(conf->conf_sites[0].site_set.set_index);
	conf_destroy(&conf);
}

static void
an_empty_string_is_an_error_for_every_key(void **state)
{
	static const struct {
		const char *key;
		const char *cause;
	} table[] = {
	    {"listen", "the address is empty: write ADDR:PORT, for example "
		       "127.0.0.1:8080"},
	    {"workers", "the value is empty (1 to 1024, or auto)"},
	    {"threads", "the value is empty (1 to 256)"},
	    {"access_log", "the path is empty (write \"off\" for none)"},
	    {"admin", "the address is empty (write \"off\" for none)"},
	    {"agent", "\"\" is not an address: write ADDR:PORT, as in "
		      "10.0.0.1:8082 (\"off\" for none)"},
	    {"log_format", "\"\" is not combined or json"},
	    {"stall_log", "the value is empty (0 to 60000)"},
	    {"mime_types", "the path is empty"},
	    {"max_head_size", "the value is empty (1K to 1M)"},
	    {"readahead", "the value is empty (64K to 64M, 0 or auto)"},
	    {"cache", "\"\" is not keep, drop or auto"},
	    {"autoindex", "\"\" is not true or false (also on, yes, off, no)"},
	    {"dotfiles",
		"\"\" is not true, false, or a name that begins with a dot, "
		"such as \".zarray\""},
	    {"index", "\"\" is not a file name: write a name without a \"/\""},
	    {"listing_header",
		"\"\" is not a file name: write a name without a \"/\""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		char text[128], expected[128];

		snprintf(
		    text, sizeof(text), "\n%s = \"\"\n" SITE, table[i].key);
		snprintf(expected, sizeof(expected), ":2: %s: %s", table[i].key,
		    table[i].cause);
		expect_file_error(text, expected);
	}
	expect_file_error("listen = {\":1\",\n\"\"}\n" SITE,
	    ":2: listen: the address is empty: write ADDR:PORT, for example "
	    "127.0.0.1:8080");
}

static void
comments_do_not_shift_line_numbers(void **state)
{
	(void)state;
	expect_file_error(
	    "#\n# a \"quote\n#{\nbad = 1\n", ":4: bad: unknown key");
	expect_file_error("/* a */ /* b */\nbad = 1\n", ":2: bad: unknown key");
	expect_file_error("/* a\n * b {\n\" */ workers = 1 /*\n*/ bad = 1\n",
	    ":4: bad: unknown key");
	expect_file_error("workers = 1 # a\nthreads = 1 // b\nbad = 1",
	    ":3: bad: unknown key");
	expect_file_error(
	    "access_log = \"a\n# b\n\"\nbad = 1\n", ":4: bad: unknown key");
}

static void
what_looks_like_a_comment_in_a_string_or_word_is_kept(void **state)
{
	char word[] = "k = g//h x/*y ${A:-#}";
	struct conf_why why;
	int line;
	struct conf *conf = must_load_text("access_log = \"/a#b//c/*d\\\"e\"\n"
					   "index = {'f#{\\'', g}\n" SITE,
	    "");

	(void)state;
	assert_string_equal(conf->conf_access_log, "/a#b//c/*d\"e");
	assert_string_equal(conf->conf_sites[0].site_set.set_index[0], "f#{'");
	conf_destroy(&conf);

	assert_int_equal(conf_text_strip(word, &line, &why), 0);
	assert_string_equal(word, "k = g//h x/*y ${A:-#}");
}

static void
what_has_no_end_is_an_error_where_it_began(void **state)
{
	(void)state;
	expect_file_error("\nsite a {\n root = \".\"\n",
	    ":2: site a: the block is not closed: add '}'");
	expect_file_error("site \"b c\"\n{\n root = \".\"\n location / {\n}\n",
	    ":1: site \"b c\": the block is not closed: add '}'");
	expect_file_errors("site a {\n location / {\n readahed = 1\n",
	    ":3: readahed: unknown key; did you mean readahead?",
	    ":1: site a: the block is not closed: add '}'");
	expect_file_error(
	    "\naccess_log = \"a\n\n", ":2: unterminated string: add \"");
	expect_file_error(
	    "\naccess_log = 'a\n\n", ":2: unterminated string: add '");
	expect_file_error("\n\n/* a\n\n", ":3: unterminated comment: add */");
	expect_file_error(
	    "access_log = \"a\\", ":1: unterminated string: add \"");
}

static void
unset_variables_semicolons_and_appending_are_errors(void **state)
{
	(void)state;
	unsetenv("UNSET");
	expect_file_error("\naccess_log = \"/${UNSET}/a\"\n",
	    ":2: ${UNSET}: the environment variable UNSET is not set: set it, "
	    "or write ${UNSET:-default}");
	expect_file_error("access_log = /a/${UNSET}/b\n",
	    ":1: ${UNSET}: the environment variable UNSET is not set: set it, "
	    "or write ${UNSET:-default}");
	expect_file_error("threads = ${UNSET}\n",
	    ":1: ${UNSET}: the environment variable UNSET is not set: set it, "
	    "or write ${UNSET:-default}");
	expect_file_error("site a {\n root = /tmp;\n index = b\n}\n",
	    ":2: /tmp;: remove the ';', or put the value in quotes");
	expect_file_error("workers = 1; threads = 1\n",
	    ":1: 1;: remove the ';', or put the value in quotes");
	expect_file_error("site a {\n index += {\"x\"}\n}\n",
	    ":2: \"+=\" is not supported: write the whole list with '='");
	expect_file_error("workers = 1 ;\n",
	    ":1: ;: remove the ';', or put the value in quotes");
}

static void
a_file_that_is_no_text_is_refused(void **state)
{
	struct conf *conf;
	char words[96], expected[160];

	(void)state;
	write_file(file_path, "workers = 1\n\0\n", 14);
	snprintf(words, sizeof(words), "-c %s", file_path);
	assert_int_equal(load(words, &conf), CONF_EXIT_ERROR);
	snprintf(expected, sizeof(expected),
	    "pagewise: %s: is not a text file: it contains a NUL byte\n",
	    file_path);
	assert_string_equal(err_text, expected);

	snprintf(words, sizeof(words), "-c %s", dir);
	assert_int_equal(load(words, &conf), CONF_EXIT_ERROR);
	snprintf(
	    expected, sizeof(expected), "pagewise: %s: Is a directory\n", dir);
	assert_string_equal(err_text, expected);

	snprintf(words, sizeof(words), "-c %s/none", dir);
	assert_int_equal(load(words, &conf), CONF_EXIT_ERROR);
	snprintf(expected, sizeof(expected),
	    "pagewise: %s/none: No such file or directory\n", dir);
	assert_string_equal(err_text, expected);
}

static void
a_file_without_a_site_is_an_error(void **state)
{
	static const char expected[] =
	    ": no site is configured: add site \"NAME\" { root = \"DIR\" }";

	(void)state;
	expect_file_error("", expected);
	expect_file_error("workers = 1\n", expected);
}

static void
relative_paths_start_at_the_file(void **state)
{
	struct conf *conf;
	char types[96], expected[160];

	(void)state;
	snprintf(types, sizeof(types), "%s/types", dir);
	write_file(types, "text/x-pinned pinned\n", 21);
	conf =
	    must_load_text("mime_types = types\naccess_log = log\n" SITE, "");
	snprintf(expected, sizeof(expected), "%s/.", dir);
	assert_string_equal(conf->conf_sites[0].site_root, expected);
	snprintf(expected, sizeof(expected), "%s/log", dir);
	assert_string_equal(conf->conf_access_log, expected);
	assert_string_equal(
	    mime_type(conf->conf_mime, "/a.pinned", "application/octet-stream"),
	    "text/x-pinned");
	conf_destroy(&conf);

	conf =
	    must_load_text("access_log = \"-\"\nsite a { root = \"/\" }", "");
	assert_string_equal(conf->conf_sites[0].site_root, "/");
	assert_string_equal(conf->conf_access_log, "-");
	conf_destroy(&conf);
}

static void
a_table_of_types_that_cannot_be_read_is_an_error(void **state)
{
	char start[160];
	struct conf *conf;

	(void)state;
	assert_int_equal(load_text("\nmime_types = none\n" SITE, "", &conf),
	    CONF_EXIT_ERROR);
	snprintf(start, sizeof(start), "pagewise: %s:2: mime_types: %s/none",
	    file_path, dir);
	assert_memory_equal(err_text, start, strlen(start));
}

static void
a_size_takes_one_suffix_of_1024s(void **state)
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

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		uint64_t value = 0;

		assert_int_equal(
		    conf_size(table[i].text, &value), table[i].error);
		if (table[i].error == 0)
			assert_int_equal(value, table[i].value);
	}
}

static void
agent_has_an_address_of_its_own(void **state)
{
	struct conf *conf;

	(void)state;
	conf = must_load_text("agent = \"*:8082\"\n" SITE, "");
	assert_string_equal(conf->conf_agent.la_text, "*:8082");
	conf_destroy(&conf);
	conf = must_load_text("agent = \"off\"\n" SITE, "");
	assert_null(conf->conf_agent.la_text);
	conf_destroy(&conf);
	conf =
	    must_load_text("admin = {\"127.0.0.1:1\", \"/run/a\"}\n" SITE, "");
	assert_int_equal(conf->conf_nadmin, 2);
	assert_string_equal(conf->conf_admin[1].la_text, "/run/a");
	conf_destroy(&conf);
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

static void
admin_is_a_socket_beside_the_file_or_a_loopback_address(void **state)
{
	static const char *const loopback[] = {
	    "127.0.0.1:1", "127.255.0.9:0", "[::1]:8081"};
	static const char *const others[] = {"*:8081", "8081", "0.0.0.0:1",
	    "192.0.2.7:1", "[::]:1", "[2001:db8::1]:1"};
	char text[256], expected[256];
	struct conf *conf;

	(void)state;
	for (size_t i = 0; i < COUNT(loopback); i++) {
		snprintf(
		    text, sizeof(text), "admin = \"%s\"\n" SITE, loopback[i]);
		conf = must_load_text(text, "");
		assert_string_equal(conf->conf_admin[0].la_text, loopback[i]);
		conf_destroy(&conf);
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
	conf_destroy(&conf);
	conf = must_load_text("admin = off\n" SITE, "");
	assert_int_equal(conf->conf_nadmin, 0);
	conf_destroy(&conf);
}

static void
a_number_is_checked_against_its_range(void **state)
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

	(void)state;
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

static void
a_word_is_one_of_those_that_are_known(void **state)
{
	(void)state;
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

static void
an_unknown_send_path_lists_the_known_ones(void **state)
{
	char expected[256] =
	    ":1: send_path: unknown send path \"warp\": write one of auto";

	(void)state;
	for (const char *const *s = pw_send_path_names(); *s != NULL; s++) {
		strcat(expected, ", ");
		strcat(expected, *s);
	}
	expect_file_error("send_path = warp\n" SITE, expected);
	assert_non_null(strstr(err_text, "nodiskio"));
}

static void
a_user_and_a_group_have_to_be_there(void **state)
{
	struct conf *conf = must_load_text("user = 0\n" SITE, "");

	(void)state;
	assert_string_equal(conf->conf_user, "root");
	assert_int_equal(conf->conf_gid, 0);
	assert_int_equal(conf->conf_groups[0], 0);
	conf_destroy(&conf);
	expect_file_error(
	    "\nuser = nosuch\n" SITE, ":2: user: there is no user \"nosuch\"");
	expect_file_error("user = 4294967295\n" SITE,
	    ":1: user: there is no user \"4294967295\"");
	expect_file_error("user = root\ngroup = nosuch\n" SITE,
	    ":2: group: there is no group \"nosuch\"");
}

static void
a_group_needs_a_user_and_a_user_a_group(void **state)
{
	struct conf *conf;

	(void)state;
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
	conf_destroy(&conf);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_key_of_the_file_is_understood),
	    cmocka_unit_test(an_error_names_file_line_key_and_cause),
	    cmocka_unit_test(
		a_key_in_the_wrong_section_is_told_where_it_belongs),
	    cmocka_unit_test(
		an_empty_list_of_addresses_is_an_error_on_its_line),
	    cmocka_unit_test(an_empty_list_of_anything_else_stands_for_none),
	    cmocka_unit_test(an_empty_string_is_an_error_for_every_key),
	    cmocka_unit_test(agent_has_an_address_of_its_own),
	    cmocka_unit_test(
		admin_is_a_socket_beside_the_file_or_a_loopback_address),
	    cmocka_unit_test(comments_do_not_shift_line_numbers),
	    cmocka_unit_test(
		what_looks_like_a_comment_in_a_string_or_word_is_kept),
	    cmocka_unit_test(what_has_no_end_is_an_error_where_it_began),
	    cmocka_unit_test(
		unset_variables_semicolons_and_appending_are_errors),
	    cmocka_unit_test(a_file_that_is_no_text_is_refused),
	    cmocka_unit_test(a_file_without_a_site_is_an_error),
	    cmocka_unit_test(relative_paths_start_at_the_file),
	    cmocka_unit_test(a_table_of_types_that_cannot_be_read_is_an_error),
	    cmocka_unit_test(a_size_takes_one_suffix_of_1024s),
	    cmocka_unit_test(a_number_is_checked_against_its_range),
	    cmocka_unit_test(a_word_is_one_of_those_that_are_known),
	    cmocka_unit_test(a_user_and_a_group_have_to_be_there),
	    cmocka_unit_test(a_group_needs_a_user_and_a_user_a_group),
	    cmocka_unit_test(an_unknown_send_path_lists_the_known_ones),
	};

	return cmocka_run_group_tests_name(
	    "conf_file", tests, make_dir, remove_dir);
}
