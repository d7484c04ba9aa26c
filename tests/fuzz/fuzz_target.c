/*
 * server/http/target.h against a naive decoding, segment by segment; and what is decoded,
 * encoded and decoded again stays what it is.
 * Input: the target.
 */
#include "fuzz.h"
#include "server/http/head.h"
#include "server/http/target.h"

/* A path as a list of segments, in order; the texts are in one buffer. */
struct segments {
	char *sg_text[4096];
	size_t sg_count;
	bool sg_slash; /* ends with one */
};

/* False: a bad escape, or a NUL. */
static bool
decode(struct str raw, char *out)
{
	char digits[3] = "";

	for (size_t i = 0; i < raw.s_len; i++, out++) {
		*out = raw.s_ptr[i];
		if (*out == '%') {
			if (raw.s_len - i < 3)
				return false;
			memcpy(digits, raw.s_ptr + i + 1, 2);
			if (strspn(digits, "0123456789abcdefABCDEF") != 2)
				return false;
			*out = (char)strtoul(digits, NULL, 16);
			i += 2;
		}
		if (*out == '\0')
			return false;
	}
	*out = '\0';
	return true;
}

/* Cuts text up; false: it climbs out. */
static bool
split(char *text, struct segments *sg)
{
	char *segment;

	*sg = (struct segments){0};
	while ((segment = strsep(&text, "/")) != NULL) {
		sg->sg_slash = strcmp(segment, "") == 0 ||
			       strcmp(segment, ".") == 0 ||
			       strcmp(segment, "..") == 0;
		if (!sg->sg_slash)
			sg->sg_text[sg->sg_count++] = segment;
		else if (segment[0] == '.' && segment[1] == '.' &&
			 sg->sg_count-- == 0)
			return false;
	}
	return true;
}

static void
check_path(const struct segments *sg, const struct target *tgt)
{
	const char *p = tgt->tgt_path.s_ptr;
	bool dotfile = false;
	size_t i, len;

	CHECK(strlen(p) == tgt->tgt_path.s_len && *p == '/');
	for (i = 0; i < sg->sg_count; i++) {
		len = strlen(sg->sg_text[i]);
		CHECK(*p++ == '/' && strncmp(p, sg->sg_text[i], len) == 0);
		p += len;
		dotfile |=
		    sg->sg_text[i][0] == '.' &&
		    (i > 0 || strcmp(sg->sg_text[0], ".well-known") != 0);
	}
	CHECK(strcmp(p, sg->sg_slash || sg->sg_count == 0 ? "/" : "") == 0);
	CHECK(tgt->tgt_dotfile == dotfile);
	CHECK(strstr(tgt->tgt_path.s_ptr, "//") == NULL);
	CHECK(strstr(tgt->tgt_path.s_ptr, "/../") == NULL);
}

/* What a redirect or a link would say leads to the same path, and no further. */
static void
check_encoding(struct str path)
{
	size_t room, len = target_encode(path, NULL, 0);
	char *buf = malloc(len + 1), *part, *again = malloc(len + 2);
	struct target tgt;

	CHECK(buf != NULL && again != NULL);
	CHECK(target_encode(path, buf, len + 1) == len && strlen(buf) == len);
	CHECK(strspn(buf, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			  "0123456789-._~/!$()*+,;=@%") == len);
	CHECK(target_parse((struct str){buf, len}, again, len + 2, &tgt) == 0);
	CHECK(str_eq(tgt.tgt_path, path) && tgt.tgt_query.s_ptr == NULL);
	room = len / 2 + 1;
	part = malloc(room);
	CHECK(part != NULL && target_encode(path, part, room) == len);
	CHECK(strncmp(part, buf, strlen(part)) == 0);
	CHECK(strlen(part) + 3 >= room && strlen(part) < room);
	CHECK(strrchr(part, '%') == NULL || strlen(strrchr(part, '%')) > 2);
	free(part);
	free(again);
	free(buf);
}

/* What is before the path; false: no form that we have. */
static bool
take_origin(struct str *raw, struct str *host)
{
	size_t scheme = 0, n;

	*host = (struct str){NULL, 0};
	if (raw->s_len > 0 && raw->s_ptr[0] == '/')
		return true;
	if (raw->s_len >= 7 && strncasecmp(raw->s_ptr, "http://", 7) == 0)
		scheme = 7;
	if (raw->s_len >= 8 && strncasecmp(raw->s_ptr, "https://", 8) == 0)
		scheme = 8;
	if (scheme == 0)
		return false;
	for (n = scheme; n < raw->s_len; n++)
		if (strchr("/?", raw->s_ptr[n]) != NULL &&
		    raw->s_ptr[n] != '\0')
			break;
	*host = (struct str){raw->s_ptr + scheme, n - scheme};
	raw->s_ptr += n;
	raw->s_len -= n;
	return head_host_valid(*host);
}

static bool
naive(struct str raw, char *text, struct segments *sg, struct target *tgt)
{
	struct str path;

	*tgt = (struct target){.tgt_asterisk = str_eq(raw, STR("*"))};
	if (tgt->tgt_asterisk)
		raw = STR("/");
	if (memchr(raw.s_ptr, '#', raw.s_len) != NULL ||
	    !take_origin(&raw, &tgt->tgt_host))
		return false;
	path = fuzz_until(&raw, '?');
	if (raw.s_ptr > path.s_ptr + path.s_len)
		tgt->tgt_query = raw;
	return decode(path, text) && split(text, sg);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct segments sg;
	struct str raw = fuzz_input(data, size);
	char *text, *buf;
	struct target tgt, expected;
	bool good;
	int status;

	if (size > COUNT(sg.sg_text) - 2)
		return 0;
	text = malloc(size + 2);
	buf = malloc(size + 2);
	CHECK(text != NULL && buf != NULL);
	CHECK(target_parse(raw, buf, size + 1, &tgt) == 414);
	status = target_parse(raw, buf, size + 2, &tgt);
	good = naive(raw, text, &sg, &expected);
	CHECK(status == (good ? 0 : 400));
	if (good) {
		CHECK(tgt.tgt_asterisk == expected.tgt_asterisk);
		CHECK(fuzz_same(tgt.tgt_host, expected.tgt_host));
		CHECK(fuzz_same(tgt.tgt_query, expected.tgt_query));
		check_path(&sg, &tgt);
		check_encoding(tgt.tgt_path);
	}
	free(buf);
	free(text);
	return 0;
}
