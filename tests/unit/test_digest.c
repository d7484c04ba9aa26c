/*
 * Digests of files (server/http/digest.h): the text of the attribute, base64, and who wants
 * one.  tests/fuzz/fuzz_digest.c has a second implementation.
 */
#include "test.h"

#include "server/http/digest.h"

/* Of "hello\n". */
#define HASH "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"

static struct str
str(const char *text)
{
	return (struct str){text, strlen(text)};
}

TEST(text_is_read_as_it_was_written)
{
	static const struct {
		int64_t size;
		int64_t seconds;
		long nanoseconds;
		const char *text;
	} t[] = {
	    {6, 1600000000, 123456789, HASH " 6 1600000000.123456789"},
	    {0, 0, 0, HASH " 0 0.000000000"},
	    {INT64_MAX, INT64_MAX, 999999999,
		HASH " 9223372036854775807 9223372036854775807.999999999"},
	    {1, -INT64_MAX, 1, HASH " 1 -9223372036854775807.000000001"},
	    {1, -1, 999999999, HASH " 1 -1.999999999"},
	};
	char text[DIGEST_TEXT];
	struct digest dg;

	for (size_t i = 0; i < COUNT(t); i++) {
		const struct timespec mtime = {
		    (time_t)t[i].seconds, t[i].nanoseconds};

		assert_true(digest_parse(str(t[i].text), &dg));
		assert_true(digest_is_of(&dg, t[i].size, &mtime));
		assert_int_equal(dg.dg_hash[0], 0x58);
		assert_int_equal(dg.dg_hash[DIGEST_HASH - 1], 0x03);
		assert_int_equal(digest_format(&dg, text), strlen(t[i].text));
		assert_string_equal(text, t[i].text);
	}
}

TEST(other_texts_are_no_digest)
{
	static const char *const t[] = {"", " ", HASH, HASH " ", HASH " 6",
	    HASH " 6 ", HASH " 6 1", HASH " 6 1.", HASH " 6 1.0",
	    HASH " 6 1.12345678", HASH " 6 1.1234567890",
	    HASH " 6 1.123456789 ", HASH " 6 1.123456789\n",
	    HASH " 06 1.123456789", HASH " 6 01.123456789",
	    HASH " -6 1.123456789", HASH " +6 1.123456789",
	    HASH " 6 +1.123456789", HASH " 6 -0.123456789",
	    HASH " 6 1.-23456789", HASH " 9223372036854775808 1.123456789",
	    HASH " 6 9223372036854775808.123456789",
	    HASH " 99999999999999999999 1.123456789", HASH "  6 1.123456789",
	    " " HASH " 6 1.123456789", HASH "0 6 1.123456789",
	    "5891B5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03 "
	    "6 "
	    "1.123456789",
	    "x891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03 "
	    "6 "
	    "1.123456789"};
	char nul[] = HASH " 6 1.123456789";
	struct digest dg;

	for (size_t i = 0; i < COUNT(t); i++)
		if (digest_parse(str(t[i]), &dg))
			fail_msg("\"%s\" is taken for one", t[i]);
	assert_true(digest_parse((struct str){nul, sizeof(nul) - 1}, &dg));
	assert_false(digest_parse((struct str){nul, sizeof(nul)}, &dg));
	nul[3] = '\0';
	assert_false(digest_parse((struct str){nul, sizeof(nul) - 1}, &dg));
}

TEST(digest_is_of_one_size_and_time)
{
	struct digest dg;

	assert_true(digest_parse(str(HASH " 6 7.000000008"), &dg));
	assert_true(digest_is_of(&dg, 6, &(struct timespec){7, 8}));
	assert_false(digest_is_of(&dg, 5, &(struct timespec){7, 8}));
	assert_false(digest_is_of(&dg, 6, &(struct timespec){8, 8}));
	assert_false(digest_is_of(&dg, 6, &(struct timespec){7, 9}));
}

TEST(base64_has_its_padding)
{
	char text[DIGEST_BASE64];
	struct digest dg;
	uint8_t ones[DIGEST_HASH];

	assert_true(digest_parse(str(HASH " 6 7.000000008"), &dg));
	digest_base64(dg.dg_hash, text);
	assert_string_equal(
	    text, "WJG1tSLV3whtD/CxEPvZ0hu0/HFjrzTQgoai6Eb2vgM=");
	memset(ones, 0xff, sizeof(ones));
	digest_base64(ones, text);
	assert_string_equal(
	    text, "//////////////////////////////////////////8=");
}

TEST(want_repr_digest_decides)
{
	static const struct {
		const char *want;
		bool wanted;
	} t[] = {{"sha-256=10", true}, {"sha-256=1", true},
	    {"sha-256=0", false}, {"sha-256=11", false}, {"sha-256=-1", false},
	    {"sha-512=3, sha-256=1", true}, {"sha-512=3,sha-256=0", false},
	    {"sha-512=3", false}, {"", false}, {"sha-256", false},
	    {"sha-256=1, sha-256=0", false}, {"sha-256=0,sha-256=2;a=b", true},
	    {"sha-2567=1", false}, {"xsha-256=1", false}, {"SHA-256=1", false},
	    {"sha-256=1 ;a", true}, {"sha-256=1a", false},
	    {"sha-256=?1", false}, {"sha-256=1.0", false},
	    {"sha-256= 1", false}, {" ,sha-256=5 , ", true}};

	assert_true(digest_is_wanted((struct str){NULL, 0}));
	for (size_t i = 0; i < COUNT(t); i++)
		if (digest_is_wanted(str(t[i].want)) != t[i].wanted)
			fail_msg("\"%s\"", t[i].want);
}
