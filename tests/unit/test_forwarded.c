/*
 * Who asked (server/http/forwarded.h), and addresses from their text.
 */
#include "test.h"

#include "server/http/forwarded.h"

/* 10.0.0.0/8 and 2001:db8::/32 are trusted. */
static const char *
client(enum forwarded kind, const char *list)
{
	static char text[INET6_ADDRSTRLEN];
	union sockaddr_any who = {.sa = {.sa_family = AF_UNIX}};
	struct cidr trusted[2];
	char *copy = malloc(strlen(list) + 1);
	bool found;

	assert_non_null(copy);
	memcpy(copy, list, strlen(list));
	assert_true(cidr_parse("10.0.0.0/8", &trusted[0]));
	assert_true(cidr_parse("2001:db8::/32", &trusted[1]));
	found = forwarded_client(
	    kind, (struct str){copy, strlen(list)}, trusted, 2, &who);
	free(copy);
	assert_true(found || who.sa.sa_family == AF_UNIX);
	*sockaddr_text(text, &who.sa) = '\0';
	return found ? text : "";
}

struct row {
	const char *list;
	const char *client; /* empty: nobody */
};

static void
check(enum forwarded kind, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(client(kind, rows[i].list), rows[i].client) != 0)
			fail_msg("%s: %s instead of %s", rows[i].list,
			    client(kind, rows[i].list), rows[i].client);
}

TEST(x_forwarded_for_is_read_from_its_end)
{
	static const struct row rows[] = {
	    {"", ""},
	    {"192.0.2.1", "192.0.2.1"},
	    {"192.0.2.1, 192.0.2.2", "192.0.2.2"},
	    {"192.0.2.1,10.1.1.1", "192.0.2.1"},
	    {"6.6.6.6, 192.0.2.1 ,\t10.1.1.1 , 10.2.2.2", "192.0.2.1"},
	    {"10.1.1.1, 10.2.2.2", "10.1.1.1"},
	    {"2001:db8::1, 10.2.2.2", "2001:db8::1"},
	    {"2001:db9::1, 2001:db8::2", "2001:db9::1"},
	    {"::ffff:192.0.2.1, ::ffff:10.2.2.2", "192.0.2.1"},
	    /* ports and brackets */
	    {"192.0.2.1:4711", "192.0.2.1"},
	    {"192.0.2.1:65535, 10.1.1.1:1", "192.0.2.1"},
	    {"[2001:db9::1]:80", "2001:db9::1"},
	    {"[2001:db9::1]", "2001:db9::1"},
	    {"192.0.2.1:_x", "192.0.2.1"},
	    {"192.0.2.1:", ""},
	    {"192.0.2.1:_", ""},
	    {"192.0.2.1:123456", ""},
	    {"192.0.2.1:80x", ""},
	    {"192.0.2.1:80:80", ""},
	    {"[192.0.2.1]:80", ""},
	    {"[2001:db9::1", ""},
	    {"[2001:db9::1]80", ""},
	    {"2001:db9::1]", ""},
	    {"[]", ""},
	    /* the last good one counts */
	    {"192.0.2.1, unknown", ""},
	    {"192.0.2.1, unknown, 10.1.1.1", "10.1.1.1"},
	    {"192.0.2.1, _hidden, 10.1.1.1", "10.1.1.1"},
	    {"192.0.2.1, x y z, 10.1.1.1, 10.2.2.2", "10.1.1.1"},
	    {"192.0.2.1, \"10.1.1.1\"", ""},
	    {"192.0.2.01", ""},
	    {"192.0.2.256", ""},
	    {"192.0.2", ""},
	    {"3221225985", ""},
	    {"0x7f.1", ""},
	    {"fe80::1%eth0", ""},
	    {"localhost", ""},
	    {"192.0.2.1;x", ""},
	    {"1111:2222:3333:4444:5555:6666:255.255.255.255.255", ""},
	    {"1111:2222:3333:4444:5555:6666:255.255.255.255",
		"1111:2222:3333:4444:5555:6666:ffff:ffff"},
	    /* members without anything (RFC 9110, 5.6.1.2) */
	    {",", ""},
	    {"192.0.2.1,", "192.0.2.1"},
	    {",192.0.2.1, , ,10.1.1.1,", "192.0.2.1"},
	    /* quotes mean nothing here */
	    {"\", 192.0.2.1", "192.0.2.1"},
	    {"\"a, 192.0.2.1\", 10.1.1.1", "10.1.1.1"},
	};

	check(FORWARDED_X, rows, COUNT(rows));
}

TEST(forwarded_has_pairs_in_members)
{
	static const struct row rows[] = {
	    {"", ""},
	    {"for=192.0.2.1", "192.0.2.1"},
	    {"For=192.0.2.1;Proto=http;by=203.0.113.43", "192.0.2.1"},
	    {"by=203.0.113.43;for=192.0.2.1", "192.0.2.1"},
	    {"for=\"[2001:db9:cafe::17]:4711\"", "2001:db9:cafe::17"},
	    {"for=\"192.0.2.1:80\"", "192.0.2.1"},
	    {"for=\"192.0.2.1\", for=10.1.1.1", "192.0.2.1"},
	    {"for=192.0.2.1, for=\"[2001:db8::1]\";host=\"a,b\"", "192.0.2.1"},
	    {"for=192.0.2.1;host=\"a\\\"b,;\\\\\", for=10.1.1.1", "192.0.2.1"},
	    {"for=10.1.1.1, for=10.2.2.2", "10.1.1.1"},
	    {";for=192.0.2.1;;", "192.0.2.1"},
	    {"proto=http ; for=192.0.2.1", "192.0.2.1"},
	    {"for=192.0.2.1; proto=http", "192.0.2.1"},
	    {"for=192.0.2.1, ", "192.0.2.1"},
	    {"for=\"2001:db9::1\"", "2001:db9::1"},
	    /* nobody */
	    {"for=unknown", ""},
	    {"for=_hidden", ""},
	    {"for=\"_hidden:80\"", ""},
	    {"for=192.0.2.1, for=unknown, for=10.1.1.1", "10.1.1.1"},
	    {"for=192.0.2.1, proto=http, for=10.1.1.1", "10.1.1.1"},
	    /* no pair */
	    {"192.0.2.1", ""},
	    {"for", ""},
	    {"for=", ""},
	    {"for=\"\"", ""},
	    {"for =192.0.2.1", ""},
	    {"for= 192.0.2.1", ""},
	    {"for=192.0.2.1:80", ""},
	    {"for=[2001:db9::1]", ""},
	    {"for=192.0.2.1 proto=http", ""},
	    {"for=\"192.0.2.1", ""},
	    {"for=\"192.0.2.1\"x", ""},
	    {"for=\"192.0.2\\.1\"", ""},
	    {"=192.0.2.1", ""},
	    {"for=192.0.2.1;for=192.0.2.2", ""},
	    {"for=192.0.2.1;host=\"", ""},
	    {"for=192.0.2.1;host=a\"b\"", ""},
	};

	check(FORWARDED_RFC7239, rows, COUNT(rows));
}

/* A client may write a quote that does not end, to have the proxy's member swallowed. */
TEST(entries_of_a_client_do_not_hide_those_of_the_proxy)
{
	static const char *const lies[] = {"\"", "for=\"", "for=\"10.1.1.1",
	    "x\\", "for=\"\\", "for=\\\"", ",,,", ";\";", "for=\"a\"b\"",
	    "\\\"", "for=6.6.6.6, by=\""};
	static const char *const adds[] = {", for=192.0.2.9",
	    ", for=\"192.0.2.9:80\"", ", proto=http;for=\"192.0.2.9\"",
	    ", for=192.0.2.9;host=\"a\\\",b\""};
	char text[256];

	for (size_t i = 0; i < COUNT(lies); i++)
		for (size_t j = 0; j < COUNT(adds); j++) {
			snprintf(text, sizeof(text), "%s%s", lies[i], adds[j]);
			assert_string_equal(
			    client(FORWARDED_RFC7239, text), "192.0.2.9");
			snprintf(text, sizeof(text), "%s, 192.0.2.9", lies[i]);
			assert_string_equal(
			    client(FORWARDED_X, text), "192.0.2.9");
		}
}

TEST(an_absent_field_names_no_client)
{
	union sockaddr_any who;

	assert_false(forwarded_client(
	    FORWARDED_X, (struct str){NULL, 0}, NULL, 0, &who));
	assert_false(forwarded_client(
	    FORWARDED_RFC7239, (struct str){NULL, 0}, NULL, 0, &who));
}

TEST(nul_bytes_end_no_address)
{
	union sockaddr_any who;

	assert_false(sockaddr_parse(STR("192.0.2.1\0"), &who));
	assert_false(sockaddr_parse(STR("::1\0::1"), &who));
	assert_false(sockaddr_parse(STR(""), &who));
	assert_true(sockaddr_parse(STR("192.0.2.1"), &who));
	assert_int_equal(who.in.sin_port, 0);
}
