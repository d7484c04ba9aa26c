/*
 * Tests of server/http2/head.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/http2/head.h"

#define MOST 1000

static struct buf_list bufs;

static struct str
str(const char *s)
{
	return (struct str){s, strlen(s)};
}

/* Names and values in turn, up to NULL. */
static void
add_all(struct h2_head *hh, const char *const *fields)
{
	*hh = (struct h2_head){0};
	for (; *fields != NULL; fields += 2)
		h2_head_add(hh, &bufs, str(fields[0]), str(fields[1]), MOST);
	assert_true(h2_head_end(hh, &bufs));
}

static void
check(const char *const *fields, const char *text)
{
	struct h2_head hh;

	add_all(&hh, fields);
	assert_int_equal(hh.hh_text.b_len, strlen(text));
	assert_memory_equal(hh.hh_text.b_data, text, strlen(text));
	assert_null(hh.hh_raw.b_data);
	h2_head_release(&hh, &bufs);
}

static void
pseudo_fields_become_the_first_line_in_any_order(void **state)
{
	(void)state;
	check(
	    (const char *const[]){":method", "GET", ":scheme", "http", ":path",
		"/a?b", ":authority", "x.org:8", "accept", "*/*", NULL},
	    "GET /a?b HTTP/1.1\r\nhost: x.org:8\r\naccept: */*\r\n\r\n");
	check((const char *const[]){":authority", "x.org", ":path", "/",
		  ":method", "HEAD", NULL},
	    "HEAD / HTTP/1.1\r\nhost: x.org\r\n\r\n");
	check((const char *const[]){":path", "/p", ":method", "GET", "host",
		  "x.org", NULL},
	    "GET /p HTTP/1.1\r\nhost: x.org\r\n\r\n");
	check((const char *const[]){":method", "CONNECT", ":authority", "a:1",
		  NULL},
	    "CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n");
	check((const char *const[]){NULL}, "  HTTP/1.1\r\n\r\n");
}

static void
second_host_has_to_say_the_same(void **state)
{
	struct h2_head hh;

	(void)state;
	add_all(&hh, (const char *const[]){":method", "GET", ":path", "/",
			 ":authority", "x.org", "host", "X.org", NULL});
	assert_false(hh.hh_two_hosts);
	assert_memory_equal(
	    hh.hh_text.b_data, "GET / HTTP/1.1\r\nhost: x.org\r\n\r\n", 31);
	h2_head_release(&hh, &bufs);
	add_all(&hh, (const char *const[]){":method", "GET", ":path", "/",
			 ":authority", "x.org", "host", "y.org", NULL});
	assert_true(hh.hh_two_hosts);
	h2_head_release(&hh, &bufs);
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

static void
hosts_of_one_origin_are_the_same(void **state)
{
	struct h2_head hh;

	(void)state;
	for (size_t i = 0; i < sizeof(origins) / sizeof(origins[0]); i++) {
		add_all(&hh,
		    (const char *const[]){":method", "GET", ":scheme",
			origins[i].scheme, ":authority", origins[i].authority,
			":path", "/", "host", origins[i].host, NULL});
		if (hh.hh_two_hosts != origins[i].differ)
			fail_msg("%s: %s, %s", origins[i].scheme,
			    origins[i].authority, origins[i].host);
		h2_head_release(&hh, &bufs);
	}
}

static void
head_that_is_too_long_ends_before_its_end(void **state)
{
	struct h2_head hh = {0};
	char value[600];

	(void)state;
	memset(value, 'x', sizeof(value));
	h2_head_add(&hh, &bufs, str(":method"), str("GET"), MOST);
	for (int i = 0; i < 100; i++)
		h2_head_add(&hh, &bufs, str("a"),
		    (struct str){value, sizeof(value)}, MOST);
	assert_true(hh.hh_over);
	/* One field may go beyond it. */
	assert_in_range(hh.hh_text.b_len, MOST, MOST + 700);
	assert_true(h2_head_end(&hh, &bufs));
	h2_head_release(&hh, &bufs);
}

/* It is refused, whichever it is, and holds no more until then. */
static void
value_that_is_too_long_is_cut(void **state)
{
	static const char *const names[] = {
	    ":method", ":path", ":authority", "host", "a"};
	char value[60 * MOST];

	(void)state;
	memset(value, 'x', sizeof(value));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct h2_head hh = {0};

		h2_head_add(&hh, &bufs, str(names[i]),
		    (struct str){value, sizeof(value)}, MOST);
		assert_true(h2_head_end(&hh, &bufs));
		/* CONNECT names its authority twice. */
		assert_in_range(hh.hh_text.b_len, MOST + 1, 2 * MOST + 100);
		h2_head_release(&hh, &bufs);
	}
}

static void
priority_is_noticed(void **state)
{
	struct h2_head hh;

	(void)state;
	add_all(&hh,
	    (const char *const[]){":method", "GET", "priority", "u=1", NULL});
	assert_true(hh.hh_priority);
	h2_head_release(&hh, &bufs);
}

static void
log_shows_the_version(void **state)
{
	struct h2_head hh;

	(void)state;
	add_all(
	    &hh, (const char *const[]){":method", "GET", ":path", "/a", NULL});
	h2_head_mark(&hh, strlen("GET /a HTTP/1.1"));
	assert_memory_equal(hh.hh_text.b_data, "GET /a HTTP/2.0\r\n", 17);
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

static void
answer_becomes_fields_without_those_of_http1(void **state)
{
	char text[] =
	    "HTTP/1.1 206 Partial Content\r\nDate: now\r\n"
	    "ETag:\"a:b\"\r\nConnection: close\r\nX-Empty: \r\n"
	    "Transfer-Encoding: chunked\r\nKeep-Alive: 1\r\n\r\nBody: x";
	char again[sizeof(text)];
	nghttp2_nv nv[8];

	(void)state;
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
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pseudo_fields_become_the_first_line_in_any_order),
	    cmocka_unit_test(second_host_has_to_say_the_same),
	    cmocka_unit_test(hosts_of_one_origin_are_the_same),
	    cmocka_unit_test(head_that_is_too_long_ends_before_its_end),
	    cmocka_unit_test(value_that_is_too_long_is_cut),
	    cmocka_unit_test(priority_is_noticed),
	    cmocka_unit_test(log_shows_the_version),
	    cmocka_unit_test(answer_becomes_fields_without_those_of_http1),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	buf_list_destroy(&bufs);
	return failed;
}
