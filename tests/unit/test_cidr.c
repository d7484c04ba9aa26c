/*
 * Blocks of addresses (server/util/cidr.h), against a comparison of single bits.
 */
#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "server/util/cidr.h"

static const struct sockaddr *
address(const char *text)
{
	static union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	} u;

	memset(&u, 0, sizeof(u));
	if (strcmp(text, "unix:") == 0)
		u.sa.sa_family = AF_UNIX;
	else if (inet_pton(AF_INET, text, &u.in.sin_addr) == 1)
		u.sa.sa_family = AF_INET;
	else {
		assert_int_equal(
		    inet_pton(AF_INET6, text, &u.in6.sin6_addr), 1);
		u.sa.sa_family = AF_INET6;
	}
	return &u.sa;
}

TEST(blocks_have_what_is_in_them)
{
	static const struct {
		const char *block;
		const char *addr;
		bool has;
	} rows[] = {
	    {"192.0.2.7", "192.0.2.7", true},
	    {"192.0.2.7", "192.0.2.8", false},
	    {"192.0.2.7", "::ffff:192.0.2.7", true},
	    {"::ffff:192.0.2.7", "192.0.2.7", true},
	    {"192.0.2.0/24", "192.0.2.255", true},
	    {"192.0.2.0/24", "192.0.3.0", false},
	    {"10.0.0.0/9", "10.127.255.255", true},
	    {"10.0.0.0/9", "10.128.0.0", false},
	    {"0.0.0.0/0", "203.0.113.1", true},
	    {"0.0.0.0/0", "2001:db8::1", false},
	    {"::/0", "203.0.113.1", true},
	    {"all", "2001:db8::1", true},
	    {"all", "203.0.113.1", true},
	    {"all", "unix:", true},
	    {"2001:db8::/33", "2001:db8:7fff::1", true},
	    {"2001:db8::/33", "2001:db8:8000::1", false},
	    {"2001:db8::1", "2001:db8::1", true},
	    {"unix:", "unix:", true},
	    {"unix:", "127.0.0.1", false},
	};
	struct cidr cd;

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_true(cidr_parse(rows[i].block, &cd));
		if (cidr_has(&cd, address(rows[i].addr)) != rows[i].has)
			fail_msg("%s: %s", rows[i].block, rows[i].addr);
		assert_false(cidr_has(&cd, NULL));
	}
}

TEST(an_invalid_block_is_refused)
{
	static const char *const bad[] = {"", "x", "192.0.2", "192.0.2.0/33",
	    "192.0.2.1/24", "192.0.2.0/", "192.0.2.0/-1", "192.0.2.0/ 8",
	    "192.0.2.0/8x", "2001:db8::/129", "2001:db8::1/64", "[::1]",
	    "10.0.0.0/99999999999999999999", "/8", "ALL ", "unix:/x",
	    "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb/8"};
	struct cidr cd;

	for (size_t i = 0; i < COUNT(bad); i++)
		if (cidr_parse(bad[i], &cd))
			fail_msg("\"%s\"", bad[i]);
}

TEST(each_bit_of_its_length_counts_and_no_other)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	unsigned char *p = in6.sin6_addr.s6_addr;
	char text[INET6_ADDRSTRLEN], block[64];
	struct cidr cd;
	unsigned bits, i, flip;

	srandom(1);
	for (bits = 0; bits <= 128; bits++) {
		for (i = 0; i < 16; i++)
			p[i] = (unsigned char)random();
		for (i = bits; i < 128; i++)
			p[i / 8] &= (unsigned char)~(0x80 >> i % 8);
		inet_ntop(AF_INET6, p, text, sizeof(text));
		snprintf(block, sizeof(block), "%s/%u", text, bits);
		assert_true(cidr_parse(block, &cd));
		for (flip = 0; flip < 128; flip++) {
			p[flip / 8] ^= (unsigned char)(0x80 >> flip % 8);
			if (cidr_has(
				&cd, (const struct sockaddr *)(void *)&in6) !=
			    (flip >= bits))
				fail_msg("%s, bit %u", block, flip);
			p[flip / 8] ^= (unsigned char)(0x80 >> flip % 8);
		}
	}
}

TEST(one_matching_block_of_a_list_is_enough)
{
	struct cidr list[2];

	assert_true(cidr_parse("192.0.2.0/24", &list[0]));
	assert_true(cidr_parse("2001:db8::/32", &list[1]));
	assert_true(cidr_has_any(list, 2, address("2001:db8::9")));
	assert_false(cidr_has_any(list, 1, address("2001:db8::9")));
	assert_false(cidr_has_any(NULL, 0, address("192.0.2.1")));
}
