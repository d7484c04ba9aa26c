/*
 * Directories as pages (server/content/autoindex_read.h, autoindex_html.h): what they show of a directory,
 * in which order, and what cannot be shown.
 */
#include "autoindex_fixture.h"

#define NBSP "\xc2\xa0"

#define REPLACED "\xef\xbf\xbd"

TEST(dot_files_are_hidden_unless_wanted)
{
	char *page;

	touch(".hidden");
	touch("..hidden");
	touch("not.hidden");
	assert_int_equal(mkdir(path_in(".git"), 0700), 0);
	page = page_of(".", "/", false);
	assert_int_equal(count_rows(page), 1);
	assert_non_null(strstr(page, "<a href=\"not.hidden\""));
	free(page);
	page = page_of(".", "/", true);
	assert_int_equal(count_rows(page), 4);
	assert_non_null(strstr(page, "\".hidden\""));
	assert_non_null(strstr(page, "\".git/\""));
	/* The directory itself and the one above are no names in it. */
	assert_null(strstr(page, "<a href=\"./"));
	assert_null(strstr(page, "<a href=\"../"));
	free(page);
}

TEST(dot_files_that_are_named_are_shown)
{
	static char zarray[] = ".zarray", git[] = ".git";
	char *const names[] = {zarray, git, NULL};
	struct place place = {.pl_root = fx->fx_root,
	    .pl_path = ".",
	    .pl_title = "/",
	    .pl_dotnames = names};
	struct listing_validator lv;
	struct buf page = {0};
	bool same;

	touch(".zarray");
	touch(".zarray.tmp");
	touch(".z");
	assert_int_equal(mkdir(path_in(".git"), 0700), 0);
	assert_int_equal(autoindex_read_whole(&place, &page, &same, &lv), 0);
	page.b_data[page.b_len] = '\0';
	assert_int_equal(count_rows(page.b_data), 2);
	assert_non_null(strstr(page.b_data, "\".zarray\""));
	assert_non_null(strstr(page.b_data, "\".git/\""));
	free(page.b_data);
}

TEST(an_empty_directory_has_a_page_without_names)
{
	SCOPED(free_at) char *page;

	assert_int_equal(mkdir(path_in("empty"), 0700), 0);
	page = page_of("empty", "/empty/", true);
	assert_int_equal(count_rows(page), 0);
	assert_non_null(strstr(page, "<bdi>empty</bdi>/</h1>"));
	assert_non_null(strstr(page, "</table>"));
	assert_non_null(strstr(page, "</html>"));
}

TEST(only_the_root_has_no_way_up)
{
	char *page = page_of(".", "/", false);

	assert_null(strstr(page, "\"../\">"));
	free(page);
	page = page_of(".", "/x/", false);
	assert_non_null(strstr(page, "<a href=\"../\">../</a>"));
	free(page);
}

TEST(each_directory_of_the_path_is_a_link)
{
	char *page = page_of(".", "/a/b c/\xff/", false);

	assert_non_null(strstr(page, "<h1><a dir=auto href=\"/./\">/</a>"
				     "<a dir=auto href=\"/a/\">a</a>/"
				     "<a dir=auto href=\"/a/b%20c/\">b c</a>/"
				     "<bdi>" REPLACED "</bdi>/</h1>"));
	free(page);
	page = page_of(".", "/", false);
	assert_non_null(strstr(page, "<h1><bdi></bdi>/</h1>"));
	free(page);
}

/* Else their text would be as long as the square of the path. */
TEST(only_the_first_parts_of_a_very_deep_path_have_links)
{
	char title[2002] = "/", *page;
	int i, links = 0;
	const char *p;

	for (i = 1; i < 2001; i += 2)
		memcpy(title + i, "x/", 2);
	page = page_of(".", title, false);
	assert_in_range(strlen(page), 2000, 64 * KIB);
	for (p = page; (p = strstr(p, "href=\"/")) != NULL; p++)
		links++;
	assert_in_range(links, 32, 100);
	free(page);
	/* Of long names as well. */
	memset(title + 1, 'x', sizeof(title) - 3);
	for (i = 200; i < 2000; i += 200)
		title[i] = '/';
	page = page_of(".", title, false);
	assert_non_null(strstr(page, "<h1><a dir=auto href=\"/./\">"));
	assert_in_range(strlen(page), 2000, 16 * KIB);
	free(page);
}

TEST(sizes_are_shown_with_few_digits)
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
	char *page, exact[48];

	for (size_t i = 0; i < COUNT(t); i++) {
		make_empty("f");
		if (truncate(path_in("f"), t[i].size) != 0) {
			print_message("no file can be so large here\n");
			continue;
		}
		page = page_of(".", "/", false);
		snprintf(exact, sizeof(exact), "<td title=\"%lld bytes\"%s",
		    (long long)t[i].size, t[i].text);
		if (strstr(page, exact) == NULL)
			fail_msg("%s", exact);
		free(page);
		unlink(path_in("f"));
	}
}

TEST(the_title_is_escaped)
{
	SCOPED(free_at) char *page = page_of(".", "/<script>&\"\xff/", false);

	assert_null(strstr(page, "<script>"));
	assert_non_null(strstr(page,
	    "<title>Index of /&lt;script&gt;&amp;&quot;" REPLACED "/</title>"));
	assert_non_null(strstr(
	    page, "<bdi>&lt;script&gt;&amp;&quot;" REPLACED "</bdi>/</h1>"));
}

/* Directories first, each half in order; a link is what it leads to, unless that is outside. */
TEST(rows_are_in_order_with_what_is_known_of_them)
{
	static const char *const hrefs[] = {"a-dir/", "y-link/", "z-dir/",
	    "b-link", "b-loop", "b-nowhere", "c-file", "c-link", "d-file",
	    "e-fifo"};
	struct timespec times[2] = {{784111777, 0}, {784111777, 0}};
	struct seen row;
	SCOPED(free_at) char *page;
	const char *p;

	make_file("c-file", 12345);
	assert_int_equal(utimensat(AT_FDCWD, path_in("c-file"), times, 0), 0);
	touch("d-file");
	assert_int_equal(mkdir(path_in("z-dir"), 0700), 0);
	assert_int_equal(mkdir(path_in("a-dir"), 0700), 0);
	assert_int_equal(symlink("/etc", path_in("b-link")), 0);
	assert_int_equal(symlink("b-loop", path_in("b-loop")), 0);
	assert_int_equal(symlink("none", path_in("b-nowhere")), 0);
	assert_int_equal(symlink("a-dir/../c-file", path_in("c-link")), 0);
	assert_int_equal(symlink("z-dir", path_in("y-link")), 0);
	assert_int_equal(mkfifo(path_in("e-fifo"), 0600), 0);
	p = page = page_of(".", "/", false);
	for (size_t i = 0; i < COUNT(hrefs); i++) {
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
}

/* From a directory below the root a link may lead up, but not out. */
TEST(a_link_may_lead_anywhere_below_the_root)
{
	SCOPED(free_at) char *page;

	assert_int_equal(mkdir(path_in("sub"), 0700), 0);
	assert_int_equal(mkdir(path_in("other"), 0700), 0);
	assert_int_equal(symlink("../other", path_in("sub/in")), 0);
	assert_int_equal(symlink("../../..", path_in("sub/out")), 0);
	assert_int_equal(symlink("/", path_in("sub/slash")), 0);
	page = page_of("sub/", "/sub/", false);
	assert_non_null(strstr(page, "<a href=\"in/\""));
	assert_non_null(strstr(page, "<a href=\"out\""));
	assert_non_null(strstr(page, "<a href=\"slash\""));
}

TEST(an_unreadable_directory_is_an_error)
{
	static const struct {
		const char *path;
		int error;
	} t[] = {{"none", -ENOENT}, {"file", -ENOTDIR}, {"..", -EXDEV},
	    {"up", -EXDEV}, {"self", -ELOOP}};
	struct buf page;

	touch("file");
	assert_int_equal(symlink("..", path_in("up")), 0);
	assert_int_equal(symlink("self", path_in("self")), 0);
	for (size_t i = 0; i < COUNT(t); i++) {
		assert_int_equal(
		    list_as(t[i].path, "/x/", false, &page), t[i].error);
		free(page.b_data);
	}
}

/* Few names of the longest text: only when it is made is it seen to be too long. */
TEST(a_too_large_directory_has_no_page)
{
	struct buf page;
	char name[256];

	memset(name, 0xff, 255);
	name[255] = '\0';
	for (int i = 0; i < 400; i++) {
		snprintf(name, 4, "%03d", i);
		name[3] = (char)0xff;
		touch(name);
	}
	assert_int_equal(list_as(".", "/", false, &page), -E2BIG);
	free(page.b_data);
}

TEST(a_replaced_directory_is_detected)
{
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
