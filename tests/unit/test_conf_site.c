/*
 * Sites and locations; each test has the name of the rule that it pins.
 */
#include "conf_fixture.h"

#define NOT_A_HOST                                                     \
	"write example.org or *.example.org without scheme, port and " \
	"path, and xn-- for letters beyond a to z"

TEST(a_site_needs_a_name_and_a_root)
{
	expect_file_error(
	    "\nsite \"\" { }\n", ":2: site \"\": the name is empty");
	expect_file_error(SITE "site b\n{\n\n}\n",
	    ":2: site \"b\": root is missing: add root = \"DIR\" to this "
	    "site");
	expect_file_error(
	    "site a {\n\n root = \"\"\n}\n", ":3: root: the path is empty");
}

TEST(a_root_that_cannot_be_read_names_the_errno)
{
	char expected[256], file[96];

	snprintf(expected, sizeof(expected),
	    ":2: root: %s/none: No such file or directory", dir);
	expect_file_error("site a {\n root = none\n}\n", expected);

	snprintf(file, sizeof(file), "%s/plain", dir);
	write_file(file, "", 0);
	snprintf(expected, sizeof(expected),
	    ":2: root: %s/plain: Not a directory", dir);
	expect_file_error("site a {\n root = plain\n}\n", expected);

	expect_usage_error("--root /nonexistent",
	    "--root: /nonexistent: No such file or directory");
}

TEST(a_root_must_be_readable_and_searchable)
{
	static const mode_t modes[] = {0300, 0400, 0500};
	struct conf conf = {0};
	struct settings set = {0};
	struct site site = {0};
	struct conf_scope scope = {
	    .cs_where = KEY_SITE,
	    .cs_conf = &conf,
	    .cs_site = &site,
	    .cs_set = &set,
	};
	struct conf_why why;
	uid_t uid = geteuid();
	char path[96];
	int got[COUNT(modes)];

	snprintf(path, sizeof(path), "%s/closed", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(dir, 0755), 0);
	/* Root may do anything, so be somebody else for a while. */
	if (uid == 0) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(seteuid(65534), 0);
	}
	for (size_t i = 0; i < COUNT(modes); i++)
		got[i] = chmod(path, modes[i]) == 0
			     ? conf_key_set(&scope, "root", path, &why)
			     : 1;
	assert_int_equal(seteuid(uid), 0);
	conf_keep_free(&conf.conf_memory);
	text_index_free(&conf.conf_root_index);
	assert_int_equal(got[0], -EACCES);
	assert_int_equal(got[1], -EACCES);
	assert_int_equal(got[2], 0);
}

TEST(the_longest_location_wins)
{
	struct conf *conf = must_load_text(
	    "site a { root = \".\"\n location / { readahead = 64K }\n"
	    " location /v/big/ { readahead = 128K }\n"
	    " location /v/ { readahead = 256K } }\n",
	    "");
	const struct site *site = &conf->conf_sites[0];
	static const struct {
		const char *path;
		uint64_t readahead;
	} table[] = {
	    {"/", 64 << 10},
	    {"/v", 64 << 10},
	    {"/v/", 256 << 10},
	    {"/v/big", 256 << 10},
	    {"/v/big/", 128 << 10},
	    {"/v/big/x", 128 << 10},
	    {"/V/big/x", 64 << 10},
	};

	for (size_t i = 0; i < COUNT(table); i++)
		assert_int_equal(
		    conf_settings(site, table[i].path, strlen(table[i].path))
			->set_readahead,
		    table[i].readahead);
	/* Only len bytes count. */
	assert_int_equal(
	    conf_settings(site, "/v/big/", 3)->set_readahead, 256 << 10);
}

TEST(an_exact_location_wins_then_the_first_glob)
{
	struct conf *conf = must_load_text(
	    "site a { root = \".\"\n location /v/long/ { readahead = 64K }\n"
	    " location \"*.mp4\" { readahead = 128K }\n"
	    " location \"/v/*\" { readahead = 256K }\n"
	    " location \"= /v/a.mp4\" { readahead = 512K }\n"
	    " location /u/ { readahead = 1M } }\n",
	    "");
	const struct site *site = &conf->conf_sites[0];
	static const struct {
		const char *path;
		uint64_t readahead;
	} table[] = {
	    {"/v/a.mp4", 512 << 10},
	    {"/v/b.mp4", 128 << 10},
	    {"/u/x/a.mp4", 128 << 10},
	    {"/u/a.mp4x", 1 << 20},
	    {"/v/long/a", 256 << 10},
	    {"/v/a.mp4/", 256 << 10},
	    {"/v/", 256 << 10},
	    {"/v", PW_READAHEAD_AUTO},
	};

	for (size_t i = 0; i < COUNT(table); i++)
		assert_int_equal(
		    conf_settings(site, table[i].path, strlen(table[i].path))
			->set_readahead,
		    table[i].readahead);
}

TEST(a_location_has_a_directory_of_its_own)
{
	struct conf *conf = must_load_text(
	    "site a { root = \".\"\n location /r/ { root = \"/\" }\n"
	    " location /a/ { alias = \"/\" }\n location /s/ { cache = drop } "
	    "}\n"
	    "site b { root = \"/\" }\n",
	    "");
	const struct site *site = &conf->conf_sites[0];

	assert_int_equal(conf->conf_nroots, 2);
	assert_string_equal(conf->conf_roots[1], "/");
	assert_int_equal(conf_settings(site, "/r/", 3)->set_root, 1);
	assert_int_equal(conf_settings(site, "/r/", 3)->set_strip, 0);
	assert_int_equal(conf_settings(site, "/a/", 3)->set_root, 1);
	assert_int_equal(conf_settings(site, "/a/", 3)->set_strip, 2);
	assert_int_equal(conf_settings(site, "/s/", 3)->set_root, 0);
	assert_int_equal(conf->conf_sites[1].site_set.set_root, 1);
	expect_file_error(
	    "site a { root = \".\"\nlocation /a { alias = \"/\" } }\n",
	    ":2: alias: allowed only in a prefix location that ends in '/'");
	expect_file_error(
	    "site a { root = \".\"\nlocation \"*.a\" { alias = \"/\" } }\n",
	    ":2: alias: allowed only in a prefix location that ends in '/'");
}

TEST(a_glob_without_quotes_is_an_error_that_names_quotes)
{
	expect_file_error("site a { root = \".\"\nlocation *.a { } }\n",
	    ":2: location: the name is missing or needs quotes: write "
	    "location \"NAME\" {");
}

TEST(the_longest_wildcard_answers_for_a_name_that_no_site_has)
{
	struct conf *conf = must_load_text(
	    "site a { root = \".\" }\n"
	    "site b { root = \".\" names = {\"*.example.org\"} }\n"
	    "site c { root = \".\" names = {\"*.w.Example.org\", "
	    "x.example.org} }\n",
	    "");
	static const struct {
		const char *host;
		int site;
	} table[] = {
	    {"v.example.org", 1},
	    {"V.w.example.ORG.:80", 2},
	    {"w.example.org", 1},
	    {"x.example.org", 2},
	    {"a.x.example.org", 1},
	    {"example.org", 0},
	    {".example.org", 0},
	    {"vexample.org", 0},
	};

	for (size_t i = 0; i < COUNT(table); i++)
		assert_ptr_equal(
		    conf_site(conf, table[i].host, strlen(table[i].host)),
		    &conf->conf_sites[table[i].site]);
	expect_file_error("site a { root = \".\"\nnames = {\".b.org\"} }\n",
	    ":2: names: \".b.org\" is not a host name: " NOT_A_HOST);
	expect_file_error("site a { root = \".\"\nnames = {\"*.\"} }\n",
	    ":2: names: \"*.\" is not a host name: " NOT_A_HOST);
	expect_file_error("site a { root = \".\"\nnames = {\"a.*.org\"} }\n",
	    ":2: names: \"a.*.org\" is not a host name: " NOT_A_HOST);
}

TEST(without_a_matching_location_the_site_decides)
{
	struct conf *conf = must_load_text(
	    "site a { root = \".\" location /v/ { cache = drop } }\n", "");
	const struct site *site = &conf->conf_sites[0];

	assert_ptr_equal(conf_settings(site, "/w", 2), &site->site_set);
}

TEST(a_location_begins_with_a_slash_and_can_match)
{
	expect_file_error("site a { root = \".\"\n location v { } }\n",
	    ":2: location \"v\": the path does not begin with '/'");
	expect_file_error("site a { root = \".\"\n location '/a%20b' { } }\n",
	    ":2: location \"/a%20b\": the path is percent-encoded: write it "
	    "decoded, as requests are compared after decoding");
	expect_file_error("site a { root = \".\"\n location '/a//b' { } }\n",
	    ":2: location \"/a//b\": no request can match: remove \"//\", "
	    "\"/./\" and \"/../\"");
}

TEST(sites_and_locations_are_unique)
{
	expect_file_error(SITE SITE,
	    ":2: site \"a\": this site is already defined: merge the two "
	    "blocks");
	expect_file_error(
	    "site a { root = \".\"\n location /v { }\n location /v { } }\n",
	    ":3: location \"/v\": this location is already defined: merge the "
	    "two blocks");
	/* but not across sites */
	must_load_text("site a { root = \".\" location /v { } }\n"
		       "site b { root = \".\" location /v { } }\n",
	    "");
}

TEST(a_host_name_belongs_to_one_site)
{
	expect_file_error("site a { root = \".\" names = {x.example} }\n"
			  "site b { root = \".\"\n"
			  " names = {y.example,\n  X.EXAMPLE.}\n}\n",
	    ":4: names: X.EXAMPLE. is already a name of site \"a\"");
	expect_file_error("site a { root = \".\" names = {\"x:80\"} }\n",
	    ":1: names: \"x:80\" is not a host name: " NOT_A_HOST);
	expect_file_error("site a { root = \".\" names = {\"a b\"} }\n",
	    ":1: names: \"a b\" is not a host name: " NOT_A_HOST);
	expect_file_error("site a { root = \".\" names = {\"\"} }\n",
	    ":1: names: \"\" is not a host name: " NOT_A_HOST);
}

TEST(a_host_finds_its_site_or_the_first)
{
	struct conf *conf = must_load_text(
	    "site a { root = \".\" }\n"
	    "site b { root = \".\" names = {b.example, w.example} }\n"
	    "site c { root = \".\" names = {\"[::1]\"} }\n",
	    "");
	static const struct {
		const char *host;
		size_t site;
	} table[] = {
	    {"b.example", 1},
	    {"B.Example", 1},
	    {"w.example:8080", 1},
	    {"b.example.", 1},
	    {"b.example.:80", 1},
	    {"b.exampl", 0},
	    {"b.example.org", 0},
	    {"[::1]", 2},
	    {"[::1]:8080", 2},
	    {"[::2]", 0},
	    {"a", 0},
	    {".", 0},
	    {"", 0},
	};

	for (size_t i = 0; i < COUNT(table); i++)
		assert_ptr_equal(
		    conf_site(conf, table[i].host, strlen(table[i].host)),
		    &conf->conf_sites[table[i].site]);
	assert_ptr_equal(
	    conf_site(conf, "b.example@", 9), &conf->conf_sites[1]);
	assert_ptr_equal(conf_site(conf, NULL, 0), &conf->conf_sites[0]);
}
