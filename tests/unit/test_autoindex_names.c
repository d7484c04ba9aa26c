/*
 * Names in pages of directories (server/content/autoindex_html.h): every name that a directory can hold is
 * shown harmlessly and its link leads back to it.
 */
#include "autoindex_fixture.h"

#define REPLACED "\xef\xbf\xbd"

/* As a browser would send it: to the name, without the slash before it. */
static void
decode(const struct seen *row, char *name)
{
	char raw[1024], buf[1024];
	struct target tgt;
	size_t len = row->row_href_len + 1;

	raw[0] = '/';
	memcpy(raw + 1, row->row_href, row->row_href_len);
	assert_int_equal(
	    target_parse((struct str){raw, len}, buf, sizeof(buf), &tgt), 0);
	assert_null(tgt.tgt_query.s_ptr);
	assert_null(tgt.tgt_host.s_ptr);
	memcpy(name, tgt.tgt_path.s_ptr + 1, tgt.tgt_path.s_len);
}

/* What may stand in an attribute in double quotes, and in a request line. */
static void
assert_harmless(const char *href, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (href[i] <= ' ' || href[i] >= 0x7f ||
		    strchr("\"'<>&`\\:?#", href[i]) != NULL)
			fail_msg("%.*s", (int)len, href);
}

static const char *
shown_as(unsigned char c, char one[2])
{
	if (c == '&')
		return "&amp;";
	if (c == '<')
		return "&lt;";
	if (c == '>')
		return "&gt;";
	if (c == '"')
		return "&quot;";
	if (c < 0x20 || c >= 0x7f)
		return REPLACED;
	one[0] = (char)c;
	one[1] = '\0';
	return one;
}

static void
assert_shown(const struct seen *row, unsigned char c)
{
	char expected[32], one[2];
	int n = snprintf(expected, sizeof(expected), "a%sb", shown_as(c, one));

	assert_int_equal(row->row_text_len, n);
	assert_memory_equal(row->row_text, expected, (size_t)n);
}

static bool
make_names(void)
{
	char name[4] = "a?b";
	int c, fd;

	for (c = 1; c < 256; c++) {
		if (c == '/')
			continue;
		name[1] = (char)c;
		fd = open(path_in(name), O_WRONLY | O_CREAT, 0600);
		if (fd == -1)
			return false;
		close(fd);
	}
	return true;
}

TEST(a_name_with_any_byte_is_escaped_and_its_link_leads_back)
{
	unsigned seen[256] = {0};
	struct seen row;
	char *page, name[1024];
	const char *p;
	int c;

	if (!make_names()) {
		print_message("not every byte can be in a name here\n");
		skip();
	}
	p = page = page_of(".", "/", false);
	while (next_row(&p, &row)) {
		assert_harmless(row.row_href, row.row_href_len);
		decode(&row, name);
		assert_int_equal(strlen(name), 3);
		assert_int_equal(name[0], 'a');
		assert_int_equal(name[2], 'b');
		seen[(unsigned char)name[1]]++;
		assert_shown(&row, (unsigned char)name[1]);
	}
	for (c = 1; c < 256; c++)
		assert_int_equal(seen[c], c != '/');
	free(page);
}

TEST(a_link_is_never_a_scheme_nor_a_way_out)
{
	static const char *const names[] = {"javascript:alert(1)",
	    "http:", "..a", "...", "~", "%2e%2e", "%", "a%", "-", "*", "?",
	    "#"};
	char *page, name[1024];
	unsigned seen = 0;
	struct seen row;
	const char *p;

	for (size_t i = 0; i < COUNT(names); i++)
		touch(names[i]);
	p = page = page_of(".", "/", true);
	while (next_row(&p, &row)) {
		assert_harmless(row.row_href, row.row_href_len);
		decode(&row, name);
		for (size_t i = 0; i < COUNT(names); i++)
			seen += strcmp(name, names[i]) == 0;
	}
	assert_int_equal(seen, COUNT(names));
	free(page);
}

TEST(the_longest_name_has_a_whole_link)
{
	char name[256], decoded[1024], *page;
	struct seen row;
	const char *p;

	memset(name, 0xff, 255);
	name[255] = '\0';
	touch(name);
	p = page = page_of(".", "/", false);
	assert_true(next_row(&p, &row));
	decode(&row, decoded);
	assert_string_equal(decoded, name);
	free(page);
}

static const struct {
	const char *name, *text;
} texts[] = {
    /* text of two, three and four bytes */
    {"\xc3\xa9", "\xc3\xa9"},
    {"x\xc2\x80", "x\xc2\x80"},
    {"\xe2\x82\xac", "\xe2\x82\xac"},
    {"\xf0\x9f\x90\xa2", "\xf0\x9f\x90\xa2"},
    {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
    /* overlong, a surrogate, beyond the last character */
    {"\xe0\x80\xaf", REPLACED REPLACED REPLACED},
    {"\xed\xa0\x80", REPLACED REPLACED REPLACED},
    {"\xf0\x80\x80\xaf", REPLACED REPLACED REPLACED REPLACED},
    {"\xf4\x90\x80\x80", REPLACED REPLACED REPLACED REPLACED},
    {"caf\xc3\xa9 & <b>", "caf\xc3\xa9 &amp; &lt;b&gt;"},
    /* Latin-1, a byte alone, a sequence that is cut */
    {"caf\xe9", "caf" REPLACED},
    {"\x80", REPLACED},
    {"\xbf-", REPLACED "-"},
    {"\xc3", REPLACED},
    {"\xe2\x82", REPLACED REPLACED},
    {"\xe2\x82<", REPLACED REPLACED "&lt;"},
    {"\xf0\x9f\x90", REPLACED REPLACED REPLACED},
    /* never begins a sequence: overlong, behind the last code point */
    {"\xc0\xaf", REPLACED REPLACED},
    {"\xc1\xbf", REPLACED REPLACED},
    {"\xf5\x80\x80\x80", REPLACED REPLACED REPLACED REPLACED},
    {"\xfe", REPLACED},
    {"\xff<", REPLACED "&lt;"},
};

TEST(what_is_not_utf_8_is_replaced)
{
	unsigned seen = 0;
	char *page, name[1024];
	struct seen row;
	const char *p;
	size_t i;

	for (i = 0; i < COUNT(texts); i++)
		touch(texts[i].name);
	p = page = page_of(".", "/", false);
	while (next_row(&p, &row)) {
		decode(&row, name);
		for (i = 0; strcmp(name, texts[i].name) != 0; i++)
			assert_true(i + 1 < COUNT(texts));
		assert_int_equal(row.row_text_len, strlen(texts[i].text));
		assert_memory_equal(
		    row.row_text, texts[i].text, row.row_text_len);
		seen++;
	}
	assert_int_equal(seen, COUNT(texts));
	free(page);
}

/* fsspec takes each of them for an address. */
TEST(only_a_name_like_an_address_has_a_dot_before_it)
{
	SCOPED(free_at) char *page;

	touch("http.csv");
	touch("https:x");
	touch("htt");
	touch("a:b");
	page = page_of(".", "/", false);
	assert_non_null(strstr(page, "<a href=\"./http.csv\""));
	assert_non_null(strstr(page, "<a href=\"./https%3Ax\""));
	assert_non_null(strstr(page, "<a href=\"htt\""));
	assert_non_null(strstr(page, "<a href=\"a%3Ab\""));
}
