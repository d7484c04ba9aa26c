/*
 * The statements of a configuration file, and what is told of those that are wrong; each test has
 * the name of the rule that it pins.
 */
#include "conf_fixture.h"
#include "server/conf/foreign.h"

TEST(a_key_that_is_set_twice_is_an_error_with_both_lines)
{
	expect_file_error("listen = \":1\"\n\nlisten = \":2\"\n" SITE,
	    ":3: listen: already set in line 1: write one list, listen = "
	    "{..., ...}");
	expect_file_error("\nthreads = 2\nthreads = 2\n" SITE,
	    ":3: threads: already set in line 2: remove one of the two");
	expect_file_error("site a {\nroot = \"/\"\nlocation / {\nexpires = 1h\n"
			  "index = {}\n'expires' = 2h\n}\n}\n",
	    ":6: expires: already set in line 4: remove one of the two");
	/* Each section and each file has its own. */
	must_load_text("expires = 1h\nsite a {\nroot = \"/\"\nexpires = "
		       "2h\nlocation /a {\nexpires = 3h\n}\nlocation "
		       "/b {\nexpires = 4h\n}\n}\nsite b {\nroot = "
		       "\"/\"\nexpires = 5h\n}\n",
	    "");
}

TEST(a_value_that_needs_quotes_is_reported_in_its_line)
{
	static const struct {
		const char *text;
		const char *key;
		char c;
	} table[] = {
	    {"\ncors = *\nexpires = 1h\n" SITE, "cors", '*'},
	    {"\ncors = {*}\nexpires = 1h\n" SITE, "cors", '*'},
	    {"\nlisten = *:8080\nexpires = 1h\n" SITE, "listen", '*'},
	    {"\nlisten = * {*}\n" SITE, "listen", '*'},
	    {"\nlog_exclude = {/a, /b/*}\n" SITE, "log_exclude", '*'},
	    {"\nlog_exclude = /b/*\nexpires = 1h\n" SITE, "log_exclude", '*'},
	    {"\ndefault_type = a/b+c\n" SITE, "default_type", '+'},
	    {"\nlisting_header = a(1).html\n" SITE, "listing_header", '('},
	    {"\naccess_log = /${A:-a}/b\n" SITE, "access_log", '{'},
	    {"\naccess_log = /a'b'\n" SITE, "access_log", '\''},
	    {"\naccess_log = \"/a\"b\n" SITE, "access_log", 'b'},
	    {"site a { root = /\nlocation /a*.mp4 { } }\n", "location", '*'},
	};
	char expected[128];

	for (size_t i = 0; i < COUNT(table); i++) {
		snprintf(expected, sizeof(expected),
		    ":2: %s: put the value in quotes: it contains a %c",
		    table[i].key, table[i].c);
		expect_file_error(table[i].text, expected);
	}
	expect_file_error("\ncache = keep it\n" SITE,
	    ":2: cache: put the value in quotes: it contains a space");
	expect_file_error("site a {\nroot = /\nrealm = Members only\n}\n",
	    ":3: realm: put the value in quotes: it contains a space");
	expect_file_error(
	    "\ncors =\nexpires = 1h\n" SITE, ":2: cors: the value is missing");
	expect_file_error("site a {\nroot = /\ncors =\n}\n",
	    ":3: cors: the value is missing");
	expect_file_error("\nindex = {a,\nb\nexpires = 1h\n" SITE,
	    ":2: index: the list is not closed: add '}'");
}

TEST(a_missing_quote_is_reported_where_the_string_began)
{
	static const char *const texts[] = {
	    "\naccess_log = \"/a\nuser = \"root\"\n" SITE,
	    "\naccess_log = /a\"\nuser = \"root\"\n" SITE,
	    "\naccess_log = '/a\n\nindex = {'a', 'b'}\n" SITE,
	    "\nindex = {\"a, \"b\"}\n" SITE,
	    "site a {\nroot = \"/\n}\nsite \"b\" {\nroot = \"/\"\n}\n",
	    "site a {\nroot = \"/\nnames = {\"x.org\"}\nexpires = \"1h\"\n}",
	    "site a {\nroot = \"/\nindex = \"\"\n}\n",
	    "\nsite \"a {\nroot = \"/tmp\"\n}\n",
	};

	for (size_t i = 0; i < COUNT(texts); i++)
		expect_file_error(texts[i],
		    ":2: unterminated string: a quote is missing in this line");
}

TEST(ten_faults_of_all_files_are_reported)
{
	static const char text[] = "workers = 0\nthreads = 0\ntimeout = 5\n"
				   "include = {types}\nuser = root;\n"
				   "site a {\nroot = /none\nexpires 1y;\n"
				   "location x {\n}\nlocation / {\ncache = x\n"
				   "cache = y\n}\n}\nsite b { root = \"\" }\n"
				   "head_timeout = 0\n";
	static const int lines[] = {3, 5, 8, 13};
	char path[96], place[128];
	struct conf *conf;
	const char *p;
	size_t n = 0;

	snprintf(path, sizeof(path), "%s/types", dir);
	write_file(path, "busy_poll = x\n", 14);
	assert_int_equal(load_text(text, "", &conf), CONF_EXIT_ERROR);
	for (size_t i = 0; i < COUNT(lines); i++) {
		snprintf(place, sizeof(place), "%s:%d: ", file_path, lines[i]);
		assert_non_null(strstr(err_text, place));
	}
	snprintf(place, sizeof(place), "%s:1: busy_poll: ", path);
	assert_non_null(strstr(err_text, place));
	for (p = err_text; (p = strchr(p, '\n')) != NULL; p++)
		n++;
	assert_int_equal(n, 10);
}

TEST(a_name_of_nginx_or_caddy_is_reported_with_the_equivalent)
{
	char text[128], expected[256], ours[64];

	for (const struct foreign *fo = foreign_names; fo->fo_name != NULL;
	     fo++) {
		assert_null(conf_key(fo->fo_name));
		snprintf(text, sizeof(text), "\n%s a b =c { d {} };\n" SITE,
		    fo->fo_name);
		snprintf(expected, sizeof(expected),
		    ":2: %s: unknown key; the equivalent of this %s directive "
		    "is %s",
		    fo->fo_name, fo->fo_program, fo->fo_ours);
		expect_file_error(text, expected);
		/* It begins with a key or section that there is. */
		snprintf(ours, sizeof(ours), "%.*s",
		    (int)strcspn(fo->fo_ours, " ,;"), fo->fo_ours);
		assert_true(
		    conf_key(ours) != NULL || strcmp(ours, "site") == 0 ||
		    strcmp(ours, "location") == 0 || strcmp(ours, "the") == 0);
	}
	expect_file_error("site a {\nroot = /\nexpires 1y;\n}\n",
	    ":3: expires: '=' is missing: write expires = TIME|off");
}
