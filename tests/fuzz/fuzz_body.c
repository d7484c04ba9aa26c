/*
 * server/http/body.h against a regular expression for the grammar of RFC 9112, 7.1, chunk by
 * chunk; and the result is the same however the bytes are cut.
 * Input: "PIECE ...\n" and a body in chunks, with what follows it.
 */
#include <regex.h>

#include "fuzz.h"
#include "server/http/body.h"

#define TOKEN "[0-9A-Za-z!#$%&'*+.^_`|~-]+"
#define QUOTED \
	"\"([^\x01-\x08\x0a-\x1f\x7f\"\\]|\\\\[^\x01-\x08\x0a-\x1f\x7f])*\""
#define BWS	"[ \t]*"
#define EXT	"(" BWS ";" BWS TOKEN "(" BWS "=" BWS "(" TOKEN "|" QUOTED "))?)*"
#define SIZE	"^(0*)([0-9A-Fa-f]*)(" EXT ")\r\n"
#define TRAILER "^" TOKEN ":[^\x01-\x08\x0a-\x1f\x7f]*\r\n"

/* Bytes of the body, or 0 if text begins with none. */
static size_t
match(const char *pattern, const char *text, regmatch_t *m, size_t n)
{
	static struct {
		const char *pattern;
		regex_t regex;
	} known[2];
	size_t i = known[0].pattern != NULL && known[0].pattern != pattern;

	if (known[i].pattern == NULL)
		CHECK(regcomp(&known[i].regex, pattern, REG_EXTENDED) == 0);
	known[i].pattern = pattern;
	return regexec(&known[i].regex, text, n, m, 0) == 0 ? (size_t)m[0].rm_eo
							    : 0;
}

static size_t
naive_trailers(const char *text, size_t extra)
{
	const char *at = text;
	regmatch_t m[1];
	size_t n;

	while ((n = match(TRAILER, at, m, 1)) > 0)
		at += n;
	extra += (size_t)(at - text) + 1;
	if (extra > BODY_EXTRA || strncmp(at, "\r\n", 2) != 0)
		return 0;
	return (size_t)(at - text) + 2;
}

/* Texts with a NUL are cut there, which no grammar allows outside of data. */
static size_t
naive_body(const char *text, size_t len)
{
	size_t at = 0, data = 0, extra = 0, n, size;
	regmatch_t m[4];

	for (;;) {
		n = match(SIZE, text + at, m, COUNT(m));
		if (n == 0 || (m[1].rm_eo == 0 && m[2].rm_so == m[2].rm_eo))
			return 0;
		/* With the CR that ends it. */
		extra += (size_t)(m[3].rm_eo - m[3].rm_so) +
			 (m[3].rm_eo > m[3].rm_so);
		size = m[2].rm_eo - m[2].rm_so > 8
			   ? SIZE_MAX
			   : strtoull(text + at + m[2].rm_so, NULL, 16);
		if (m[2].rm_so == m[2].rm_eo)
			size = 0;
		/* The last of several zeros is the size. */
		extra += (size_t)m[1].rm_eo - (size == 0);
		if (extra > BODY_EXTRA || size > BODY_DATA - data)
			return 0;
		at += n;
		if (size == 0)
			break;
		data += size;
		if (len - at < size + 2 ||
		    memcmp(text + at + size, "\r\n", 2) != 0)
			return 0;
		at += size + 2;
	}
	n = naive_trailers(text + at, extra);
	return n == 0 ? 0 : at + n;
}

static enum body_status
in_pieces(struct str in, struct str sizes, size_t *end)
{
	struct body bd = body_chunked();
	enum body_status status = BODY_MORE;
	struct str left = sizes;
	size_t used, n;
	char *copy;

	*end = 0;
	while (status == BODY_MORE && *end < in.s_len) {
		if (left.s_len == 0)
			left = sizes;
		n = fuzz_size(&left, in.s_len, 1, 4096);
		if (n > in.s_len - *end)
			n = in.s_len - *end;
		copy = fuzz_copy((struct str){in.s_ptr + *end, n});
		status = body_skip(&bd, copy, n, &used);
		free(copy);
		CHECK(used <= n && (status != BODY_MORE || used == n));
		CHECK(body_ended(&bd) == (status == BODY_END));
		*end += used;
	}
	return status;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size), line = fuzz_line(&in);
	struct body bd = body_chunked();
	char *text = fuzz_text(in);
	size_t used, end, expected = naive_body(text, in.s_len);
	enum body_status status = body_skip(&bd, in.s_ptr, in.s_len, &used);

	CHECK((status == BODY_END) == (expected > 0));
	CHECK(status != BODY_END || used == expected);
	CHECK(in_pieces(in, line, &end) == status && end == used);
	CHECK(in_pieces(in, STR("1"), &end) == status && end == used);
	free(text);
	return 0;
}
