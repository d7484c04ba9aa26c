/*
 * The configuration file and its messages; each test has the name of the rule
 * that it pins.
 */
#include "conf_fixture.h"

TEST(every_key_of_the_file_is_understood)
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
					   "traceable = true\n"
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
	assert_true(conf->conf_traceable);
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
}

TEST(an_error_names_file_line_key_and_cause)
{
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

TEST(a_key_in_the_wrong_section_is_an_error_with_the_right_section)
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

	for (size_t i = 0; i < COUNT(table); i++) {
		char expected[256];

		snprintf(expected, sizeof(expected), ":3: %s: %s", table[i].key,
		    table[i].place);
		expect_file_error(table[i].text, expected);
	}
}

TEST(an_empty_list_of_addresses_is_an_error_on_its_line)
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

	for (size_t i = 0; i < COUNT(texts); i++) {
		char expected[128];

		snprintf(expected, sizeof(expected), ":2: %s", cause);
		expect_file_error(texts[i], expected);
	}
}

TEST(other_empty_lists_mean_none)
{
	struct conf *conf = must_load_text(
	    "listen = {\":1\"}\nindex = {}\n"
	    "site a { root = \".\" names = {} location / { index = {} } }\n",
	    "");

	assert_int_equal(conf->conf_nlisten, 1);
	assert_null(conf->conf_sites[0].site_names);
	assert_null(conf->conf_sites[0].site_set.set_index);
}

TEST(an_empty_string_is_an_error_for_every_key)
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

TEST(comments_do_not_shift_line_numbers)
{
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

TEST(comment_marks_in_strings_and_words_are_kept)
{
	char word[] = "k = g//h x/*y ${A:-#}";
	struct conf_why why;
	int line;
	struct conf *conf = must_load_text("access_log = \"/a#b//c/*d\\\"e\"\n"
					   "index = {'f#{\\'', g}\n" SITE,
	    "");

	assert_string_equal(conf->conf_access_log, "/a#b//c/*d\"e");
	assert_string_equal(conf->conf_sites[0].site_set.set_index[0], "f#{'");

	assert_int_equal(conf_text_strip(word, &line, &why), 0);
	assert_string_equal(word, "k = g//h x/*y ${A:-#}");
}

TEST(an_unterminated_string_or_block_is_an_error_at_its_begin)
{
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

TEST(unset_variables_semicolons_and_appending_are_errors)
{
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

TEST(a_binary_file_is_refused)
{
	struct conf *conf;
	char words[96], expected[160];

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

TEST(a_file_without_a_site_is_an_error)
{
	static const char expected[] =
	    ": no site is configured: add site \"NAME\" { root = \"DIR\" }";

	expect_file_error("", expected);
	expect_file_error("workers = 1\n", expected);
}

TEST(relative_paths_start_at_the_file)
{
	struct conf *conf;
	char types[96], expected[160];

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

	conf =
	    must_load_text("access_log = \"-\"\nsite a { root = \"/\" }", "");
	assert_string_equal(conf->conf_sites[0].site_root, "/");
	assert_string_equal(conf->conf_access_log, "-");
}

TEST(a_table_of_types_that_cannot_be_read_is_an_error)
{
	char start[160];
	struct conf *conf;

	assert_int_equal(load_text("\nmime_types = none\n" SITE, "", &conf),
	    CONF_EXIT_ERROR);
	snprintf(start, sizeof(start), "pagewise: %s:2: mime_types: %s/none",
	    file_path, dir);
	assert_memory_equal(err_text, start, strlen(start));
}
