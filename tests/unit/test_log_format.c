/*
 * What server/log/format.h promises about the text of a line.
 */
#include "test.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "log_fixture.h"
#include "server/log/format.h"

static void
format_as(const struct log_record *rec, enum log_format format, char *buf)
{
	struct stamp stamps[FORMAT_STAMPS];
	size_t len;

	memset(stamps, 0, sizeof(stamps));
	len = format_access(buf, rec, format, stamps);
	assert_true(len <= format_bound(rec, format));
	assert_int_equal(buf[len - 1], '\n');
	buf[len - 1] = '\0';
}

static void
format_line(const struct log_record *rec, char *buf)
{
	format_as(rec, LOG_COMBINED, buf);
}

TEST(absent_and_empty_fields_are_a_dash, NULL)
{
	struct log_record rec = record();
	char buf[4 * FORMAT_MESSAGE];

	rec.rec_texts.qt_line = STR("");
	rec.rec_texts.qt_referer = (struct str){NULL, 0};
	rec.rec_texts.qt_agent = STR("");
	rec.rec_peer = NULL;
	format_line(&rec, buf);
	assert_string_equal(buf,
	    "- - - [21/Nov/2026:02:13:54 +0000] \"-\" 200 512 \"-\" \"-\" "
	    "771 153 0");
}

TEST(json_has_every_field_and_null_for_absent_ones, NULL)
{
	struct log_record rec = record();
	char buf[4 * FORMAT_MESSAGE];

	rec.rec_texts.qt_host = STR("a.example");
	format_as(&rec, LOG_JSON, buf);
	assert_string_equal(buf,
	    "{\"time\":\"2026-11-21T02:13:54Z\",\"remote\":\"0.0.0.0\","
	    "\"user\":null,\"method\":\"GET\",\"target\":\"/\","
	    "\"protocol\":\"HTTP/1.1\",\"status\":200,\"bytes\":771,"
	    "\"body_bytes\":512,\"referer\":null,\"user_agent\":\"curl/8\","
	    "\"host\":\"a.example\",\"duration_us\":153,\"disk_wait_us\":0}");
}

/* The values of method, target and protocol. */
static void
assert_json_line(struct str line, const char *expected)
{
	struct log_record rec = record();
	char buf[4 * FORMAT_MESSAGE];

	rec.rec_texts.qt_line = line;
	format_as(&rec, LOG_JSON, buf);
	if (strstr(buf, expected) == NULL)
		fail_msg("%s is not in %s", expected, buf);
}

TEST(json_target_is_the_whole_of_a_line_that_is_no_request_line, NULL)
{
	assert_json_line(
	    STR(""), "\"method\":null,\"target\":null,\"protocol\":null,");
	assert_json_line((struct str){NULL, 0},
	    "\"method\":null,\"target\":null,\"protocol\":null,");
	assert_json_line(STR("GET"),
	    "\"method\":null,\"target\":\"GET\",\"protocol\":null,");
	assert_json_line(STR("GET /"),
	    "\"method\":null,\"target\":\"GET /\",\"protocol\":null,");
	assert_json_line(STR("GET /a b HTTP/1.1"),
	    "\"method\":null,\"target\":\"GET /a b HTTP/1.1\","
	    "\"protocol\":null,");
	assert_json_line(
	    STR(" "), "\"method\":null,\"target\":\" \",\"protocol\":null,");
	assert_json_line(
	    STR("  "), "\"method\":\"\",\"target\":\"\",\"protocol\":\"\",");
}

TEST(json_is_ascii_whatever_bytes_were_sent, NULL)
{
	static const struct {
		struct str sent;
		const char *written;
	} table[] = {
	    {{"", 0}, "\"\""},
	    {{"a\"b", 3}, "\"a\\\"b\""},
	    {{"a\\b", 3}, "\"a\\\\x5Cb\""},
	    {{"\0\n\x1f\x7f", 4}, "\"\\\\x00\\\\x0A\\\\x1F\\\\x7F\""},
	    {{"\xc3\xa9", 2}, "\"\\u00E9\""},
	    {{"\xc2\x85\xe2\x80\xa8", 5}, "\"\\u0085\\u2028\""},
	    {{"\xf0\x9f\x98\x80", 4}, "\"\\uD83D\\uDE00\""},
	    {{"\xf4\x8f\xbf\xbf", 4}, "\"\\uDBFF\\uDFFF\""},
	    {{"\xed\xa0\x80", 3}, "\"\\\\xED\\\\xA0\\\\x80\""},
	    {{"\xc3", 1}, "\"\\\\xC3\""},
	    {{"\xff\xc3\xa9\x80", 4}, "\"\\\\xFF\\u00E9\\\\x80\""},
	};
	char buf[4 * FORMAT_MESSAGE], expected[128];
	struct log_record rec = record();

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		rec.rec_texts.qt_referer = table[i].sent;
		format_as(&rec, LOG_JSON, buf);
		snprintf(expected, sizeof(expected), "\"referer\":%s,",
		    table[i].written);
		if (strstr(buf, expected) == NULL)
			fail_msg("%s is not in %s", expected, buf);
	}
}

TEST(json_of_the_worst_fields_is_within_its_bound, NULL)
{
	static char worst[3000];
	SCOPED(free_at) char *buf = malloc(10 * FORMAT_MESSAGE);
	struct log_record rec = record();
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

	memset(worst, 0xff, sizeof(worst));
	memset(&in6.sin6_addr, 0xaa, sizeof(in6.sin6_addr));
	rec.rec_peer = (const struct sockaddr *)(const void *)&in6;
	rec.rec_texts.qt_line = rec.rec_texts.qt_referer =
	    rec.rec_texts.qt_agent = rec.rec_texts.qt_host =
		(struct str){worst, sizeof(worst)};
	rec.rec_body = rec.rec_bytes = rec.rec_duration = rec.rec_wait =
	    UINT64_MAX;
	rec.rec_status = 999;
	format_as(&rec, LOG_JSON, buf);
	assert_true(strlen(buf) > 5 * 4 * FORMAT_FIELD);
}

TEST(json_of_a_line_in_three_long_parts_is_within_its_bound, NULL)
{
	static char line[3 * FORMAT_FIELD + 2];
	SCOPED(free_at) char *buf = malloc(10 * FORMAT_MESSAGE);
	struct log_record rec = record();

	memset(line, 0xff, sizeof(line));
	line[FORMAT_FIELD] = line[2 * FORMAT_FIELD + 1] = ' ';
	rec.rec_texts.qt_line = (struct str){line, sizeof(line)};
	format_as(&rec, LOG_JSON, buf);
	assert_true(strlen(buf) > 5 * 3 * FORMAT_FIELD);
}

TEST(largest_numbers_fit, NULL)
{
	struct log_record rec = record();
	char buf[4 * FORMAT_MESSAGE];

	rec.rec_body = rec.rec_bytes = UINT64_MAX;
	rec.rec_duration = rec.rec_wait = UINT64_MAX;
	format_line(&rec, buf);
	assert_non_null(strstr(buf,
	    "200 18446744073709551615 \"-\" \"curl/8\" 18446744073709551615 "
	    "18446744073709551615 18446744073709551615"));
}

TEST(fields_are_cut_at_two_kib, NULL)
{
	struct log_record rec = record();
	char buf[4 * FORMAT_MESSAGE], *big = malloc(100000);
	size_t i, quotes = 0, escapes = 0;

	memset(big, '"', 100000);
	rec.rec_texts.qt_line = rec.rec_texts.qt_referer =
	    rec.rec_texts.qt_agent = (struct str){big, 100000};
	format_line(&rec, buf);
	for (i = 0; buf[i] != '\0'; i++) {
		quotes += buf[i] == '"';
		escapes += buf[i] == '\\';
	}
	assert_int_equal(quotes, 6);
	assert_int_equal(escapes, 3 * 2048);
	assert_int_equal(strlen(buf) - 4 * escapes,
	    strlen("0.0.0.0 - - [21/Nov/2026:02:13:54 +0000] \"\" 200 512 \"\" "
		   "\"\" 771 153 0"));
	free(big);
}

static void
assert_peer(const void *sa, const char *expected)
{
	struct log_record rec = record();
	char buf[4 * FORMAT_MESSAGE];

	rec.rec_peer = sa;
	format_line(&rec, buf);
	*strchr(buf, ' ') = '\0';
	assert_string_equal(buf, expected);
}

TEST(peers_are_addresses_without_ports, NULL)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = 80};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = 80};
	struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "/a b"};
	struct sockaddr other = {.sa_family = AF_UNSPEC};

	inet_pton(AF_INET, "192.0.2.7", &in.sin_addr);
	assert_peer(&in, "192.0.2.7");
	inet_pton(AF_INET6, "2001:db8::7", &in6.sin6_addr);
	assert_peer(&in6, "2001:db8::7");
	inet_pton(AF_INET6, "::ffff:192.0.2.7", &in6.sin6_addr);
	assert_peer(&in6, "192.0.2.7");
	assert_peer(&un, "unix:");
	assert_peer(&other, "-");
	assert_peer(NULL, "-");
}

/* RFC 5952, and what inet_ntop(3) makes of IPv4 in the last groups. */
TEST(ipv6_addresses_are_as_inet_ntop_has_them, NULL)
{
	static const char *const table[] = {
	    "::",
	    "::1",
	    "1::",
	    "1::1",
	    "::1:2:3:4",
	    "1:2:3:4::",
	    "1:0:3:4:5:6:7:8",
	    "0:2:3:4:5:6:7:8",
	    "1:2:3:4:5:6:7:0",
	    "::3:4:5:6:7:8",
	    "1:2:3:4:5:6::",
	    "1::4:0:0:7:8",
	    "1:0:0:4::8",
	    "1::4:5:0:0:8",
	    "a:bc:def:1234:1000:100:10:ffff",
	    "::192.0.2.255",
	    "::1:0",
	    "::fffe:1:2",
	    "fe80::10:ffff",
	    "1:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	char text[INET6_ADDRSTRLEN];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(
		    inet_pton(AF_INET6, table[i], &in6.sin6_addr), 1);
		assert_non_null(
		    inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof(text)));
		assert_peer(&in6, text);
	}
}

TEST(every_octet_of_an_ipv4_address_is_decimal, NULL)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	char text[INET_ADDRSTRLEN];

	for (unsigned i = 0; i < 256; i++) {
		in.sin_addr.s_addr = htonl(0x7fffff00 - (i << 8) + i);
		inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text));
		assert_peer(&in, text);
	}
}

/* As the one of a field that is in quotes, or that of JSON. */
static void
expect_byte(unsigned char c, enum log_format format, char *text)
{
	bool json = format == LOG_JSON;

	if (json && c == '"')
		strcpy(text, "\\\"");
	else if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
		sprintf(text, json ? "\\\\x%02X" : "\\x%02X", c);
	else
		sprintf(text, "%c", c);
}

/* Text is looked at in words: wherever in one, and in what is left over. */
TEST(a_byte_is_escaped_wherever_it_stands, NULL)
{
	static const char plain[] = "0123456789abcdefghijk";
	char field[sizeof(plain)], byte[8], expected[64];
	char buf[4 * FORMAT_MESSAGE];
	struct log_record rec = record();
	size_t at, len = sizeof(plain) - 1;
	int format, c;

	for (format = LOG_COMBINED; format <= LOG_JSON; format++)
		for (at = 0; at < len; at++)
			for (c = 0; c < 256; c++) {
				memcpy(field, plain, sizeof(plain));
				field[at] = (char)c;
				rec.rec_texts.qt_agent =
				    (struct str){field, len};
				format_as(&rec, (enum log_format)format, buf);
				expect_byte((unsigned char)c,
				    (enum log_format)format, byte);
				snprintf(expected, sizeof(expected),
				    "\"%.*s%s%s\"", (int)at, plain, byte,
				    plain + at + 1);
				if (strstr(buf, expected) == NULL)
					fail_msg("%s not in %s", expected, buf);
			}
}

TEST(times_are_local_with_their_offset, NULL)
{
	const struct {
		const char *tz;
		time_t t;
		const char *text;
	} t[] = {
	    {"UTC0", 0, "[01/Jan/1970:00:00:00 +0000]"},
	    {"UTC0", 1795227234, "[21/Nov/2026:02:13:54 +0000]"},
	    {"AAA-5:30", 1795227234, "[21/Nov/2026:07:43:54 +0530]"},
	    {"AAA+3:30", 1795227234, "[20/Nov/2026:22:43:54 -0330]"},
	    {"AAA+0:30", 1795227234, "[21/Nov/2026:01:43:54 -0030]"},
	    {"CET-1CEST,M3.5.0,M10.5.0/3", 1785542400,
		"[01/Aug/2026:02:00:00 +0200]"},
	    {"CET-1CEST,M3.5.0,M10.5.0/3", 1798761600,
		"[01/Jan/2027:01:00:00 +0100]"},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct stamp stamps[FORMAT_STAMPS];

		memset(stamps, 0, sizeof(stamps));
		use_zone(t[i].tz);
		assert_string_equal(format_stamp(stamps, t[i].t), t[i].text);
	}
	use_zone("UTC0");
}

TEST(a_remembered_second_is_not_taken_for_another, NULL)
{
	struct stamp stamps[FORMAT_STAMPS];
	char expected[40];
	int round, i;

	memset(stamps, 0, sizeof(stamps));
	for (round = 0; round < 2; round++)
		for (i = 0; i < 3 * FORMAT_STAMPS; i++) {
			snprintf(expected, sizeof(expected),
			    "[01/Jan/1970:00:00:%02d +0000]", i);
			assert_string_equal(format_stamp(stamps, i), expected);
		}
}

TEST(months_are_english, NULL)
{
	static const char *const names[] = {"Jan", "Feb", "Mar", "Apr", "May",
	    "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	struct stamp stamps[FORMAT_STAMPS];
	char expected[16];

	memset(stamps, 0, sizeof(stamps));
	for (int i = 0; i < 12; i++) {
		/* The fifteenth or so of every month of 1970. */
		const char *text = format_stamp(stamps, (i * 61 + 29) * 43200);

		snprintf(expected, sizeof(expected), "/%s/1970:", names[i]);
		assert_memory_equal(text + 3, expected, strlen(expected));
	}
}

int
setup_all(void **state)
{
	(void)state;
	use_zone("UTC0");
	return 0;
}
