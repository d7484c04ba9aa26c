/*
 * Directories as pages (server/content/autoindex_read.h, autoindex_html.h): every name that a directory can
 * hold is shown harmlessly and its link leads back to it.
 */
#include "lib/file/file.h"
#include "lib_fixture.h"

#include "server/content/autoindex_read.h"
#include "server/http/target.h"

#define REPLACED "\xef\xbf\xbd"
#define NBSP	 "\xc2\xa0"

/* Freed by the caller, after an error as well. */
static int
list_as(struct fixture *fx, const char *path, const char *title, bool dotfiles,
    struct buf *page)
{
	const struct place place = {.pl_root = fx->fx_root,
	    .pl_path = path,
	    .pl_title = title,
	    .pl_dotfiles = dotfiles};
	struct listing_validator lv;
	bool same;

	*page = (struct buf){0};
	return autoindex_read_whole(&place, page, &same, &lv);
}

/* NUL-terminated, for strstr; freed by the caller. */
static char *
page_of(struct fixture *fx, const char *path, const char *title, bool dotfiles)
{
	struct buf page;

	assert_int_equal(list_as(fx, path, title, dotfiles, &page), 0);
	assert_true(page.b_len < page.b_cap);
	page.b_data[page.b_len] = '\0';
	assert_int_equal(strlen(page.b_data), page.b_len);
	return page.b_data;
}

static void
touch(struct fixture *fx, const char *name)
{
	int fd = open(path_in(fx, name), O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	close(fd);
}

/* A row: its link as in the page, and the text that is seen. */
struct seen {
	const char *row_href, *row_text;
	size_t row_href_len, row_text_len;
};

/* Takes the next one; false when there is none.  Fails if it is no row. */
static bool
next_row(const char **page, struct seen *row)
{
	static const char start[] = "<tr><td><a href=\"";
	static const char middle[] = "\" dir=auto>";
	const char *p = strstr(*page, start), *end;

	if (p != NULL && strncmp(p + strlen(start), "../\"", 4) == 0)
		p = strstr(p + 1, start);
	if (p == NULL)
		return false;
	row->row_href = p + strlen(start);
	end = strstr(row->row_href, middle);
	assert_non_null(end);
	row->row_href_len = (size_t)(end - row->row_href);
	row->row_text = end + strlen(middle);
	end = strstr(row->row_text, "</a>");
	assert_non_null(end);
	row->row_text_len = (size_t)(end - row->row_text);
	*page = end;
	return true;
}

static unsigned
count_rows(const char *page)
{
	struct seen row;
	unsigned n = 0;

	while (next_row(&page, &row))
		n++;
	return n;
}

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
	size_t i;

	for (i = 0; i < len; i++)
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
	int n;

	n = snprintf(expected, sizeof(expected), "a%sb", shown_as(c, one));
	assert_int_equal(row->row_text_len, n);
	assert_memory_equal(row->row_text, expected, (size_t)n);
}

static bool
make_names(struct fixture *fx)
{
	char name[4] = "a?b";
	int c, fd;

	for (c = 1; c < 256; c++) {
		if (c == '/')
			continue;
		name[1] = (char)c;
		fd = open(path_in(fx, name), O_WRONLY | O_CREAT, 0600);
		if (fd == -1)
			return false;
		close(fd);
	}
	return true;
}

static void
a_name_with_any_byte_is_escaped_and_its_link_leads_back(void **state)
{
	struct fixture *fx = *state;
	unsigned seen[256] = {0};
	struct seen row;
	char *page, name[1024];
	const char *p;
	int c;

	if (!make_names(fx)) {
		print_message("not every byte can be in a name here\n");
		skip();
	}
	p = page = page_of(fx, ".", "/", false);
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

static void
a_link_is_never_a_scheme_nor_a_way_out(void **state)
{
	static const char *const names[] = {"javascript:alert(1)",
	    "http:", "..a", "...", "~", "%2e%2e", "%", "a%", "-", "*", "?",
	    "#"};
	struct fixture *fx = *state;
	char *page, name[1024];
	unsigned seen = 0;
	struct seen row;
	const char *p;
	size_t i;

	for (i = 0; i < COUNT(names); i++)
		touch(fx, names[i]);
	p = page = page_of(fx, ".", "/", true);
	while (next_row(&p, &row)) {
		assert_harmless(row.row_href, row.row_href_len);
		decode(&row, name);
		for (i = 0; i < COUNT(names); i++)
			seen += strcmp(name, names[i]) == 0;
	}
	assert_int_equal(seen, COUNT(names));
	free(page);
}

static void
the_longest_name_has_a_whole_link(void **state)
{
	struct fixture *fx = *state;
	char name[256], decoded[1024], *page;
	struct seen row;
	const char *p;

	memset(name, 0xff, 255);
	name[255] = '\0';
	touch(fx, name);
	p = page = page_of(fx, ".", "/", false);
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

static void
what_is_not_utf_8_is_replaced(void **state)
{
	struct fixture *fx = *state;
	unsigned seen = 0;
	char *page, name[1024];
	struct seen row;
	const char *p;
	size_t i;

	for (i = 0; i < COUNT(texts); i++)
		touch(fx, texts[i].name);
	p = page = page_of(fx, ".", "/", false);
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

static void
dot_files_are_hidden_unless_wanted(void **state)
{
	struct fixture *fx = *state;
	char *page;

	touch(fx, ".hidden");
	touch(fx, "..hidden");
	touch(fx, "not.hidden");
	assert_int_equal(mkdir(path_in(fx, ".git"), 0700), 0);
	page = page_of(fx, ".", "/", false);
	assert_int_equal(count_rows(page), 1);
	assert_non_null(strstr(page, "<a href=\"not.hidden\""));
	free(page);
	page = page_of(fx, ".", "/", true);
	assert_int_equal(count_rows(page), 4);
	assert_non_null(strstr(page, "\".hidden\""));
	assert_non_null(strstr(page, "\".git/\""));
	/* The directory itself and the one above are no names in it. */
	assert_null(strstr(page, "<a href=\"./"));
	assert_null(strstr(page, "<a href=\"../"));
	free(page);
}

static void
dot_files_that_are_named_are_shown(void **state)
{
	static char zarray[] = ".zarray", git[] = ".git";
	char *const names[] = {zarray, git, NULL};
	struct fixture *fx = *state;
	struct place place = {.pl_root = fx->fx_root,
	    .pl_path = ".",
	    .pl_title = "/",
	    .pl_dotnames = names};
	struct listing_validator lv;
	struct buf page = {0};
	bool same;

	touch(fx, ".zarray");
	touch(fx, ".zarray.tmp");
	touch(fx, ".z");
	assert_int_equal(mkdir(path_in(fx, ".git"), 0700), 0);
	assert_int_equal(autoindex_read_whole(&place, &page, &same, &lv), 0);
	page.b_data[page.b_len] = '\0';
	assert_int_equal(count_rows(page.b_data), 2);
	assert_non_null(strstr(page.b_data, "\".zarray\""));
	assert_non_null(strstr(page.b_data, "\".git/\""));
	free(page.b_data);
}

static void
an_empty_directory_has_a_page_without_names(void **state)
{
	struct fixture *fx = *state;
	char *page;

	assert_int_equal(mkdir(path_in(fx, "empty"), 0700), 0);
	page = page_of(fx, "empty", "/empty/", true);
	assert_int_equal(count_rows(page), 0);
	assert_non_null(strstr(page, "<bdi>empty</bdi>/</h1>"));
	assert_non_null(strstr(page, "</table>"));
	assert_non_null(strstr(page, "</html>"));
	free(page);
}

static void
only_the_root_has_no_way_up(void **state)
{
	struct fixture *fx = *state;
	char *page;

	page = page_of(fx, ".", "/", false);
	assert_null(strstr(page, "\"../\">"));
	free(page);
	page = page_of(fx, ".", "/x/", false);
	assert_non_null(strstr(page, "<a href=\"../\">../</a>"));
	free(page);
}

static void
each_directory_of_the_path_is_a_link(void **state)
{
	char *page;

	page = page_of(*state, ".", "/a/b c/\xff/", false);
	assert_non_null(strstr(page, "<h1><a dir=auto href=\"/./\">/</a>"
				     "<a dir=auto href=\"/a/\">a</a>/"
				     "<a dir=auto href=\"/a/b%20c/\">b c</a>/"
				     "<bdi>" REPLACED "</bdi>/</h1>"));
	free(page);
	page = page_of(*state, ".", "/", false);
	assert_non_null(strstr(page, "<h1><bdi></bdi>/</h1>"));
	free(page);
}

/* Else their text would be as long as the square of the path. */
static void
of_a_very_deep_path_only_the_beginning_has_links(void **state)
{
	char title[2002] = "/", *page;
	int i, links = 0;
	const char *p;

	for (i = 1; i < 2001; i += 2)
		memcpy(title + i, "x/", 2);
	page = page_of(*state, ".", title, false);
	assert_in_range(strlen(page), 2000, 64 * KIB);
	for (p = page; (p = strstr(p, "href=\"/")) != NULL; p++)
		links++;
	assert_in_range(links, 32, 100);
	free(page);
	/* Of long names as well. */
	memset(title + 1, 'x', sizeof(title) - 3);
	for (i = 200; i < 2000; i += 200)
		title[i] = '/';
	page = page_of(*state, ".", title, false);
	assert_non_null(strstr(page, "<h1><a dir=auto href=\"/./\">"));
	assert_in_range(strlen(page), 2000, 16 * KIB);
	free(page);
}

static void
sizes_are_shown_with_few_digits(void **state)
{
	static const struct {
		off_t size;
		const char *text;
	} t[] = {{0, ">0 B\n"}, {1, ">1 B\n"}, {1023, ">1023 B\n"},
	    {1024, ">1.0" NBSP "KiB\n"}, {1075, ">1.0" NBSP "KiB\n"},
	    {1127, ">1.1" NBSP "KiB\n"}, {102348, ">99.9" NBSP "KiB\n"},
	    {102350, ">100" NBSP "KiB\n"}, {1048063, ">1023" NBSP "KiB\n"},
	    {1048064, ">1.0" NBSP "MiB\n"},
	    {(off_t)5 << 30, ">5.0" NBSP "GiB\n"},
	    {(off_t)1 << 42, ">4.0" NBSP "TiB\n"}};
	struct fixture *fx = *state;
	char *page, exact[48];
	size_t i;

	for (i = 0; i < COUNT(t); i++) {
		make_empty(fx, "f");
		if (truncate(path_in(fx, "f"), t[i].size) != 0) {
			print_message("no file can be so large here\n");
			continue;
		}
		page = page_of(fx, ".", "/", false);
		snprintf(exact, sizeof(exact), "<td title=\"%lld bytes\"%s",
		    (long long)t[i].size, t[i].text);
		if (strstr(page, exact) == NULL)
			fail_msg("%s", exact);
		free(page);
		unlink(path_in(fx, "f"));
	}
}

static void
the_title_is_escaped(void **state)
{
	char *page;

	page = page_of(*state, ".", "/<script>&\"\xff/", false);
	assert_null(strstr(page, "<script>"));
	assert_non_null(strstr(page,
	    "<title>Index of /&lt;script&gt;&amp;&quot;" REPLACED "/</title>"));
	assert_non_null(strstr(
	    page, "<bdi>&lt;script&gt;&amp;&quot;" REPLACED "</bdi>/</h1>"));
	free(page);
}

/* Directories first, each half in order; a link is what it leads to, unless that is outside. */
static void
rows_are_in_order_with_what_is_known_of_them(void **state)
{
	static const char *const hrefs[] = {"a-dir/", "y-link/", "z-dir/",
	    "b-link", "b-loop", "b-nowhere", "c-file", "c-link", "d-file",
	    "e-fifo"};
	struct fixture *fx = *state;
	struct timespec times[2] = {{784111777, 0}, {784111777, 0}};
	struct seen row;
	char *page;
	const char *p;
	size_t i;

	make_file(fx, "c-file", 12345);
	assert_int_equal(
	    utimensat(AT_FDCWD, path_in(fx, "c-file"), times, 0), 0);
	touch(fx, "d-file");
	assert_int_equal(mkdir(path_in(fx, "z-dir"), 0700), 0);
	assert_int_equal(mkdir(path_in(fx, "a-dir"), 0700), 0);
	assert_int_equal(symlink("/etc", path_in(fx, "b-link")), 0);
	assert_int_equal(symlink("b-loop", path_in(fx, "b-loop")), 0);
	assert_int_equal(symlink("none", path_in(fx, "b-nowhere")), 0);
	assert_int_equal(symlink("a-dir/../c-file", path_in(fx, "c-link")), 0);
	assert_int_equal(symlink("z-dir", path_in(fx, "y-link")), 0);
	assert_int_equal(mkfifo(path_in(fx, "e-fifo"), 0600), 0);
	p = page = page_of(fx, ".", "/", false);
	for (i = 0; i < COUNT(hrefs); i++) {
		assert_true(next_row(&p, &row));
		assert_int_equal(row.row_href_len, strlen(hrefs[i]));
		assert_memory_equal(row.row_href, hrefs[i], row.row_href_len);
	}
	assert_false(next_row(&p, &row));
	assert_non_null(
	    strstr(page, "c-file</a><td><time datetime=1994-11-06T08:49:37Z>"
			 "1994-11-06 08:49</time> "
			 "<td title=\"12345 bytes\">12.1" NBSP "KiB\n"));
	assert_non_null(
	    strstr(page, "c-link</a><td><time datetime=1994-11-06T08:49:37Z>"
			 "1994-11-06 08:49</time> "
			 "<td title=\"12345 bytes\">12.1" NBSP "KiB\n"));
	assert_non_null(strstr(page, "</time> <td title=\"0 bytes\">0 B\n"));
	assert_non_null(strstr(page, "b-link</a>\n"));
	assert_non_null(strstr(page, "b-loop</a>\n"));
	assert_non_null(strstr(page, "b-nowhere</a>\n"));
	assert_non_null(strstr(page, "a-dir/</a><td><time "));
	assert_non_null(strstr(page, "y-link/</a><td><time "));
	assert_non_null(strstr(page, "e-fifo</a><td><time "));
	assert_non_null(strstr(page, "</time> <td>-\n"));
	free(page);
}

/* From a directory below the root a link may lead up, but not out. */
static void
a_link_may_lead_anywhere_below_the_root(void **state)
{
	struct fixture *fx = *state;
	char *page;

	assert_int_equal(mkdir(path_in(fx, "sub"), 0700), 0);
	assert_int_equal(mkdir(path_in(fx, "other"), 0700), 0);
	assert_int_equal(symlink("../other", path_in(fx, "sub/in")), 0);
	assert_int_equal(symlink("../../..", path_in(fx, "sub/out")), 0);
	assert_int_equal(symlink("/", path_in(fx, "sub/slash")), 0);
	page = page_of(fx, "sub/", "/sub/", false);
	assert_non_null(strstr(page, "<a href=\"in/\""));
	assert_non_null(strstr(page, "<a href=\"out\""));
	assert_non_null(strstr(page, "<a href=\"slash\""));
	free(page);
}

/* fsspec takes each of them for an address. */
static void
only_a_name_like_an_address_has_a_dot_before_it(void **state)
{
	struct fixture *fx = *state;
	char *page;

	touch(fx, "http.csv");
	touch(fx, "https:x");
	touch(fx, "htt");
	touch(fx, "a:b");
	page = page_of(fx, ".", "/", false);
	assert_non_null(strstr(page, "<a href=\"./http.csv\""));
	assert_non_null(strstr(page, "<a href=\"./https%3Ax\""));
	assert_non_null(strstr(page, "<a href=\"htt\""));
	assert_non_null(strstr(page, "<a href=\"a%3Ab\""));
	free(page);
}

static void
what_cannot_be_listed_is_an_error(void **state)
{
	static const struct {
		const char *path;
		int error;
	} t[] = {{"none", -ENOENT}, {"file", -ENOTDIR}, {"..", -EXDEV},
	    {"up", -EXDEV}, {"self", -ELOOP}};
	struct fixture *fx = *state;
	struct buf page;
	size_t i;

	touch(fx, "file");
	assert_int_equal(symlink("..", path_in(fx, "up")), 0);
	assert_int_equal(symlink("self", path_in(fx, "self")), 0);
	for (i = 0; i < COUNT(t); i++) {
		assert_int_equal(
		    list_as(fx, t[i].path, "/x/", false, &page), t[i].error);
		free(page.b_data);
	}
}

/* Few names of the longest text: only when it is made is it seen to be too long. */
static void
what_is_too_large_as_a_whole_is_no_page(void **state)
{
	struct fixture *fx = *state;
	struct buf page;
	char name[256];
	int i;

	memset(name, 0xff, 255);
	name[255] = '\0';
	for (i = 0; i < 400; i++) {
		snprintf(name, 4, "%03d", i);
		name[3] = (char)0xff;
		touch(fx, name);
	}
	assert_int_equal(list_as(fx, ".", "/", false, &page), -E2BIG);
	free(page.b_data);
}

static void
whether_it_is_the_directory_that_was_found_is_told(void **state)
{
	struct fixture *fx = *state;
	struct place place = {.pl_root = fx->fx_root,
	    .pl_path = ".",
	    .pl_title = "/",
	    .pl_dev = fx->fx_root->rt_dev,
	    .pl_ino = fx->fx_root->rt_ino};
	struct buf page = {0};
	struct listing_validator lv;
	bool same = false;

	assert_int_equal(autoindex_read_whole(&place, &page, &same, &lv), 0);
	assert_true(same);
	place.pl_ino++;
	assert_int_equal(autoindex_read_whole(&place, &page, &same, &lv), 0);
	assert_false(same);
	free(page.b_data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_name_with_any_byte_is_escaped_and_its_link_leads_back),
	    TEST(a_link_is_never_a_scheme_nor_a_way_out),
	    TEST(the_longest_name_has_a_whole_link),
	    TEST(what_is_not_utf_8_is_replaced),
	    TEST(dot_files_are_hidden_unless_wanted),
	    TEST(dot_files_that_are_named_are_shown),
	    TEST(an_empty_directory_has_a_page_without_names),
	    TEST(only_the_root_has_no_way_up),
	    TEST(each_directory_of_the_path_is_a_link),
	    TEST(of_a_very_deep_path_only_the_beginning_has_links),
	    TEST(sizes_are_shown_with_few_digits),
	    TEST(the_title_is_escaped),
	    TEST(rows_are_in_order_with_what_is_known_of_them),
	    TEST(a_link_may_lead_anywhere_below_the_root),
	    TEST(only_a_name_like_an_address_has_a_dot_before_it),
	    TEST(what_cannot_be_listed_is_an_error),
	    TEST(what_is_too_large_as_a_whole_is_no_page),
	    TEST(whether_it_is_the_directory_that_was_found_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
