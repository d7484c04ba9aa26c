/*
 * The rules of server/http/request.h: what is taken from a head that head_check
 * accepts, and with which status it may be refused.
 */

#include "test.h"

#include "server/http/head.h"
#include "server/http/request.h"

#define MAX_BODY 1000
#define ABSENT	 "(absent)"

static const struct head_limits limits = {
    .hl_size = 1 << 16, .hl_target = 1 << 16, .hl_fields = 1000};

/* Kept until the slices into it have been looked at. */
struct parsed {
	struct buf_list pd_bufs;
	struct request pd_rq;
	char *pd_head;
};

static int
parse(struct parsed *pd, const char *text)
{
	size_t len = strlen(text);

	*pd = (struct parsed){0};
	/* Without its NUL: a slice that runs out of the head is found out. */
	pd->pd_head = malloc(len);
	assert_non_null(pd->pd_head);
	memcpy(pd->pd_head, text, len);
	return request_parse(
	    &pd->pd_rq, (struct str){pd->pd_head, len}, MAX_BODY, &pd->pd_bufs);
}

static void
parsed_free(struct parsed *pd)
{
	buf_release(&pd->pd_rq.rq_joined, &pd->pd_bufs);
	buf_list_destroy(&pd->pd_bufs);
	free(pd->pd_head);
}

static void
assert_str(struct str got, const char *expected)
{
	if (strcmp(expected, ABSENT) == 0) {
		assert_null(got.s_ptr);
		return;
	}
	assert_non_null(got.s_ptr);
	assert_int_equal(got.s_len, strlen(expected));
	if (got.s_len > 0)
		assert_memory_equal(got.s_ptr, expected, got.s_len);
}

struct head_case {
	const char *hc_head; /* without the empty line at its end */
	int hc_status;
	enum method hc_method;
	bool hc_keepalive;
	bool hc_http10;
	uint64_t hc_body;
};

#define HTTP11 " HTTP/1.1\r\nHost: h\r\n"
#define HTTP10 " HTTP/1.0\r\n"

static const struct head_case heads[] = {
    {"GET /" HTTP11, 0, METHOD_GET, true, false, 0},
    {"HEAD /" HTTP11, 0, METHOD_HEAD, true, false, 0},
    {"OPTIONS *" HTTP11, 0, METHOD_OPTIONS, true, false, 0},
    {"OPTIONS /x" HTTP11, 0, METHOD_OPTIONS, true, false, 0},
    /* known, and not for files */
    {"POST /" HTTP11, 0, METHOD_OTHER, true, false, 0},
    {"PUT /" HTTP11, 0, METHOD_OTHER, true, false, 0},
    {"DELETE /" HTTP11, 0, METHOD_OTHER, true, false, 0},
    {"TRACE /" HTTP11, 0, METHOD_OTHER, true, false, 0},
    {"PATCH /" HTTP11, 0, METHOD_OTHER, true, false, 0},
    {"PROPFIND /" HTTP11, 0, METHOD_OTHER, true, false, 0},
    {"CONNECT h:80" HTTP11, 0, METHOD_OTHER, true, false, 0},
    /* not known */
    {"BREW /" HTTP11, 501, METHOD_OTHER, false, false, 0},
    {"get /" HTTP11, 501, METHOD_OTHER, false, false, 0},
    {"GETT /" HTTP11, 501, METHOD_OTHER, false, false, 0},
    {"GE /" HTTP11, 501, METHOD_OTHER, false, false, 0},
    {"X /" HTTP11, 501, METHOD_OTHER, false, false, 0},
    {"!#$ /" HTTP11, 501, METHOD_OTHER, false, false, 0},
    /* persistence: RFC 9112, 9.3 */
    {"GET /" HTTP11 "Connection: close\r\n", 0, METHOD_GET, false, false, 0},
    {"GET /" HTTP11 "Connection: CLOSE\r\n", 0, METHOD_GET, false, false, 0},
    {"GET /" HTTP11 "Connection: x, close\r\n", 0, METHOD_GET, false, false, 0},
    {"GET /" HTTP11 "Connection: keep-alive\r\n", 0, METHOD_GET, true, false,
	0},
    {"GET /" HTTP11 "Connection: x\r\nConnection: close\r\n", 0, METHOD_GET,
	false, false, 0},
    {"GET /" HTTP11 "Connection: , close\r\n", 0, METHOD_GET, false, false, 0},
    {"GET /" HTTP11 "Connection: a,\tclose ,b\r\n", 0, METHOD_GET, false, false,
	0},
    {"GET /" HTTP11 "Connection: closed, \"close\", c\r\n", 0, METHOD_GET, true,
	false, 0},
    {"GET /" HTTP11 "Connection:\r\n", 0, METHOD_GET, true, false, 0},
    {"GET /" HTTP11 "Proxy-Connection: close\r\n", 0, METHOD_GET, true, false,
	0},
    {"GET /" HTTP10 "Proxy-Connection: keep-alive\r\n", 0, METHOD_GET, false,
	true, 0},
    {"GET /" HTTP10 "Connection: close\r\nConnection: keep-alive\r\n", 0,
	METHOD_GET, false, true, 0},
    {"GET /" HTTP10, 0, METHOD_GET, false, true, 0},
    {"GET /" HTTP10 "Connection: close\r\n", 0, METHOD_GET, false, true, 0},
    {"GET /" HTTP10 "Connection: keep-alive\r\n", 0, METHOD_GET, true, true, 0},
    {"GET /" HTTP10 "Connection: Keep-Alive\r\n", 0, METHOD_GET, true, true, 0},
    /* nothing is upgraded */
    {"GET /" HTTP11 "Connection: upgrade\r\nUpgrade: h2c\r\n", 0, METHOD_GET,
	true, false, 0},
    /* bodies */
    {"GET /" HTTP11 "Content-Length: 0\r\n", 0, METHOD_GET, true, false, 0},
    {"GET /" HTTP11 "Content-Length: 7\r\n", 0, METHOD_GET, true, false, 7},
    {"POST /" HTTP11 "content-length: 999\r\n", 0, METHOD_OTHER, true, false,
	999},
    {"POST /" HTTP11 "Content-Length: 1000\r\n", 0, METHOD_OTHER, true, false,
	1000},
    {"POST /" HTTP11 "Content-Length: 1001\r\n", 405, METHOD_OTHER, true, false,
	1001},
    {"PUT /" HTTP11 "Content-Length: 99999999999999999\r\n", 405, METHOD_OTHER,
	true, false, 99999999999999999},
    {"GET /" HTTP11 "Content-Length: 1001\r\nConnection: close\r\n", 413,
	METHOD_GET, false, false, 1001},
};

/* So that this table is about heads that get so far. */
static void
assert_accepted(const char *text)
{
	struct head hd = {0};
	size_t len = strlen(text);

	assert_int_equal(head_check(text, len, &limits, &hd), 0);
	assert_int_equal(hd.hd_len, len);
}

static void
check_head(const struct head_case *hc)
{
	SCOPED(parsed_free) struct parsed pd;
	char text[500];

	snprintf(text, sizeof(text), "%s\r\n", hc->hc_head);
	assert_accepted(text);
	assert_int_equal(parse(&pd, text), hc->hc_status);
	if (hc->hc_status != 501) {
		assert_int_equal(pd.pd_rq.rq_method, hc->hc_method);
		assert_int_equal(pd.pd_rq.rq_keepalive, hc->hc_keepalive);
		assert_int_equal(pd.pd_rq.rq_http10, hc->hc_http10);
		assert_int_equal(pd.pd_rq.rq_body, hc->hc_body);
	}
	assert_memory_equal(pd.pd_rq.rq_texts.qt_line.s_ptr, text,
	    pd.pd_rq.rq_texts.qt_line.s_len);
	assert_int_equal(text[pd.pd_rq.rq_texts.qt_line.s_len], '\r');
}

TEST(method_persistence_and_body_are_taken_from_the_head)
{
	for (size_t i = 0; i < COUNT(heads); i++)
		check_head(&heads[i]);
}

/* Every field that has a slice; as Host it is already there. */
static const struct {
	const char *fd_name;
	size_t fd_offset;
	bool fd_list;
} slices[] = {
#define SLICE(name, member, list)                            \
	{                                                    \
		name, offsetof(struct request, member), list \
	}
    SLICE("Range", rq_range, false),
    SLICE("Referer", rq_texts.qt_referer, false),
    SLICE("User-Agent", rq_texts.qt_agent, false),
    SLICE("Expect", rq_expect, false),
    SLICE("Accept", rq_accept, true),
    SLICE("If-Match", rq_pre.pre_if_match, true),
    SLICE("If-None-Match", rq_pre.pre_if_none_match, true),
    SLICE("If-Modified-Since", rq_pre.pre_if_modified_since, false),
    SLICE("If-Unmodified-Since", rq_pre.pre_if_unmodified_since, false),
    SLICE("If-Range", rq_pre.pre_if_range, false),
};

static const struct str *
slice(const struct parsed *pd, size_t i)
{
	return (const struct str *)(const void *)((const char *)&pd->pd_rq +
						  slices[i].fd_offset);
}

/* The fields that were not sent are absent; number i was. */
static void
assert_only(const struct parsed *pd, size_t i, const char *expected)
{
	for (size_t j = 0; j < COUNT(slices); j++)
		assert_str(*slice(pd, j), j == i ? expected : ABSENT);
}

TEST(every_field_has_its_slice_and_an_absent_one_none)
{
	struct parsed pd;
	char text[300];

	for (size_t i = 0; i < COUNT(slices); i++) {
		snprintf(text, sizeof(text),
		    "GET /t?q HTTP/1.1\r\nHost: h:80\r\nX-%s: other\r\n"
		    "%s: value of it\r\n%sX: other\r\n%.4s: other\r\n\r\n",
		    slices[i].fd_name, slices[i].fd_name, slices[i].fd_name,
		    slices[i].fd_name);
		assert_int_equal(parse(&pd, text), 0);
		assert_only(&pd, i, "value of it");
		assert_str(pd.pd_rq.rq_texts.qt_host, "h:80");
		assert_str(pd.pd_rq.rq_target, "/t?q");
		assert_str(pd.pd_rq.rq_texts.qt_line, "GET /t?q HTTP/1.1");
		parsed_free(&pd);
	}
	assert_int_equal(parse(&pd, "GET / HTTP/1.0\r\n\r\n"), 0);
	assert_only(&pd, COUNT(slices), ABSENT);
	assert_str(pd.pd_rq.rq_texts.qt_host, ABSENT);
	parsed_free(&pd);
}

TEST(names_are_compared_without_case)
{
	SCOPED(parsed_free) struct parsed pd;

	assert_int_equal(
	    parse(&pd, "GET / HTTP/1.1\r\nhOST: h\r\nRANGE: r\r\n"
		       "uSER-aGENT: a\r\nif-none-MATCH: \"x\"\r\n\r\n"),
	    0);
	assert_str(pd.pd_rq.rq_texts.qt_host, "h");
	assert_str(pd.pd_rq.rq_range, "r");
	assert_str(pd.pd_rq.rq_texts.qt_agent, "a");
	assert_str(pd.pd_rq.rq_pre.pre_if_none_match, "\"x\"");
}

TEST(spaces_around_a_value_are_trimmed)
{
	static const struct {
		const char *field, *expected;
	} t[] = {
	    {"Range:r", "r"},
	    {"Range: r", "r"},
	    {"Range: \t r", "r"},
	    {"Range: r ", "r"},
	    {"Range: r \t ", "r"},
	    {"Range:\tr s\t", "r s"},
	    {"Range:", ""},
	    {"Range:  \t", ""},
	};
	struct parsed pd;
	char text[200];

	for (size_t i = 0; i < COUNT(t); i++) {
		snprintf(text, sizeof(text),
		    "GET / HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n", t[i].field);
		assert_int_equal(parse(&pd, text), 0);
		assert_only(&pd, 0, t[i].expected);
		parsed_free(&pd);
	}
}

/* A list is one list however it was sent; of the others two say nothing. */
TEST(repeated_lists_are_joined_and_other_repeated_fields_are_empty)
{
	struct parsed pd;
	char text[300];

	for (size_t i = 0; i < COUNT(slices); i++) {
		snprintf(text, sizeof(text),
		    "GET / HTTP/1.1\r\nHost: h\r\n%s: a, b\r\nX: y\r\n"
		    "%s: c \r\n%s: d\r\n\r\n",
		    slices[i].fd_name, slices[i].fd_name, slices[i].fd_name);
		assert_int_equal(parse(&pd, text), 0);
		assert_only(&pd, i, slices[i].fd_list ? "a, b, c, d" : "");
		parsed_free(&pd);
	}
}

TEST(two_lists_are_joined_side_by_side)
{
	SCOPED(parsed_free) struct parsed pd;
	char text[8000];
	size_t i, n = 0;

	n += (size_t)sprintf(text, "GET / HTTP/1.1\r\nHost: h\r\n");
	for (i = 0; i < 10; i++)
		n += (size_t)sprintf(text + n,
		    "If-Match: \"%zu\"\r\nIf-None-Match: \"%zu\"\r\n", i,
		    100 + i);
	sprintf(text + n, "\r\n");
	assert_int_equal(parse(&pd, text), 0);
	assert_str(pd.pd_rq.rq_pre.pre_if_match,
	    "\"0\", \"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", "
	    "\"8\", \"9\"");
	assert_str(pd.pd_rq.rq_pre.pre_if_none_match,
	    "\"100\", \"101\", \"102\", \"103\", \"104\", \"105\", "
	    "\"106\", \"107\", \"108\", \"109\"");
}

/* However often: nothing is copied twice. */
TEST(a_list_in_many_fields_is_joined)
{
	SCOPED(parsed_free) struct parsed pd;
	char text[4000];
	size_t i, n;

	n = (size_t)sprintf(text, "GET / HTTP/1.1\r\nHost: h\r\n");
	for (i = 0; i < 90; i++)
		n += (size_t)sprintf(text + n, "Accept: %02zu\r\n", i);
	sprintf(text + n, "\r\n");
	assert_int_equal(parse(&pd, text), 0);
	assert_int_equal(pd.pd_rq.rq_accept.s_len, 90 * 4 - 2);
	for (i = 0; i < 90; i++)
		assert_int_equal(
		    strtoul(pd.pd_rq.rq_accept.s_ptr + 4 * i, NULL, 10), i);
}

/* Quadratic memory for a head of some kilobytes: refused, not obeyed. */
TEST(two_lists_in_very_many_fields_are_refused)
{
	size_t i, n, max = 60000;
	SCOPED(free_at) char *text = malloc(max);
	SCOPED(parsed_free) struct parsed pd;

	assert_non_null(text);
	n = (size_t)sprintf(text, "GET / HTTP/1.1\r\nHost: h\r\n");
	for (i = 0; i < 900; i++)
		n += (size_t)sprintf(text + n, "%s: \"%040zu\"\r\n",
		    i % 2 == 0 ? "If-Match" : "Accept", i);
	sprintf(text + n, "\r\n");
	assert_int_equal(parse(&pd, text), 400);
	assert_true(pd.pd_rq.rq_joined.b_cap <= 8 * max);
}

TEST(all_forms_of_a_target_are_taken_as_they_are)
{
	static const char *const targets[] = {"/", "/a/b%20c?d=e&f",
	    "/a//b/../c", "http://h/x", "http://h:80/x?y", "*"};
	struct parsed pd;
	char text[200];

	for (size_t i = 0; i < COUNT(targets); i++) {
		snprintf(text, sizeof(text),
		    "OPTIONS %s HTTP/1.1\r\nHost: h\r\n\r\n", targets[i]);
		assert_accepted(text);
		assert_int_equal(parse(&pd, text), 0);
		assert_str(pd.pd_rq.rq_target, targets[i]);
		parsed_free(&pd);
	}
}

/* Whatever the last request left behind. */
TEST(nothing_is_left_of_the_request_before)
{
	struct buf_list bufs = {0};
	struct request rq;

	memset(&rq, 0x5a, sizeof(rq));
	assert_int_equal(
	    request_parse(&rq, STR("GET / HTTP/1.0\r\n\r\n"), MAX_BODY, &bufs),
	    0);
	assert_null(rq.rq_range.s_ptr);
	assert_null(rq.rq_pre.pre_if_range.s_ptr);
	assert_null(rq.rq_joined.b_data);
	assert_int_equal(rq.rq_body, 0);
	assert_false(rq.rq_keepalive);
}

/* The parser's own limit is 80 KiB; max_head_size may be 1 MiB. */
TEST(a_large_head_that_was_checked_is_parsed)
{
	enum { LARGE = 1 << 20 };
	static const char begin[] = "GET /" HTTP11 "Range: bytes=0-\r\nX: ";
	SCOPED(free_at) char *text = malloc(LARGE + 1);
	SCOPED(parsed_free) struct parsed pd;

	assert_non_null(text);
	memset(text, 'x', LARGE);
	memcpy(text, begin, sizeof(begin) - 1);
	memcpy(text + LARGE - 4, "\r\n\r\n", 5);
	assert_int_equal(parse(&pd, text), 0);
	assert_memory_equal(pd.pd_rq.rq_range.s_ptr, "bytes=0-", 8);
}
