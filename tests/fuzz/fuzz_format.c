/*
 * server/log/format.h: no field can end a line or a quoted text, and what was logged can
 * be told from the line.
 * Input: "REPEAT LINE REFERER AGENT HOST USER\n", lengths, -1 for absent; then the
 * five texts, each word of them so many times.
 */
#include "fuzz.h"
#include "server/log/format.h"
#include "server/util/utf8.h"

enum { LINE, REFERER, AGENT, HOST, USER, TEXTS };

/* Words are repeated, not the spaces between them: those of a line mean something. */
static struct str
take(struct str *in, size_t len, size_t repeat)
{
	struct str part = {in->s_ptr, len < in->s_len ? len : in->s_len}, word;
	char *text = malloc(part.s_len * repeat + 1), *p = text;

	CHECK(text != NULL);
	in->s_ptr += part.s_len;
	in->s_len -= part.s_len;
	while (part.s_len > 0) {
		word = fuzz_until(&part, ' ');
		for (size_t i = 0; i < repeat; i++)
			p = mempcpy(p, word.s_ptr, word.s_len);
		if (word.s_ptr + word.s_len < part.s_ptr)
			*p++ = ' ';
	}
	return (struct str){text, (size_t)(p - text)};
}

static struct str
cut(struct str s)
{
	if (s.s_len > FORMAT_FIELD)
		s.s_len = FORMAT_FIELD;
	return s;
}

/* Takes the very text. */
static void
skip(struct str *s, const char *text)
{
	size_t len = strlen(text);

	CHECK(s->s_len >= len && memcmp(s->s_ptr, text, len) == 0);
	s->s_ptr += len;
	s->s_len -= len;
}

static void
skip_number(struct str *s, const char *before, uint64_t number)
{
	char text[64];

	snprintf(
	    text, sizeof(text), "%s%llu", before, (unsigned long long)number);
	skip(s, text);
}

static int
hex_value(const char *p, size_t digits)
{
	char text[5] = "";

	memcpy(text, p, digits);
	CHECK(strspn(text, "0123456789ABCDEF") == digits);
	return (int)strtol(text, NULL, 16);
}

/* The bytes of "...", in which only \xHH is special; takes it. */
static void
skip_quoted(struct str *s, struct str expected)
{
	size_t n = 0;
	char c;

	if (expected.s_len == 0)
		expected = STR("-");
	for (skip(s, "\""); CHECK(s->s_len > 0), *s->s_ptr != '"'; n++) {
		c = *s->s_ptr;
		CHECK(c >= 0x20 && c <= 0x7e && n < expected.s_len);
		if (c == '\\') {
			CHECK(s->s_len > 4 && s->s_ptr[1] == 'x');
			c = (char)hex_value(s->s_ptr + 2, 2);
			s->s_ptr += 3;
			s->s_len -= 3;
		}
		CHECK(c == expected.s_ptr[n]);
		s->s_ptr++;
		s->s_len--;
	}
	CHECK(n == expected.s_len);
	skip(s, "\"");
}

/* The same without quotes: a space is special as well. */
static void
skip_user(struct str *s, struct str expected)
{
	size_t n = 0;
	char c;

	if (expected.s_len == 0)
		expected = STR("-");
	for (; CHECK(s->s_len > 0), *s->s_ptr != ' '; n++) {
		c = *s->s_ptr;
		CHECK(c > 0x20 && c <= 0x7e && n < expected.s_len && c != '"');
		if (c == '\\') {
			CHECK(s->s_len > 4 && s->s_ptr[1] == 'x');
			c = (char)hex_value(s->s_ptr + 2, 2);
			str_advance(s, 3);
		}
		CHECK(c == expected.s_ptr[n]);
		str_advance(s, 1);
	}
	CHECK(n == expected.s_len);
}

static void
check_combined(struct str s, const struct log_record *rec, const char *time)
{
	skip(&s, "- - ");
	skip_user(&s, cut(rec->rec_user));
	skip(&s, " ");
	skip(&s, time);
	skip(&s, " ");
	skip_quoted(&s, cut(rec->rec_texts.qt_line));
	skip_number(&s, " ", (uint64_t)rec->rec_status);
	skip_number(&s, " ", rec->rec_body);
	skip(&s, " ");
	skip_quoted(&s, cut(rec->rec_texts.qt_referer));
	skip(&s, " ");
	skip_quoted(&s, cut(rec->rec_texts.qt_agent));
	skip_number(&s, " ", rec->rec_bytes);
	skip_number(&s, " ", rec->rec_duration);
	skip_number(&s, " ", rec->rec_wait);
	skip(&s, "\n");
	CHECK(s.s_len == 0);
}

/* ---------------------------------------------------------------------- JSON */

/* One UTF-16 unit or plain character of a JSON string (RFC 8259, 7); takes it. */
static uint32_t
json_unit(struct str *s)
{
	uint32_t c = (unsigned char)*s->s_ptr;
	size_t n = 1;

	CHECK(c >= 0x20 && c <= 0x7e);
	if (c == '\\') {
		CHECK(s->s_len > 1 && strchr("\"\\u", s->s_ptr[1]) != NULL &&
		      s->s_ptr[1] != '\0');
		c = (unsigned char)s->s_ptr[1];
		n = 2;
		if (c == 'u') {
			CHECK(s->s_len > 6);
			c = (uint32_t)hex_value(s->s_ptr + 2, 4);
			CHECK(c >= 0x80);
			n = 6;
		}
	}
	s->s_ptr += n;
	s->s_len -= n;
	return c;
}

static uint32_t
json_character(struct str *s)
{
	uint32_t low, c = json_unit(s);

	if (c < 0xd800 || c > 0xdfff)
		return c;
	CHECK(c < 0xdc00 && s->s_len > 0);
	low = json_unit(s);
	CHECK(low >= 0xdc00 && low <= 0xdfff);
	return 0x10000 + ((c - 0xd800) << 10 | (low - 0xdc00));
}

static size_t
utf8_encode(uint32_t c, char out[static 4])
{
	size_t i, n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned first[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (i = n - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(first[n] | c);
	return n;
}

/* The bytes that a character of the parsed text stands for; takes \xHH whole. */
static size_t
json_bytes(struct str *s, char out[static 4])
{
	uint32_t c = json_character(s);
	char digits[2];

	if (c != '\\')
		return utf8_encode(c, out);
	CHECK(json_unit(s) == 'x');
	digits[0] = (char)json_unit(s);
	digits[1] = (char)json_unit(s);
	out[0] = (char)hex_value(digits, 2);
	return 1;
}

static void
skip_json(struct str *s, const char *key, struct str expected)
{
	size_t n, done = 0;
	char bytes[4];

	skip(s, key);
	if (expected.s_ptr == NULL) {
		skip(s, "null");
		return;
	}
	for (skip(s, "\""); CHECK(s->s_len > 0), *s->s_ptr != '"'; done += n) {
		n = json_bytes(s, bytes);
		CHECK(n <= expected.s_len - done);
		CHECK(memcmp(bytes, expected.s_ptr + done, n) == 0);
	}
	CHECK(done == expected.s_len);
	skip(s, "\"");
}

static void
skip_json_line(struct str *s, struct str line)
{
	const struct str absent = {NULL, 0};
	struct str rest = line, parts[3];
	size_t i, spaces = 0;

	for (i = 0; i < line.s_len; i++)
		spaces += line.s_ptr[i] == ' ';
	for (i = 0; i < COUNT(parts); i++)
		parts[i] = spaces == 2 ? fuzz_until(&rest, ' ') : absent;
	if (spaces != 2 && line.s_len > 0)
		parts[1] = line;
	skip_json(s, ",\"method\":", cut(parts[0]));
	skip_json(s, ",\"target\":", cut(parts[1]));
	skip_json(s, ",\"protocol\":", cut(parts[2]));
}

static void
check_json(struct str s, const struct log_record *rec)
{
	skip(&s, "{\"time\":\"1994-11-06T08:49:37Z\",\"remote\":\"-\"");
	skip_json(&s, ",\"user\":", cut(rec->rec_user));
	skip_json_line(&s, rec->rec_texts.qt_line);
	skip_number(&s, ",\"status\":", (uint64_t)rec->rec_status);
	skip_number(&s, ",\"bytes\":", rec->rec_bytes);
	skip_number(&s, ",\"body_bytes\":", rec->rec_body);
	skip_json(&s, ",\"referer\":", cut(rec->rec_texts.qt_referer));
	skip_json(&s, ",\"user_agent\":", cut(rec->rec_texts.qt_agent));
	skip_json(&s, ",\"host\":", cut(rec->rec_texts.qt_host));
	skip_number(&s, ",\"duration_us\":", rec->rec_duration);
	skip_number(&s, ",\"disk_wait_us\":", rec->rec_wait);
	skip(&s, "}\n");
	CHECK(s.s_len == 0);
}

/* -------------------------------------------------------------------- all */

static void
check_message(struct str text)
{
	char *buf = malloc(FORMAT_MESSAGE);
	size_t i, len;

	CHECK(buf != NULL);
	len = format_message(buf, "warning: ", text);
	CHECK(len <= FORMAT_MESSAGE && buf[len - 1] == '\n');
	CHECK(memcmp(buf, "pagewise: warning: ", 19) == 0);
	for (i = 0; i < len - 1; i++)
		CHECK(buf[i] >= 0x20 && buf[i] <= 0x7e);
	free(buf);
}

/* Into memory of the size that format_bound asks for. */
static void
check(const struct log_record *rec, enum log_format format)
{
	static struct stamp stamps[2][FORMAT_STAMPS];
	char *buf = malloc(format_bound(rec, format));
	struct str out = {buf, 0};

	CHECK(buf != NULL);
	out.s_len = format_access(buf, rec, format, stamps[format]);
	if (format == LOG_JSON)
		check_json(out, rec);
	else
		check_combined(
		    out, rec, format_stamp(stamps[format], rec->rec_time));
	free(buf);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size), line = fuzz_line(&in);
	size_t repeat = fuzz_size(&line, 1, 1, 256);
	struct str texts[TEXTS] = {{NULL, 0}};
	struct log_record rec = {.rec_time = 784111777,
	    .rec_status = 200,
	    .rec_body = size * size,
	    .rec_bytes = size,
	    .rec_duration = ~(uint64_t)0 >> size % 64,
	    .rec_wait = (uint64_t)1 << size % 64};
	int64_t len;

	if (size > 4096)
		return 0;
	for (int i = 0; i < TEXTS; i++) {
		len = fuzz_number(&line, 16);
		if (len >= 0)
			texts[i] = take(&in, (size_t)len, repeat);
	}
	rec.rec_texts.qt_line = texts[LINE];
	rec.rec_texts.qt_referer = texts[REFERER];
	rec.rec_texts.qt_agent = texts[AGENT];
	rec.rec_texts.qt_host = texts[HOST];
	rec.rec_user = texts[USER];
	check(&rec, LOG_COMBINED);
	check(&rec, LOG_JSON);
	check_message(in);
	for (int i = 0; i < TEXTS; i++)
		free((char *)(uintptr_t)texts[i].s_ptr);
	return 0;
}
