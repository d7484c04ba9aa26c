/*
 * The end of a request's body (RFC 9112, 6.3 and 7.1): where it is, what is none, and that neither
 * depends on how the bytes arrive.
 */
#include "test.h"

#include "server/http/body.h"

#define NEXT  "GET / HTTP/1.1\r\n"
#define END   "0\r\n\r\n"
#define CHUNK "5\r\nabcde\r\n"

/* Each is a whole body. */
static const char *const good[] = {
    END,
    "000\r\n\r\n",
    CHUNK END,
    CHUNK CHUNK CHUNK END,
    "005\r\nabcde\r\n" END,
    "a\r\n0123456789\r\n" END,
    "A\r\n0123456789\r\n" END,
    "10\r\n0123456789abcdef\r\n" END,
    "2\r\n\r\n\r\n" END,
    "5\r\n0\r\n\r\n\r\n" END,
    "0;a\r\n\r\n",
    "5;a\r\nabcde\r\n" END,
    "5;a=b\r\nabcde\r\n" END,
    "5;a=b;c;d=e\r\nabcde\r\n" END,
    "5 ;a\r\nabcde\r\n" END,
    "5\t ; a\t= \tb ;\tc\r\nabcde\r\n" END,
    "5;a=\"\"\r\nabcde\r\n" END,
    "5;a=\"b\"\r\nabcde\r\n" END,
    "5;a=\"b\" ;c\r\nabcde\r\n" END,
    "5;a=\"\\\"\\\\\\ \\b\\\xe9\"\r\nabcde\r\n" END,
    "5;a=\" \t;,\xe9\"\r\nabcde\r\n" END,
    "5;!#$%&'*+-.^_`|~9=!#$%&'*+-.^_`|~9\r\nabcde\r\n" END,
    "0\r\nA: b\r\n\r\n",
    "0\r\nA:\r\nA: \t b\xe9\t\r\n\r\n",
    CHUNK "0\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n",
    CHUNK "0\r\nHost: a\r\nConnection: close\r\n!#$%&'*+-.^_`|~9: b\r\n\r\n",
};

/* Each ends with the byte that proves it wrong. */
static const struct {
	const char *bytes;
	size_t len;
} bad[] = {
#define BAD(literal)                           \
	{                                      \
		(literal), sizeof(literal) - 1 \
	}
    BAD("\r"),
    BAD("\n"),
    BAD(" "),
    BAD("\t"),
    BAD(";"),
    BAD("-"),
    BAD("+"),
    BAD("g"),
    BAD("G"),
    BAD("\0"),
    BAD("\xef"),
    BAD("/"),
    BAD(":"),
    BAD("@"),
    BAD("`"),
    BAD("0x"),
    BAD("5h"),
    BAD("5\n"),
    BAD("5\ra"),
    BAD("5\r\r"),
    BAD("5 \r"),
    BAD("5 a"),
    BAD("5,"),
    BAD("5="),
    BAD("5\v"),
    BAD("5\xa0"),
    BAD("5."),
    BAD("5;\r"),
    BAD("5;\n"),
    BAD("5;;"),
    BAD("5;="),
    BAD("5;\""),
    BAD("5; \r"),
    BAD("5;a \r"),
    BAD("5;a b"),
    BAD("5;a\0"),
    BAD("5;a\n"),
    BAD("5;a("),
    BAD("5;\xe9"),
    BAD("5;a=\r"),
    BAD("5;a= \r"),
    BAD("5;a=;"),
    BAD("5;a=="),
    BAD("5;a=b="),
    BAD("5;a=b\""),
    BAD("5;a=b c"),
    BAD("5;a=b \r"),
    BAD("5;a=\"\r"),
    BAD("5;a=\"\n"),
    BAD("5;a=\"b\0"),
    BAD("5;a=\"b\x7f"),
    BAD("5;a=\"b\\\r"),
    BAD("5;a=\"b\\\0"),
    BAD("5;a=\"b\"c"),
    BAD("5;a=\"b\"\""),
    BAD("5;a=\"b\" \r"),
    BAD("5;a=\"b\"="),
    BAD("5;a\r\r"),
    BAD("5\r\nabcdef"),
    BAD("5\r\nabcde\n"),
    BAD("5\r\nabcde\r\r"),
    BAD("5\r\nabcde\r0"),
    BAD("5\r\nabcde0"),
    BAD(CHUNK "\r"),
    BAD(CHUNK "G"),
    BAD("0\n"),
    BAD("0\r\n\n"),
    BAD("0\r\n\r\r"),
    BAD("0\r\n\rG"),
    BAD("0\r\n:"),
    BAD("0\r\n "),
    BAD("0\r\n\t"),
    BAD("0\r\n\0"),
    BAD("0\r\n\xe9"),
    BAD("0\r\nA\r"),
    BAD("0\r\nA "),
    BAD("0\r\nA\n"),
    BAD("0\r\nA\0"),
    BAD("0\r\nA: b\n"),
    BAD("0\r\nA: b\rc"),
    BAD("0\r\nA: b\r\r"),
    BAD("0\r\nA: \0"),
    BAD("0\r\nA: \x7f"),
    BAD("0\r\nA: b\r\n "),
    BAD("0\r\nA: b\r\n\n"),
    BAD("0\r\nGET "),
};

/* A copy of exactly n bytes, so that the sanitizer sees one byte too far. */
static enum body_status
give(struct body *bd, const char *bytes, size_t n, size_t *used)
{
	SCOPED(free_at) char *copy = malloc(n + (n == 0));
	enum body_status status;

	assert_non_null(copy);
	memcpy(copy, bytes, n);
	status = body_skip(bd, copy, n, used);
	return status;
}

/* Whole, with a request behind it; in two pieces, cut anywhere; byte by byte. */
static void
expect_end(struct body begin, const char *bytes, size_t len)
{
	SCOPED(free_at) char *text = malloc(len + sizeof(NEXT));
	struct body bd;
	size_t used, at;

	assert_non_null(text);
	memcpy(text, bytes, len);
	memcpy(text + len, NEXT, sizeof(NEXT));
	for (size_t cut = 0; cut < len; cut++) {
		bd = begin;
		if (give(&bd, text, cut, &used) != BODY_MORE || used != cut)
			fail_msg("\"%s\" cut at %zu", text, cut);
		if (give(&bd, text + cut, len - cut + sizeof(NEXT), &used) !=
			BODY_END ||
		    used != len - cut)
			fail_msg("\"%s\" behind %zu", text, cut);
		assert_true(body_ended(&bd));
	}
	bd = begin;
	for (at = 0; at < len; at++) {
		assert_false(body_ended(&bd));
		give(&bd, text + at, 1, &used);
		assert_int_equal(used, 1);
	}
	assert_true(body_ended(&bd));
	assert_int_equal(give(&bd, NEXT, 5, &used), BODY_END);
	assert_int_equal(used, 0);
}

TEST(chunks_end_where_the_next_request_begins)
{
	for (size_t i = 0; i < COUNT(good); i++)
		expect_end(body_chunked(), good[i], strlen(good[i]));
}

TEST(sized_body_ends_where_the_next_request_begins)
{
	struct body bd = body_sized(0);
	size_t used;

	assert_true(body_ended(&bd));
	assert_int_equal(give(&bd, NEXT, 5, &used), BODY_END);
	assert_int_equal(used, 0);
	expect_end(body_sized(1), "x", 1);
	expect_end(body_sized(5), "0\r\n\r\n", 5);
}

TEST(a_malformed_chunk_is_refused_at_once_and_for_ever)
{
	for (size_t i = 0; i < COUNT(bad); i++) {
		size_t len = bad[i].len, used;

		for (size_t cut = 0; cut < len; cut++) {
			struct body bd = body_chunked();

			if (give(&bd, bad[i].bytes, cut, &used) != BODY_MORE)
				fail_msg("%zu: bad before byte %zu", i, cut);
			if (give(&bd, bad[i].bytes + cut, len - cut, &used) !=
			    BODY_BAD)
				fail_msg("%zu: not bad behind %zu", i, cut);
			assert_int_equal(
			    give(&bd, "\r\n" END, 7, &used), BODY_BAD);
			assert_int_equal(used, 0);
			assert_false(body_ended(&bd));
		}
	}
}

/* count times the same bytes; the status of the last call. */
static enum body_status
repeat(struct body *bd, const char *bytes, size_t count)
{
	enum body_status status = BODY_MORE;
	size_t used;

	for (size_t i = 0; i < count && status == BODY_MORE; i++)
		status = body_skip(bd, bytes, strlen(bytes), &used);
	return status;
}

static enum body_status
data_of(size_t chunks, size_t more)
{
	struct body bd = body_chunked();
	char size[32];
	enum body_status status = repeat(&bd, "1\r\nx\r\n", chunks);

	snprintf(size, sizeof(size), "%zx\r\n", more);
	if (status == BODY_MORE)
		status = repeat(&bd, size, 1);
	if (status == BODY_MORE)
		status = repeat(&bd, "x", more);
	if (status == BODY_MORE)
		status = repeat(&bd, "\r\n" END, 1);
	return status;
}

TEST(data_of_all_chunks_is_bounded)
{
	assert_int_equal(data_of(0, BODY_DATA), BODY_END);
	assert_int_equal(data_of(0, BODY_DATA + 1), BODY_BAD);
	assert_int_equal(data_of(BODY_DATA - 1, 1), BODY_END);
	assert_int_equal(data_of(BODY_DATA - 1, 2), BODY_BAD);
	assert_int_equal(data_of(1, UINT32_MAX), BODY_BAD);
	assert_int_equal(data_of(1, UINT64_MAX), BODY_BAD);
	assert_int_equal(data_of(BODY_DATA, 1), BODY_BAD);
}

static enum body_status
padded(const char *before, const char *byte, size_t count, const char *behind)
{
	struct body bd = body_chunked();
	enum body_status status = repeat(&bd, before, 1);

	if (status == BODY_MORE)
		status = repeat(&bd, byte, count);
	return status == BODY_MORE ? repeat(&bd, behind, 1) : status;
}

/* The CR that ends an extension counts as well, and so does that of the last line. */
TEST(chunk_extensions_and_trailers_are_bounded)
{
	size_t most = BODY_EXTRA - 1;

	assert_int_equal(
	    padded("1;", "a", most - 2, "\r\nx\r\n" END), BODY_END);
	assert_int_equal(
	    padded("1;", "a", most - 1, "\r\nx\r\n" END), BODY_BAD);
	assert_int_equal(
	    padded("1;a=\"", "\\a", most, "\"\r\nx\r\n" END), BODY_BAD);
	assert_int_equal(padded("0", "0", most, "\r\n\r\n"), BODY_END);
	assert_int_equal(padded("0", "0", most + 2, ""), BODY_BAD);
	assert_int_equal(
	    padded("0\r\nA:", "a", most - 4, "\r\n\r\n"), BODY_END);
	assert_int_equal(
	    padded("0\r\nA:", "a", most - 3, "\r\n\r\n"), BODY_BAD);
	assert_int_equal(padded("0\r\n", "A:\r\n", most / 4, "\r\n"), BODY_END);
	assert_int_equal(
	    padded("0\r\n", "A:\r\n", most / 4 + 1, "\r\n"), BODY_BAD);
	assert_int_equal(padded("", "1;a\r\nx\r\n", most / 3, END), BODY_END);
	assert_int_equal(
	    padded("", "1;a\r\nx\r\n", most / 3 + 1, END), BODY_BAD);
}
