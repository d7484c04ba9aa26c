/*
 * The raw head (RFC 9112): what gets through to the parser, what does not, and
 * that neither depends on how the bytes arrive.
 *
 * A refused head is written up to the byte that proves it wrong: everything
 * before that byte must be HEAD_MORE, and whatever follows it changes nothing.
 */
#include "head_fixture.h"

struct good_case {
	const char *gc_rule;
	struct str gc_head;
	size_t gc_skip;
	int gc_minor;
};

static const struct good_case good[] = {
    {"the smallest 1.1", BYTES(LINE "Host:\r\n\r\n"), 0, 1},
    {"the smallest 1.0", BYTES("GET / HTTP/1.0\r\n\r\n"), 0, 0},
    {"a name", BYTES(BASE "\r\n"), 0, 1},
    {"HTTP/1.2 is read as 1.1", BYTES("GET / HTTP/1.2\r\nHost: a\r\n\r\n"), 0,
	1},
    {"HTTP/1.9 is read as 1.1", BYTES("GET / HTTP/1.9\r\nHost: a\r\n\r\n"), 0,
	1},
    {"1.0 may have Host", BYTES("GET / HTTP/1.0\r\nHost: a\r\n\r\n"), 0, 0},
    {"one blank line before", BYTES("\r\n" BASE "\r\n"), 2, 1},
    {"two blank lines before", BYTES("\r\n\r\n" BASE "\r\n"), 4, 1},
    {"method any token", BYTES("!#$%&'*+-.^_`|~9 / HTTP/1.0\r\n\r\n"), 0, 0},
    {"a method is not upper-cased", BYTES("get / HTTP/1.0\r\n\r\n"), 0, 0},
    {"a method of 32", BYTES(TEN TEN TEN "ab / HTTP/1.0\r\n\r\n"), 0, 0},
    {"asterisk", BYTES("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), 0, 1},
    {"absolute form", BYTES("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"), 0, 1},
    {"every visible byte in a target",
	BYTES("GET /!\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`a{|}~ HTTP/1.0\r\n\r\n"),
	0, 0},
    {"no space after the colon", BYTES(LINE "Host:a\r\n\r\n"), 0, 1},
    {"space and tab around a value", BYTES(LINE "Host: \t a\t \r\n\r\n"), 0, 1},
    {"the case of a name", BYTES(LINE "hOST: a\r\n\r\n"), 0, 1},
    {"Host need not be first", BYTES(LINE "A: b\r\nHost: a\r\n\r\n"), 0, 1},
    {"an empty value", BYTES(BASE "X:\r\n\r\n"), 0, 1},
    {"a blank value", BYTES(BASE "X: \t \r\n\r\n"), 0, 1},
    {"obs-text in a value", BYTES(BASE "X: \x80\xc3\xa9\xff\r\n\r\n"), 0, 1},
    {"a colon in a value", BYTES(BASE "X: a: b:\r\n\r\n"), 0, 1},
    {"repeated other fields", BYTES(BASE "X: a\r\nX: a\r\n\r\n"), 0, 1},
    {"any token is a name", BYTES(BASE "!#$%&'*+-.^_`|~9: a\r\n\r\n"), 0, 1},
    {"names that only begin alike",
	BYTES(BASE "Host2: b\r\nHos: b\r\nContent-Length-X: a\r\n"
		   "Transfer-Encodin: chunked\r\nTE: trailers\r\n\r\n"),
	0, 1},
    {"a length", BYTES(BASE "Content-Length: 0\r\n\r\n"), 0, 1},
    {"a length of many digits",
	BYTES(BASE "Content-Length:\t00000000000000000000123 \r\n\r\n"), 0, 1},
    {"a port", BYTES(LINE "Host: example.com:8080\r\n\r\n"), 0, 1},
    {"an empty port", BYTES(LINE "Host: example.com:\r\n\r\n"), 0, 1},
    {"an address", BYTES(LINE "Host: 127.0.0.1:80\r\n\r\n"), 0, 1},
    {"an IPv6 address", BYTES(LINE "Host: [::1]\r\n\r\n"), 0, 1},
    {"IPv6 and port", BYTES(LINE "Host: [2001:DB8::a]:80\r\n\r\n"), 0, 1},
    {"the longest IPv6 address",
	BYTES(LINE "Host: [1111:2222:3333:4444:5555:6666:255.255.255.255]\r\n"
		   "\r\n"),
	0, 1},
    {"a reg-name", BYTES(LINE "Host: a-z._~%aF%0A%f9!$&'()*+,;=\r\n\r\n"), 0,
	1},
    {"Host empty but for space", BYTES(LINE "Host: \t\r\n\r\n"), 0, 1},
    {"chunked", BYTES(BASE "Transfer-Encoding: chunked\r\n\r\n"), 0, 1},
    {"chunked in another case, before Host",
	BYTES(LINE "tRANSFER-eNCODING:\t cHUNKED \t\r\nHost: a\r\n\r\n"), 0, 1},
};

struct bad_case {
	const char *bc_rule;
	struct str bc_head;
	int bc_status;
};

static const struct bad_case bad_line_ends[] = {
    {"LF ends the request line", BYTES("GET / HTTP/1.1\n"), 400},
    {"LF ends a field", BYTES(BASE "X: a\n"), 400},
    {"LF ends a field without value", BYTES(BASE "X:\n"), 400},
    {"LF is the blank line", BYTES(BASE "\n"), 400},
    {"LF right after the request line", BYTES(LINE "\n"), 400},
    {"LF before the request line", BYTES("\n"), 400},
    {"LF after one blank line", BYTES("\r\n\n"), 400},
    {"LF in the method", BYTES("GE\n"), 400},
    {"LF in the target", BYTES("GET /\n"), 400},
    {"LF in a name", BYTES(BASE "X\n"), 400},
    {"CR in a value", BYTES(BASE "X: a\rb"), 400},
    {"CR in a name", BYTES(BASE "X\r"), 400},
    {"CR after the version", BYTES("GET / HTTP/1.1\rX"), 400},
    {"CR CR LF after the request line", BYTES("GET / HTTP/1.1\r\r"), 400},
    {"CR CR LF after a field", BYTES(BASE "X: a\r\r"), 400},
    {"CR is the blank line", BYTES(BASE "\rX"), 400},
    {"CR before the request line", BYTES("\rG"), 400},
    {"CR in the method", BYTES("GE\r"), 400},
    {"CR in the target", BYTES("GET /a\r"), 400},
    {"three blank lines before", BYTES("\r\n\r\n\r"), 400},
};

static const struct bad_case bad_request_lines[] = {
    {"HTTP/0.9", BYTES("GET /\r"), 400},
    {"HTTP/0.9 with a space", BYTES("GET / \r"), 400},
    {"method alone", BYTES("GET\r"), 400},
    {"no target", BYTES("GET \r"), 400},
    {"two spaces before the target", BYTES("GET  "), 400},
    {"two spaces after the target", BYTES("GET /  "), 400},
    {"tab before the target", BYTES("GET\t"), 400},
    {"tab before the version", BYTES("GET / \t"), 400},
    {"space before the method", BYTES(" "), 400},
    {"tab before the method", BYTES("\t"), 400},
    {"space after a blank line", BYTES("\r\n "), 400},
    {"space in the target", BYTES("GET /a b"), 400},
    {"space in the method", BYTES("GE T /"), 400},
    {"space after the version", BYTES("GET / HTTP/1.1 "), 400},
    {"method not a token", BYTES("GE@"), 400},
    {"method with NUL", BYTES("GE\0"), 400},
    {"TLS", BYTES("\x16"), 400},
    {"target with NUL", BYTES("GET /a\0"), 400},
    {"HxTP", BYTES("GET / Hx"), 400},
    {"HTTPS", BYTES("GET / HTTPS"), 400},
    {"lower case version", BYTES("GET / h"), 400},
    {"version without slash", BYTES("GET / HTTP "), 400},
    {"version without number", BYTES("GET / HTTP/\r"), 400},
    {"version without minor", BYTES("GET / HTTP/1\r"), 400},
    {"version without minor digit", BYTES("GET / HTTP/1.\r"), 400},
    {"version with two major digits", BYTES("GET / HTTP/11"), 400},
    {"version with two minor digits", BYTES("GET / HTTP/1.10"), 400},
    {"version with a sign", BYTES("GET / HTTP/+"), 400},
    {"version with 8 bits", BYTES("GET / HTTP/1.\xb1"), 400},
    {"something after the version", BYTES("GET / HTTP/1.1x"), 400},
    {"HTTP/2.0", BYTES("GET / HTTP/2.0\r"), 505},
    {"the preface of HTTP/2", BYTES("PRI * HTTP/2.0\r"), 505},
    {"HTTP/3.7", BYTES("GET / HTTP/3.7\r"), 505},
    {"HTTP/0.9 spelt out", BYTES("GET / HTTP/0.9\r"), 505},
    {"a method of 33", BYTES(TEN TEN TEN "abc"), 501},
};

static const struct bad_case bad_fields[] = {
    {"space before the first field", BYTES(LINE " "), 400},
    {"tab before the first field", BYTES(LINE "\t"), 400},
    {"folded by space", BYTES(BASE "X: a\r\n "), 400},
    {"folded by tab", BYTES(BASE "X: a\r\n\t"), 400},
    {"folded Host", BYTES(LINE "Host: a\r\n "), 400},
    {"folded to nothing", BYTES(BASE "X:\r\n "), 400},
    {"space before the colon", BYTES(BASE "X "), 400},
    {"tab before the colon", BYTES(BASE "X\t"), 400},
    {"Transfer-Encoding, space, colon", BYTES(BASE "Transfer-Encoding "), 400},
    {"Transfer-Encoding, tab, colon", BYTES(BASE "Transfer-Encoding\t"), 400},
    {"Transfer-Encoding, VT, colon", BYTES(BASE "Transfer-Encoding\v"), 400},
    {"Content-Length, space, colon", BYTES(BASE "Content-Length "), 400},
    {"Host, space, colon", BYTES(LINE "Host "), 400},
    {"no name", BYTES(BASE ":"), 400},
    {"no colon", BYTES(BASE "X\r"), 400},
    {"NUL in a name", BYTES(BASE "X\0"), 400},
    {"8 bits before Transfer-Encoding", BYTES(BASE "\xa0"), 400},
    {"NUL in a value", BYTES(BASE "X: a\0"), 400},
    {"NUL as value", BYTES(BASE "X:\0"), 400},
};

static const struct bad_case bad_hosts[] = {
    {"missing", BYTES(LINE "\r"), 400},
    {"missing in HTTP/1.2", BYTES("GET / HTTP/1.2\r\n\r"), 400},
    {"missing among others", BYTES(LINE "X: Host: a\r\nHost2: a\r\n\r"), 400},
    {"repeated", BYTES(BASE "Host:"), 400},
    {"repeated in another case", BYTES(BASE "X: a\r\nhOsT:"), 400},
    {"repeated after an empty one", BYTES(LINE "Host:\r\nHost:"), 400},
    {"repeated on 1.0", BYTES("GET / HTTP/1.0\r\nHost: a\r\nHost:"), 400},
    {"malformed on 1.0", BYTES("GET / HTTP/1.0\r\nHost: a b\r"), 400},
    {"a space", BYTES(LINE "Host: a b\r"), 400},
    {"a slash", BYTES(LINE "Host: a/b\r"), 400},
    {"a URI", BYTES(LINE "Host: http://a/\r"), 400},
    {"a user", BYTES(LINE "Host: u@a\r"), 400},
    {"a query", BYTES(LINE "Host: a?b\r"), 400},
    {"a quote", BYTES(LINE "Host: \"a\"\r"), 400},
    {"a backslash", BYTES(LINE "Host: a\\b\r"), 400},
    {"8 bits", BYTES(LINE "Host: \xc3\xa9\r"), 400},
    {"a bad escape", BYTES(LINE "Host: a%zz\r"), 400},
    {"half an escape", BYTES(LINE "Host: a%4\r"), 400},
    {"a port alone", BYTES(LINE "Host: :80\r"), 400},
    {"a port of letters", BYTES(LINE "Host: a:http\r"), 400},
    {"a port below zero", BYTES(LINE "Host: a:-1\r"), 400},
    {"two ports", BYTES(LINE "Host: a:80:80\r"), 400},
    {"a space before the port", BYTES(LINE "Host: a :80\r"), 400},
    {"IPv6 without brackets", BYTES(LINE "Host: ::1\r"), 400},
    {"IPv6 not closed", BYTES(LINE "Host: [::1\r"), 400},
    {"IPv6 not opened", BYTES(LINE "Host: ::1]\r"), 400},
    {"IPv6 without an address", BYTES(LINE "Host: []\r"), 400},
    {"IPv6 with a letter", BYTES(LINE "Host: [::g]\r"), 400},
    {"IPv6 with too many colons", BYTES(LINE "Host: [1::2::3]\r"), 400},
    {"IPv6 with a zone", BYTES(LINE "Host: [fe80::1%25eth0]\r"), 400},
    {"IPv6 with a raw zone", BYTES(LINE "Host: [fe80::1%eth0]\r"), 400},
    {"IPv6 too long",
	BYTES(LINE "Host: [01111:2222:3333:4444:5555:6666:255.255.255.255]\r"),
	400},
    {"IPv4 in brackets", BYTES(LINE "Host: [127.0.0.1]\r"), 400},
    {"something after the bracket", BYTES(LINE "Host: [::1]x\r"), 400},
    {"a bracket alone", BYTES(LINE "Host: [\r"), 400},
};

static const struct bad_case bad_framing[] = {
    {"a coding that is not known", BYTES(BASE "Transfer-Encoding: gzip\r"),
	501},
    {"one before chunked", BYTES(BASE "Transfer-Encoding: gzip, chunked\r"),
	501},
    {"in lower case, before Host", BYTES(LINE "transfer-encoding: identity\r"),
	501},
    {"no coding", BYTES(BASE "Transfer-Encoding:\r"), 501},
    {"chunked twice", BYTES(BASE "Transfer-Encoding: chunked, chunked\r"), 501},
    {"chunked with a parameter", BYTES(BASE "Transfer-Encoding: chunked;a\r"),
	501},
    {"chunked, and more of a word", BYTES(BASE "Transfer-Encoding: chunkedx\r"),
	501},
    {"chunked on 1.0", BYTES("GET / HTTP/1.0\r\nTransfer-Encoding:"), 400},
    {"chunked in two fields",
	BYTES(BASE "Transfer-Encoding: chunked\r\ntransfer-encoding:"), 400},
    {"chunked after length",
	BYTES(BASE "Content-Length: 5\r\nTransfer-Encoding:"), 400},
    {"length after chunked",
	BYTES(BASE "Transfer-Encoding: chunked\r\nContent-Length:"), 400},
    {"length empty", BYTES(BASE "Content-Length:\r"), 400},
    {"length negative", BYTES(BASE "Content-Length: -1\r"), 400},
    {"length signed", BYTES(BASE "Content-Length: +5\r"), 400},
    {"length hexadecimal", BYTES(BASE "Content-Length: 0x5\r"), 400},
    {"length a list", BYTES(BASE "Content-Length: 5,5\r"), 400},
    {"length a list with a space", BYTES(BASE "Content-Length: 5, 5\r"), 400},
    {"length of two numbers", BYTES(BASE "Content-Length: 5 5\r"), 400},
    {"length again", BYTES(BASE "Content-Length: 5\r\nContent-Length:"), 400},
    {"length repeated in another case",
	BYTES(BASE "Content-Length: 5\r\nX: y\r\nCONTENT-LENGTH:"), 400},
};

static void
expect_good(const struct good_case *gc, const struct head *hd)
{
	if (hd->hd_len != gc->gc_head.s_len || hd->hd_skip != gc->gc_skip ||
	    hd->hd_minor != gc->gc_minor)
		fail_msg("%s: %zu bytes, skip %zu, minor %d", gc->gc_rule,
		    hd->hd_len, hd->hd_skip, hd->hd_minor);
}

TEST(correct_head_is_complete_with_its_last_byte)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		struct str s = good[i].gc_head;
		struct head hd = {0};
		int verdict = check(s.s_ptr, s.s_len, &roomy, &hd);

		if (verdict != 0)
			fail_msg("%s: %d", good[i].gc_rule, verdict);
		expect_good(&good[i], &hd);
		for (size_t n = 0; n < s.s_len; n++) {
			hd = (struct head){0};
			verdict = check(s.s_ptr, n, &roomy, &hd);
			if (verdict != HEAD_MORE || hd.hd_scanned != n)
				fail_msg("%s: %d after %zu", good[i].gc_rule,
				    verdict, n);
		}
	}
}

TEST(correct_head_byte_by_byte_is_the_same)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		struct str s = good[i].gc_head;
		struct head hd = {0};

		for (size_t n = 0; n < s.s_len; n++)
			assert_int_equal(
			    check(s.s_ptr, n, &roomy, &hd), HEAD_MORE);
		assert_int_equal(check(s.s_ptr, s.s_len, &roomy, &hd), 0);
		expect_good(&good[i], &hd);
	}
}

TEST(head_ends_where_the_next_request_begins)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		struct str s = good[i].gc_head;
		char bytes[512];
		struct head hd = {0};
		int n = snprintf(bytes, sizeof(bytes), "%.*s\nnot a head",
		    (int)s.s_len, s.s_ptr);

		assert_int_equal(check(bytes, (size_t)n, &roomy, &hd), 0);
		expect_good(&good[i], &hd);
	}
}

/* At once, byte by byte, in two pieces, and with a correct rest behind it. */
static void
expect_bad(const struct bad_case *bc)
{
	static const char rest[] = "\r\nHost: a\r\n\r\n" LINE;
	struct str s = bc->bc_head;
	struct head hd = {0}, cut;
	char bytes[512];
	int verdict = check(s.s_ptr, s.s_len, &roomy, &hd);

	if (verdict != bc->bc_status)
		fail_msg("%s: %d", bc->bc_rule, verdict);

	hd = (struct head){0};
	for (size_t n = 0; n < s.s_len; n++) {
		cut = (struct head){0};
		verdict = check(s.s_ptr, n, &roomy, &hd);
		if (verdict != HEAD_MORE)
			fail_msg("%s: early: %d", bc->bc_rule, verdict);
		assert_int_equal(check(s.s_ptr, n, &roomy, &cut), HEAD_MORE);
		assert_int_equal(
		    check(s.s_ptr, s.s_len, &roomy, &cut), bc->bc_status);
	}
	assert_int_equal(check(s.s_ptr, s.s_len, &roomy, &hd), bc->bc_status);

	assert_true(s.s_len + sizeof(rest) <= sizeof(bytes));
	memcpy(bytes, s.s_ptr, s.s_len);
	memcpy(bytes + s.s_len, rest, sizeof(rest));
	hd = (struct head){0};
	assert_int_equal(check(bytes, s.s_len + sizeof(rest) - 1, &roomy, &hd),
	    bc->bc_status);
}

TEST(bare_cr_or_lf_is_refused_at_once)
{
	for (size_t i = 0; i < COUNT(bad_line_ends); i++)
		expect_bad(&bad_line_ends[i]);
}

TEST(request_line_is_exact)
{
	for (size_t i = 0; i < COUNT(bad_request_lines); i++)
		expect_bad(&bad_request_lines[i]);
}

TEST(field_is_a_token_a_colon_and_text)
{
	for (size_t i = 0; i < COUNT(bad_fields); i++)
		expect_bad(&bad_fields[i]);
}

TEST(host_is_there_once_and_well_formed)
{
	for (size_t i = 0; i < COUNT(bad_hosts); i++)
		expect_bad(&bad_hosts[i]);
}

TEST(framing_is_one_number_or_refused)
{
	for (size_t i = 0; i < COUNT(bad_framing); i++)
		expect_bad(&bad_framing[i]);
}

static const struct {
	const char *fc_head;
	const char *fc_target; /* NULL: none */
	const char *fc_host;
} found[] = {
    {"", NULL, NULL},
    {"GET /a", NULL, NULL},
    {"GET /a\r", NULL, NULL},
    {"GET /a ", "/a", NULL},
    {"\r\nGET /a HTTP/3.0\r\nHost: h\r\n", "/a", "h"},
    {"GET http://i/?q HTTP/1.1\r\nHost: h", "http://i/?q", NULL},
    {"GET / HTTP/1.1\r\nHost: \th:80 \r\n", "/", "h:80"},
    {"GET / HTTP/1.1\r\nHost:\r\n", "/", ""},
    {"GET / HTTP/1.1\r\nHost: h/\r\n", "/", NULL},
    {"GET / HTTP/1.1\r\nHost: h\r\nA b: c\r\n", "/", "h"},
    {"GET / HTTP/1.1\r\nHost: h\r\nA: b\n", "/", "h"},
    {"GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: x\r\n", "/", "h"},
    {"GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n", "/", NULL},
    {"GET / HTTP/1.1\r\nA b: c\r\nHost: h\r\n", "/", "h"},
    {"GET /\x80 HTTP/1.1\r\nA: b\r\nhost:h \r\n\r\n", NULL, "h"},
    {"GET /a b HTTP/1.1\r\nHost: h\r\n", "/a", "h"},
    {"GET /a b HTTP/1.1\nHost: h\n\nHost: i\n", "/a", "h"},
    {"GET / HTTP/1.1\r\nA b: c\r\nHost: h\r\nHost: i\r\n", "/", NULL},
    {"GET / HTTP/1.1\r\nA b: c\r\n\r\nHost: h\r\n", "/", NULL},
    {"GET / HTTP/1.1\r\nA b: c\r\nHost: h", "/", NULL},
    {"GET / HTTP/1.1\r\nA b: c\r\nHost : h\r\n", "/", NULL},
    {"GET / HTTP/1.1\r\nA b: c\r\nHost\r\n", "/", NULL},
    {"Host: h\r\n\r\n", NULL, NULL},
    {"GET / HTTP/1.1\r\nHost: h\r\n\r\nHost: i\r\n", "/", "h"},
};

static void
expect_found(struct str got, const char *expected)
{
	if (expected == NULL)
		assert_null(got.s_ptr);
	else
		assert_true(
		    got.s_ptr != NULL &&
		    str_eq(got, (struct str){expected, strlen(expected)}));
}

TEST(the_host_of_a_refused_head_is_found)
{
	struct str target, host;

	for (size_t i = 0; i < COUNT(found); i++) {
		const char *s = found[i].fc_head;

		head_find(s, strlen(s), 0, &roomy, &target, &host);
		expect_found(target, found[i].fc_target);
		expect_found(host, found[i].fc_host);
	}
}

/* Correct heads with up to three bytes changed to ones that matter. */
TEST(verdict_does_not_depend_on_the_cut)
{
	static const char bytes[] = "\r\n\t :/.0123HTP\0\x7f\x80x";
	struct head_limits tight = {64, 16, 2};
	uint64_t x = 9112;

	for (int round = 0; round < 20000; round++) {
		struct str s = good[next_random(&x) % COUNT(good)].gc_head;
		char text[512];
		struct head whole = {0}, cut = {0};
		int want, got = HEAD_MORE;

		memcpy(text, s.s_ptr, s.s_len);
		for (size_t n = next_random(&x) % 4; n > 0; n--)
			text[next_random(&x) % s.s_len] =
			    bytes[next_random(&x) % (sizeof(bytes) - 1)];
		want = check(text, s.s_len, &tight, &whole);
		for (size_t n = 0; n <= s.s_len && got == HEAD_MORE; n++)
			got = check(text, n, &tight, &cut);
		assert_int_equal(got, want);
		assert_int_equal(cut.hd_len, whole.hd_len);
	}
}

static bool
is_tchar(int c)
{
	return c != 0 &&
	       strchr("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
		      "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
		   c) != NULL;
}

/* The verdict on prefix, one byte, suffix. */
static int
check_byte(const char *prefix, int c, const char *suffix)
{
	char bytes[128];
	struct head hd = {0};
	size_t n = strlen(prefix);

	memcpy(bytes, prefix, n);
	bytes[n++] = (char)c;
	memcpy(bytes + n, suffix, strlen(suffix));
	return check(bytes, n + strlen(suffix), &roomy, &hd);
}

TEST(every_byte_is_judged_by_the_grammar)
{
	for (int c = 0; c < 256; c++) {
		bool visible = c > 0x20 && c < 0x7f;
		bool text = visible || c == ' ' || c == '\t' || c >= 0x80;
		int want;

		want = is_tchar(c) ? 0 : 400;
		assert_int_equal(
		    check_byte("G", c, " / HTTP/1.0\r\n\r\n"), want);
		want = visible ? 0 : 400;
		assert_int_equal(
		    check_byte("GET /", c, " HTTP/1.0\r\n\r\n"), want);
		/* a second colon belongs to the value */
		want = is_tchar(c) || c == ':' ? 0 : 400;
		assert_int_equal(check_byte(BASE "X", c, ": a\r\n\r\n"), want);
		want = text ? 0 : 400;
		assert_int_equal(check_byte(BASE "X: a", c, "b\r\n\r\n"), want);
	}
}
