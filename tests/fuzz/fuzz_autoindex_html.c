/*
 * server/content/autoindex_html.h: names in a listing are text, whatever is in them, and their links
 * lead to them.
 * Input: "DIRECTORY\n" and a name.
 */
#include "fuzz.h"
#include "server/content/autoindex_html.h"
#include "server/http/target.h"
#include "server/util/utf8.h"

#define NAME_MOST 255

/* Takes the very text. */
static const char *
skip(const char *p, const char *text)
{
	CHECK(strncmp(p, text, strlen(text)) == 0);
	return p + strlen(text);
}

/* What a reader sees of the bytes: as they are, or U+FFFD. */
static char *
visible(const char *name)
{
	char *out = calloc(strlen(name) + 1, 3), *p = out;
	size_t n, len = strlen(name);
	uint32_t c;

	CHECK(out != NULL);
	for (; len > 0; name += n, len -= n) {
		n = utf8_decode(name, len, &c);
		if (n == 0 || *name == 0x7f || (*name > 0 && *name < 0x20)) {
			n = 1;
			p = stpcpy(p, "\xef\xbf\xbd");
		} else {
			memcpy(p, name, n);
			p += n;
		}
	}
	return out;
}

/* Text of HTML up to the next tag, against what it should say; takes it. */
static const char *
skip_text(const char *p, const char *expected)
{
	static const struct {
		const char *code;
		char c;
	} codes[] = {
	    {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}};
	size_t i, n;
	char c;

	for (; *p != '<'; p += n, expected++) {
		CHECK(*p != '\0' && *p != '>' && *p != '"');
		c = *p;
		n = 1;
		for (i = 0; c == '&' && i < COUNT(codes); i++)
			if (strncmp(p, codes[i].code, strlen(codes[i].code)) ==
			    0) {
				n = strlen(codes[i].code);
				c = codes[i].c;
				break;
			}
		CHECK(*p != '&' || n > 1);
		CHECK(c == *expected);
	}
	CHECK(*expected == '\0');
	return p;
}

/* A link as a browser follows it, from "/dir/". */
static const char *
skip_href(const char *p, const char *name)
{
	const char *end = strchr(p, '"');
	char target[3 * NAME_MOST + 16], path[sizeof(target) + 2];
	struct target tgt;

	CHECK(end != NULL && (size_t)(end - p) < 3 * NAME_MOST + 2);
	snprintf(target, sizeof(target), "/dir/%.*s", (int)(end - p), p);
	CHECK(target_parse(fuzz_str(target), path, sizeof(path), &tgt) == 0);
	CHECK(tgt.tgt_query.s_ptr == NULL);
	CHECK(strcmp(skip(path, "/dir/"), name) == 0);
	return end;
}

static const char *
check_row(const char *p, const char *name)
{
	char *text = visible(name);

	p = skip(p, "<tr><td><a href=\"");
	p = skip_href(p, name);
	p = skip(p, "\" dir=auto>");
	p = skip_text(p, text);
	p = skip(p, "</a><td><time datetime=1994-11-06T08:49:37Z>"
		    "1994-11-06 08:49</time> <td title=\"7 bytes\">7 B\n");
	free(text);
	return p;
}

/* Of the way to the directory: nothing else leads anywhere. */
static const char *
skip_tag(const char *p)
{
	const char *end;

	if (strncmp(p, "<bdi>", 5) == 0 || strncmp(p, "</a>", 4) == 0 ||
	    strncmp(p, "</bdi>", 6) == 0)
		return strchr(p, '>') + 1;
	p = skip(p, "<a dir=auto href=\"/");
	end = strchr(p, '"');
	CHECK(end != NULL && end[-1] == '/');
	CHECK(strcspn(p, " <>&'`\\?#:") >= (size_t)(end - p));
	return skip(end, "\">");
}

/* The parts of the path are the path. */
static const char *
skip_heading(const char *p, const char *title)
{
	char *text = calloc(strlen(p) + 2, 1), *end = text;

	CHECK(text != NULL);
	while (strncmp(p, "</h1>", 5) != 0) {
		CHECK(*p != '\0');
		if (*p == '<')
			p = skip_tag(p);
		else
			*end++ = *p++;
	}
	*end = '<';
	skip_text(text, title);
	free(text);
	return p;
}

static void
check_page(const char *p, const char *title, const char *name)
{
	static const char up[] = "<tr><td><a href=\"../\">../</a>\n";
	char *text = visible(title);

	p = strstr(p, "<title>");
	CHECK(p != NULL);
	p = skip_text(skip(p, "<title>Index of "), text);
	p = strstr(skip(p, "</title>"), "<h1>");
	CHECK(p != NULL);
	p = skip(skip_heading(skip(p, "<h1>"), text), "</h1>\n<table id=list>");
	p = strstr(p, "<tr><td><a href=\"");
	CHECK(p != NULL);
	if (strncmp(p, up, strlen(up)) == 0)
		p += strlen(up);
	CHECK(strcmp(check_row(p, name), "</table>\n</body></html>\n") == 0);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size), line = fuzz_line(&in);
	char *text = fuzz_text(line), *title, *name = fuzz_text(in);
	struct row row = {.row_name = name,
	    .row_known = true,
	    .row_size = 7,
	    .row_mtime = 784111777};
	struct buf_list none = {0};
	struct buf b = {0};

	/* As target_parse gives it. */
	CHECK(asprintf(&title, "%s%s", *text == '/' ? "" : "/", text) >= 0);
	free(text);
	/* What readdir(3) gives, but for those that are left out. */
	if (in.s_len <= NAME_MOST && *name != '\0' &&
	    strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
	    strcmp(name, "..") != 0) {
		CHECK(buf_reserve(&b, &none, 2 * BUF_SIZE));
		autoindex_html_begin(&b, title);
		autoindex_html_table(&b, title, &(struct view){0});
		autoindex_html_row(&b, &row);
		autoindex_html_end(&b);
		buf_add(&b, &none, "", 1);
		CHECK(!b.b_failed);
		check_page(b.b_data, title, name);
		free(b.b_data);
	}
	free(name);
	free(title);
	return 0;
}
