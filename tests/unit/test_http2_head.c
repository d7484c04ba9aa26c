/*
 * Tests of server/http2/head.h.
 */
#include "test.h"

#include "server/http2/head.h"

#define MAX_BODY   1000
#define FIELDS_MAX 20

static const struct head_limits limits = {
    .hl_size = 1000, .hl_target = 100, .hl_fields = FIELDS_MAX};
static struct buf_list bufs;

static struct str
str(const char *s)
{
	return (struct str){s, strlen(s)};
}

static void
add(struct h2_head *hh, const char *name, const char *value)
{
	h2_head_add(hh, &bufs, str(name), str(value), &limits);
}

/* Names and values in turn, up to NULL. */
static void
add_all(struct h2_head *hh, const char *const *fields)
{
	*hh = (struct h2_head){0};
	for (; *fields != NULL; fields += 2)
		add(hh, fields[0], fields[1]);
	assert_true(h2_head_end(hh, &bufs, &limits));
	assert_null(hh->hh_raw.b_data);
}

static int
request(const struct h2_head *hh, struct request *rq)
{
	return h2_head_request(hh, &limits, rq, MAX_BODY, &bufs);
}

static void
release(struct h2_head *hh, struct request *rq)
{
	buf_release(&rq->rq_joined, &bufs);
	h2_head_release(hh, &bufs);
}

static void
assert_str(struct str got, const char *expected)
{
	if (expected == NULL) {
		assert_null(got.s_ptr);
		return;
	}
	assert_non_null(got.s_ptr);
	assert_int_equal(got.s_len, strlen(expected));
	assert_memory_equal(got.s_ptr, expected, got.s_len);
}

static void
check_line(const char *const *fields, const char *line, const char *target,
    const char *host)
{
	struct request rq;
	struct h2_head hh;

	add_all(&hh, fields);
	assert_int_equal(request(&hh, &rq), 0);
	assert_str(rq.rq_texts.qt_line, line);
	assert_str(rq.rq_target, target);
	assert_str(rq.rq_texts.qt_host, host);
	assert_true(rq.rq_keepalive && rq.rq_framed && !rq.rq_http10);
	release(&hh, &rq);
}

TEST(pseudo_fields_become_the_first_line_in_any_order)
{
	check_line(
	    (const char *const[]){":method", "GET", ":scheme", "http", ":path",
		"/a?b", ":authority", "x.org:8", "accept", "*/*", NULL},
	    "GET /a?b HTTP/2.0", "/a?b", "x.org:8");
	check_line((const char *const[]){":authority", "x.org", ":path", "/",
		       ":method", "HEAD", NULL},
	    "HEAD / HTTP/2.0", "/", "x.org");
	check_line((const char *const[]){":path", "/p", ":method", "GET",
		       "host", "x.org", NULL},
	    "GET /p HTTP/2.0", "/p", "x.org");
	check_line((const char *const[]){":method", "CONNECT", ":authority",
		       "a:1", NULL},
	    "CONNECT a:1 HTTP/2.0", "a:1", "a:1");
	check_line((const char *const[]){":method", "GET", ":path", "/", "host",
		       "", NULL},
	    "GET / HTTP/2.0", "/", "");
}

#define X50  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X200 X50 X50 X50 X50

/* The target and the host that are known all the same; NULL: not known. */
static const struct {
	const char *method, *path, *authority, *name, *value;
	int status;
	const char *target, *host;
} heads[] = {
    {"GET", "/", "h", "a", "b", 0, "/", "h"},
    {"PUT", "/", "h", "a", "b", 0, "/", "h"},
    {"GET", "/", "h", "content-length", "1000", 0, "/", "h"},
    {"GET", "/", "h", "content-length", "1001", 413, "/", "h"},
    {"PUT", "/", "h", "content-length", "1001", 405, "/", "h"},
    {"GET", "/", "h", "content-length", "99999999999999999999999", 413, "/",
	"h"},
    {"BREW", "/", "h", "a", "b", 501, "/", "h"},
    {"get", "/", "h", "a", "b", 501, "/", "h"},
    {"G T", "/", "h", "a", "b", 400, NULL, "h"},
    {X50, "/", "h", "a", "b", 501, NULL, "h"},
    {"GET", "/a b", "h", "a", "b", 400, NULL, "h"},
    {"GET", "/\xc3", "h", "a", "b", 400, NULL, "h"},
    {"GET", "/" X50 X50, "h", "a", "b", 414, "/" X50 X50, "h"},
    {"GET", "/", "h h", "a", "b", 400, "/", NULL},
    {"GET", "/", "h:x", "a", "b", 400, "/", NULL},
    {"GET", "/", "", "a", "b", 400, "/", NULL},
    {"GET", "/", "", "host", "g_", 0, "/", "g_"},
    {"GET", "/", "h", "host", "g", 400, "/", "h"},
    {"GET", "/", "h", "a", X200 X200 X200 X200 X200, 431, "/", "h"},
    /* What comes first is the verdict. */
    {"BREW", "/" X50 X50, "h", "a", "b", 414, "/" X50 X50, "h"},
    {"BREW", "/", "h", "host", "g", 400, "/", "h"},
};

TEST(faults_are_refused_with_the_status_of_http1)
{
	struct request rq;
	struct h2_head hh;

	for (size_t i = 0; i < COUNT(heads); i++) {
		add_all(&hh,
		    (const char *const[]){":method", heads[i].method, ":path",
			heads[i].path, ":authority", heads[i].authority,
			heads[i].name, heads[i].value, NULL});
		if (request(&hh, &rq) != heads[i].status)
			fail_msg("%s %s: %d", heads[i].method, heads[i].path,
			    request(&hh, &rq));
		assert_str(rq.rq_target, heads[i].target);
		assert_str(rq.rq_texts.qt_host, heads[i].host);
		release(&hh, &rq);
	}
}

TEST(fields_that_are_used_are_set_and_lists_joined)
{
	struct request rq;
	struct h2_head hh;

	add_all(
	    &hh, (const char *const[]){":method", "GET", ":path", "/",
		     ":authority", "h", "user-agent", " u v\t", "cookie", "c",
		     "accept", "a", "range", "bytes=0-1", "accept", "b",
		     "referer", "r", "referer", "s", "accept", "", NULL});
	assert_int_equal(request(&hh, &rq), 0);
	assert_str(rq.rq_texts.qt_agent, "u v");
	assert_str(rq.rq_range, "bytes=0-1");
	assert_str(rq.rq_accept, "a, b, ");
	assert_str(rq.rq_texts.qt_referer, "");
	assert_str(rq.rq_origin, NULL);
	assert_null(memmem(hh.hh_text.b_data, hh.hh_text.b_len, "cookie", 6));
	release(&hh, &rq);
}

TEST(lists_of_a_refused_head_are_not_set)
{
	struct request rq;
	struct h2_head hh;

	add_all(
	    &hh, (const char *const[]){":method", "BREW", ":path", "/",
		     ":authority", "h", "x-forwarded-for", "1.2.3.4", NULL});
	assert_int_equal(request(&hh, &rq), 501);
	assert_str(rq.rq_x_forwarded_for, NULL);
	release(&hh, &rq);
}

static const struct {
	const char *scheme, *authority, *host;
	bool differ;
} origins[] = {
    {"https", "x.org", "x.org:443", false},
    {"HTTPS", "X.org:443", "x.ORG", false},
    {"https", "x.org:", "x.org.:0443", false},
    {"http", "x.org", "x.org:80", false},
    {"http", "x.org:080", "x.org.", false},
    {"http", "x.org:8080", "x.org:08080", false},
    {"http", "[2001:db8::A]", "[2001:DB8::a]:80", false},
    {"http", "[::1]:443", "[::1]:443", false},
    {"http", "1234", "1234:80", false},
    {"https", "x.org", "x.org:80", true},
    {"http", "x.org", "x.org:443", true},
    {"http", "x.org:8080", "x.org", true},
    {"http", "x.org:8080", "x.org:80800", true},
    {"http", "x.org", "x.orgg", true},
    {"http", "x.org", "x.org..", true},
    {"http", "x.org", "", true},
    {"http", "[::1]", "[::180]", true},
    {"http", "[::1]:1", "[::1]", true},
};

TEST(second_host_has_to_name_the_same_origin)
{
	struct request rq;
	struct h2_head hh;

	for (size_t i = 0; i < COUNT(origins); i++) {
		add_all(&hh,
		    (const char *const[]){":method", "GET", ":scheme",
			origins[i].scheme, ":authority", origins[i].authority,
			":path", "/", "host", origins[i].host, NULL});
		if (request(&hh, &rq) != (origins[i].differ ? 400 : 0))
			fail_msg("%s: %s, %s", origins[i].scheme,
			    origins[i].authority, origins[i].host);
		assert_str(rq.rq_texts.qt_host, origins[i].authority);
		release(&hh, &rq);
	}
}

/* The limits count as in HTTP/1, where the authority is the field Host. */
TEST(limits_are_reached_to_the_byte)
{
	static const char http1[] = "GET / HTTP/1.1\r\nhost: h\r\na: \r\n\r\n";
	char value[1000];
	struct request rq;
	struct h2_head hh;
	size_t most = limits.hl_size - (sizeof(http1) - 1);

	memset(value, 'x', sizeof(value));
	for (size_t n = most; n <= most + 1; n++) {
		value[n] = '\0';
		add_all(&hh, (const char *const[]){":method", "GET", ":path",
				 "/", ":authority", "h", "a", value, NULL});
		assert_int_equal(request(&hh, &rq), n == most ? 0 : 431);
		release(&hh, &rq);
		value[n] = 'x';
	}
	for (unsigned n = FIELDS_MAX - 1; n <= FIELDS_MAX; n++) {
		hh = (struct h2_head){0};
		add(&hh, ":method", "GET");
		add(&hh, ":path", "/");
		add(&hh, ":authority", "h");
		for (unsigned i = 0; i < n; i++)
			add(&hh, "a", "b");
		assert_true(h2_head_end(&hh, &bufs, &limits));
		assert_int_equal(request(&hh, &rq), n == FIELDS_MAX ? 431 : 0);
		release(&hh, &rq);
	}
}

TEST(head_that_is_too_long_is_stored_no_further)
{
	char value[600];
	struct request rq;
	struct h2_head hh = {0};

	memset(value, 'x', sizeof(value));
	add(&hh, ":method", "GET");
	add(&hh, ":authority", "h");
	for (int i = 0; i < 100; i++)
		h2_head_add(&hh, &bufs, str("accept"),
		    (struct str){value, sizeof(value)}, &limits);
	/* One field may go beyond the limit. */
	assert_in_range(hh.hh_text.b_len, limits.hl_size, limits.hl_size + 700);
	assert_true(h2_head_end(&hh, &bufs, &limits));
	assert_int_equal(request(&hh, &rq), 431);
	release(&hh, &rq);
}

/* The head is refused, whichever value it is, and holds no more until then. */
TEST(value_that_is_too_long_is_cut)
{
	static const char *const names[] = {
	    ":method", ":path", ":authority", "host", "accept"};
	static char value[60000];

	memset(value, 'x', sizeof(value));
	for (size_t i = 0; i < COUNT(names); i++) {
		struct h2_head hh = {0};
		struct request rq;

		h2_head_add(&hh, &bufs, str(names[i]),
		    (struct str){value, sizeof(value)}, &limits);
		assert_true(h2_head_end(&hh, &bufs, &limits));
		/* CONNECT names its authority twice. */
		assert_in_range(hh.hh_text.b_len, limits.hl_size + 1,
		    2 * limits.hl_size + 100);
		assert_int_not_equal(request(&hh, &rq), 0);
		release(&hh, &rq);
	}
}

TEST(priority_is_noticed)
{
	struct h2_head hh;

	add_all(&hh,
	    (const char *const[]){":method", "GET", "priority", "u=1", NULL});
	assert_true(hh.hh_priority);
	h2_head_release(&hh, &bufs);
}

static void
is_field(const nghttp2_nv *nv, const char *name, const char *value)
{
	assert_int_equal(nv->namelen, strlen(name));
	assert_memory_equal(nv->name, name, nv->namelen);
	assert_int_equal(nv->valuelen, strlen(value));
	assert_memory_equal(nv->value, value, nv->valuelen);
}

TEST(answer_becomes_fields_without_those_of_http1)
{
	char text[] =
	    "HTTP/1.1 206 Partial Content\r\nDate: now\r\n"
	    "ETag:\"a:b\"\r\nConnection: close\r\nX-Empty: \r\n"
	    "Transfer-Encoding: chunked\r\nKeep-Alive: 1\r\n\r\nBody: x";
	char again[sizeof(text)];
	nghttp2_nv nv[8];

	memcpy(again, text, sizeof(text));
	assert_int_equal(h2_head_fields(text, strlen(text), nv, 8), 4);
	is_field(&nv[0], ":status", "206");
	is_field(&nv[1], "date", "now");
	is_field(&nv[2], "etag", "\"a:b\"");
	is_field(&nv[3], "x-empty", "");
	/* With less room it says how much is wanted, and can be asked again. */
	assert_int_equal(h2_head_fields(again, strlen(again), nv, 2), 4);
	assert_int_equal(h2_head_fields(again, strlen(again), nv, 4), 4);
	is_field(&nv[3], "x-empty", "");
}

int
teardown_all(void **state)
{
	(void)state;
	buf_list_destroy(&bufs);
	return 0;
}
