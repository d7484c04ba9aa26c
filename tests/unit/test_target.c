/*
 * The request target (RFC 9112, 3.2): its forms, decoding before dot segments,
 * and that nothing climbs above the root.
 */
#include "test.h"

#include <strings.h>

#include "server/http/target.h"

struct path_case {
	const char *pc_raw;
	const char *pc_path;
};

static const struct path_case plain_paths[] = {
    {"/", "/"},
    {"/a", "/a"},
    {"/a/", "/a/"},
    {"/a/b.html", "/a/b.html"},
    {"/a.b/c", "/a.b/c"},
    {"/a..b", "/a..b"},
    {"/a.", "/a."},
    {"/a..", "/a.."},
    {"/~user/;p=1,2/(x)!$&'*+=:@", "/~user/;p=1,2/(x)!$&'*+=:@"},
    /* not allowed in a URI, sent by browsers all the same */
    {"/a|b^c`{}\"<>\\[]", "/a|b^c`{}\"<>\\[]"},
    {"/*", "/*"},
    {"/http://x/", "/http:/x/"},
};

static const struct path_case escapes[] = {
    {"/%61", "/a"},
    {"/a%20b", "/a b"},
    {"/a+b", "/a+b"},
    {"/%C3%A9", "/\xc3\xa9"},
    {"/%c3%a9", "/\xc3\xa9"},
    {"/%ff%01%7F", "/\xff\x01\x7f"},
    {"/%0d%0a", "/\r\n"},
    /* decoded once */
    {"/%2541", "/%41"},
    {"/%252e%252e/a", "/%2e%2e/a"},
    {"/%25", "/%"},
    {"/%2500", "/%00"},
    /* what would have ended the path, had it not been escaped */
    {"/a%3fb", "/a?b"},
    {"/a%23b", "/a#b"},
};

static const struct path_case normalised[] = {
    {"//", "/"},
    {"///", "/"},
    {"//a", "/a"},
    {"//host/a", "/host/a"},
    {"/a//b", "/a/b"},
    {"/a///", "/a/"},
    {"/.", "/"},
    {"/./", "/"},
    {"/./a", "/a"},
    {"/a/.", "/a/"},
    {"/a/./", "/a/"},
    {"/a/./b", "/a/b"},
    {"/././././", "/"},
    {"/a/..", "/"},
    {"/a/../", "/"},
    {"/a/../b", "/b"},
    {"/a/b/..", "/a/"},
    {"/a/b/../", "/a/"},
    {"/a/b/../c", "/a/c"},
    {"/a/b/../../c", "/c"},
    {"/a/b/c/../../d/../e", "/a/e"},
    {"/a/./../b", "/b"},
    {"/a//../b", "/b"},
    {"//a//..//b//", "/b/"},
    /* an escaped slash separates, an escaped dot is a dot */
    {"/a%2fb", "/a/b"},
    {"/a%2F%2f/b", "/a/b"},
    {"/a/%2e", "/a/"},
    {"/a/%2e%2e", "/"},
    {"/a/%2E./b", "/b"},
    {"/a/.%2e/b", "/b"},
    {"/a%2f..%2fb", "/b"},
    {"/a%2f%2e%2e%2f%2e%2fb", "/b"},
    {"/%2e/a", "/a"},
};

static const char *const climbing[] = {
    "/..",
    "/../",
    "/../a",
    "/./..",
    "//..",
    "/a/../..",
    "/a/../../",
    "/a/../../a",
    "/a/b/../../../a/b",
    "/a//../../b",
    "/%2e%2e",
    "/%2e%2e/etc/passwd",
    "/.%2e/",
    "/%2E./",
    "/..%2f",
    "/..%2fetc",
    "/%2e%2e%2fetc",
    "/a%2f..%2f..%2fb",
    "http://h/..",
    "http://h/a/../..?q",
};

static const char *const refused[] = {
    "",
    /* escapes */
    "/%",
    "/%4",
    "/%4g",
    "/%g4",
    "/%%41",
    "/% 41",
    "/%u0041",
    "/a%",
    "/a%2",
    "/%+1",
    "/%0x",
    "/%00",
    "/a%00.html",
    "/%00/../..",
    /* a fragment is never sent */
    "/#",
    "/a#b",
    "/a?b#c",
    "#",
    "http://h/#a",
    /* forms of CONNECT, and none at all */
    "example.com",
    "example.com:80",
    "127.0.0.1:80",
    "[::1]:443",
    "a/b",
    "a",
    "?",
    "?a",
    "%2f",
    "**",
    "*/",
    "*?a",
    "\\a",
    "./a",
    "../a",
    /* other schemes */
    "ftp://h/",
    "file:///etc/passwd",
    "ws://h/",
    "httpx://h/",
    "http",
    "http:",
    "http:/",
    "http:/h/",
    "http:h",
    "http:\\\\h\\",
    "javascript:alert(1)",
    /* a host that Host could not have */
    "http://",
    "http:///",
    "http:///a",
    "http://?a",
    "http://:80/",
    "http://user@h/",
    "http://user:secret@h/",
    "http://h:x/",
    "http://h:80:80/",
    "http://[::1/",
    "http://[x]/",
    "http://a b/",
    "http://h\\a/",
    "http://h%zz/",
    "http://h%4",
};

struct absolute_case {
	const char *ac_raw;
	const char *ac_host;
	const char *ac_path;
	const char *ac_query;
};

static const struct absolute_case absolute[] = {
    {"http://h", "h", "/", NULL},
    {"http://h/", "h", "/", NULL},
    {"http://h/a/../b", "h", "/b", NULL},
    {"http://h//", "h", "/", NULL},
    {"http://h?", "h", "/", ""},
    {"http://h?a/b", "h", "/", "a/b"},
    {"http://h/?a=/../..", "h", "/", "a=/../.."},
    {"HTTP://Example.COM:8080/a", "Example.COM:8080", "/a", NULL},
    {"http://example.com./a", "example.com.", "/a", NULL},
    {"hTTp://[2001:db8::1]:443/a?b?c", "[2001:db8::1]:443", "/a", "b?c"},
    {"http://127.0.0.1:/", "127.0.0.1:", "/", NULL},
    {"https://h", "h", "/", NULL},
    {"hTTpS://h:443/a?b", "h:443", "/a", "b"},
};

static const struct absolute_case queries[] = {
    {"/?", NULL, "/", ""},
    {"/a?b", NULL, "/a", "b"},
    {"/a?b?c", NULL, "/a", "b?c"},
    {"/a?../..", NULL, "/a", "../.."},
    {"/a/..?b", NULL, "/", "b"},
    {"/a?%zz%00", NULL, "/a", "%zz%00"},
    {"/a?//", NULL, "/a", "//"},
    {"/?*", NULL, "/", "*"},
    {"/a", NULL, "/a", NULL},
    {"/a%3fb?c", NULL, "/a?b", "c"},
};

struct dotfile_case {
	const char *df_raw;
	bool df_dotfile;
};

static const struct dotfile_case dotfiles[] = {
    {"/", false},
    {"/a.b", false},
    {"/a./b", false},
    {"/a/./b", false},
    {"/a/../b", false},
    {"/.git/../a", false},
    {"/.git", true},
    {"/.git/config", true},
    {"/a/.htaccess", true},
    {"/%2egit/config", true},
    {"/a%2f.git", true},
    {"/...", true},
    {"/.../a", true},
    {"/..a", true},
    {"/a/.b/c", true},
    {"/.well-known", false},
    {"/.well-known/", false},
    {"/.well-known/acme-challenge/x", false},
    {"/%2ewell%2dknown/x", false},
    {"//./.well-known/x", false},
    {"/.well-known/.secret", true},
    {"/.well-known/../.git", true},
    {"/.well-known-not/x", true},
    {"/.well-knowN/x", true},
    {"/.well-know", true},
    {"/a/.well-known/x", true},
    {"/a?/.git", false},
};

/* Both the target and the room for its path end where the heap block does. */
static int
parse(const char *raw, struct target *tgt, char **copy, char **buf)
{
	size_t n = strlen(raw);

	*copy = malloc(n + (n == 0));
	*buf = malloc(n + 2);
	assert_non_null(*copy);
	assert_non_null(*buf);
	memcpy(*copy, raw, n);
	return target_parse((struct str){*copy, n}, *buf, n + 2, tgt);
}

static void
expect_str(const char *raw, struct str got, const char *want)
{
	if (want == NULL) {
		assert_null(got.s_ptr);
		return;
	}
	if (got.s_ptr == NULL || got.s_len != strlen(want) ||
	    memcmp(got.s_ptr, want, got.s_len) != 0)
		fail_msg("%s: got %.*s, not %s", raw, (int)got.s_len,
		    got.s_ptr == NULL ? "" : got.s_ptr, want);
}

static void
expect(const struct absolute_case *ac)
{
	struct target tgt;
	char *copy, *buf;

	if (parse(ac->ac_raw, &tgt, &copy, &buf) != 0)
		fail_msg("refused: %s", ac->ac_raw);
	expect_str(ac->ac_raw, tgt.tgt_path, ac->ac_path);
	expect_str(ac->ac_raw, tgt.tgt_query, ac->ac_query);
	expect_str(ac->ac_raw, tgt.tgt_host, ac->ac_host);
	assert_ptr_equal(tgt.tgt_path.s_ptr, buf);
	assert_int_equal(buf[tgt.tgt_path.s_len], '\0');
	assert_int_equal(
	    tgt.tgt_https, strncasecmp(ac->ac_raw, "https:", 6) == 0);
	assert_false(tgt.tgt_asterisk);
	free(copy);
	free(buf);
}

static void
expect_paths(const struct path_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		expect(&(struct absolute_case){
		    cases[i].pc_raw, NULL, cases[i].pc_path, NULL});
}

static void
expect_refused(const char *const *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct target tgt;
		char *copy, *buf;

		if (parse(cases[i], &tgt, &copy, &buf) != 400)
			fail_msg("not refused: %s", cases[i]);
		free(copy);
		free(buf);
	}
}

TEST(plain_path_stays_as_it_is)
{
	expect_paths(plain_paths, COUNT(plain_paths));
}

TEST(escapes_are_decoded_once)
{
	expect_paths(escapes, COUNT(escapes));
}

TEST(slashes_are_merged_and_dot_segments_removed)
{
	expect_paths(normalised, COUNT(normalised));
}

TEST(path_that_climbs_above_the_root_is_refused)
{
	expect_refused(climbing, COUNT(climbing));
}

TEST(malformed_targets_are_refused)
{
	char buf[16];
	struct target tgt;

	expect_refused(refused, COUNT(refused));
	assert_int_equal(
	    target_parse(STR("/a\0b"), buf, sizeof(buf), &tgt), 400);
}

TEST(absolute_form_names_the_host)
{
	for (size_t i = 0; i < COUNT(absolute); i++)
		expect(&absolute[i]);
}

TEST(query_is_split_off_and_left_raw)
{
	for (size_t i = 0; i < COUNT(queries); i++)
		expect(&queries[i]);
}

TEST(asterisk_is_told_from_a_path)
{
	struct target tgt;
	char buf[3];

	assert_int_equal(target_parse(STR("*"), buf, sizeof(buf), &tgt), 0);
	assert_true(tgt.tgt_asterisk);
	assert_true(str_eq(tgt.tgt_path, STR("/")));
	assert_null(tgt.tgt_host.s_ptr);
}

TEST(dotfile_is_any_segment_but_a_leading_well_known)
{
	for (size_t i = 0; i < COUNT(dotfiles); i++) {
		struct target tgt;
		char *copy, *buf;

		assert_int_equal(
		    parse(dotfiles[i].df_raw, &tgt, &copy, &buf), 0);
		if (tgt.tgt_dotfile != dotfiles[i].df_dotfile)
			fail_msg("%s", dotfiles[i].df_raw);
		free(copy);
		free(buf);
	}
}

TEST(buffer_that_is_too_small_is_not_written)
{
	char buf[8] = "unused";
	struct target tgt;

	assert_int_equal(target_parse(STR("/abc"), buf, 5, &tgt), 414);
	assert_int_equal(target_parse(STR("/abc"), buf, 0, &tgt), 414);
	assert_string_equal(buf, "unused");
	assert_int_equal(target_parse(STR("/abc"), buf, 6, &tgt), 0);
}

static void
expect_encoded_round_trip(struct str path)
{
	size_t n = target_encode(path, NULL, 0);
	char *text = malloc(n + 1), *buf = malloc(n + 2);
	struct target tgt;

	assert_non_null(text);
	assert_non_null(buf);
	assert_int_equal(target_encode(path, text, n + 1), n);
	assert_int_equal(strlen(text), n);
	assert_int_equal(
	    target_parse((struct str){text, n}, buf, n + 2, &tgt), 0);
	assert_true(str_eq(tgt.tgt_path, path));
	assert_null(tgt.tgt_query.s_ptr);
	free(text);
	free(buf);
}

/* Random targets of the pieces that matter to the resolver. */
TEST(no_path_keeps_a_dot_segment_or_leaves_the_root)
{
	static const char *const pieces[] = {"/", "/", ".", "..", "a", "%2e",
	    "%2F", "%2f", "%41", "/../", "/./", "%252e", "%c3"};
	uint64_t x = 3986;
	int accepted = 0;

	for (int round = 0; round < 50000; round++) {
		char raw[128] = "/", *copy, *buf;
		struct target tgt;
		const char *p;

		for (size_t n = next_random(&x) % 10; n > 0; n--)
			strcat(raw, pieces[next_random(&x) % COUNT(pieces)]);
		if (parse(raw, &tgt, &copy, &buf) == 0) {
			p = tgt.tgt_path.s_ptr;
			accepted++;
			assert_int_equal(p[0], '/');
			assert_int_equal(strlen(p), tgt.tgt_path.s_len);
			assert_null(strstr(p, "//"));
			assert_null(strstr(p, "/./"));
			assert_null(strstr(p, "/../"));
			assert_string_not_equal(strrchr(p, '/'), "/.");
			assert_string_not_equal(strrchr(p, '/'), "/..");
			expect_encoded_round_trip(tgt.tgt_path);
		}
		free(copy);
		free(buf);
	}
	assert_true(accepted > 10000);
}

TEST(every_byte_is_encoded_or_safe)
{
	static const char safe[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	    "-._~/!$()*+,;=@";
	static const char hex[] = "0123456789ABCDEF";

	for (int c = 0; c < 256; c++) {
		char byte = (char)c, out[4];
		char code[4] = {'%', hex[c / 16], hex[c % 16], '\0'};
		size_t n;

		n = target_encode((struct str){&byte, 1}, out, sizeof(out));
		if (c != 0 && strchr(safe, c) != NULL) {
			assert_int_equal(n, 1);
			assert_int_equal(out[0], byte);
			assert_int_equal(out[1], '\0');
		} else {
			assert_int_equal(n, 3);
			assert_string_equal(out, code);
		}
		if (c != 0) {
			char path[2] = {'/', byte};

			expect_encoded_round_trip(
			    (struct str){path, c == '/' || c == '.' ? 1 : 2});
		}
	}
}

TEST(encoding_stops_at_the_end_of_the_buffer)
{
	static const struct {
		size_t size;
		const char *want;
	} cases[] = {{1, ""}, {2, "/"}, {3, "/"}, {4, "/"}, {5, "/%20"},
	    {6, "/%20a"}, {7, "/%20a"}, {9, "/%20a%C3"}, {100, "/%20a%C3"}};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *buf = malloc(cases[i].size);

		assert_non_null(buf);
		assert_int_equal(
		    target_encode(STR("/ a\xc3"), buf, cases[i].size), 8);
		assert_string_equal(buf, cases[i].want);
		free(buf);
	}
	assert_int_equal(target_encode(STR("/ a\xc3"), NULL, 0), 8);
	assert_int_equal(target_encode(STR(""), NULL, 0), 0);
}
