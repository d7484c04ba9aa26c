/*
 * How a listing is shown (server/content/autoindex_view.h): what a request asks for, and which
 * row comes first.
 */
#include "test.h"

#include "server/content/autoindex_view.h"

static struct str
str(const char *text)
{
	return (struct str){text, text == NULL ? 0 : strlen(text)};
}

TEST(the_query_says_how_it_is_shown)
{
	static const struct {
		const char *query;
		struct view view;
	} t[] = {
	    {NULL, {0}},
	    {"", {0}},
	    {"&&", {0}},
	    {"sort=name", {0}},
	    {"sort=time", {.vw_sort = VIEW_TIME}},
	    {"sort=size&order=desc",
		{.vw_sort = VIEW_SIZE, .vw_descending = true}},
	    {"order=desc", {.vw_descending = true}},
	    {"order=desc&order=asc&sort=time&sort=size",
		{.vw_sort = VIEW_SIZE}},
	    {"x=y&format=json&z", {.vw_json = true}},
	    {"format=json&format=html", {0}},
	    /* not one of the values */
	    {"sort=date", {0}},
	    {"sort=", {0}},
	    {"sort", {0}},
	    {"sort=size=", {0}},
	    {"sort=sizes", {0}},
	    {"sort=siz", {0}},
	    {"Sort=size", {0}},
	    {"sort=SIZE", {0}},
	    {"xsort=size", {0}},
	    {"sort=%73ize", {0}},
	    {"order=descending", {0}},
	    {"format=xml", {0}},
	    {"format=json;sort=size", {0}},
	    {"sort=size&sort=date", {.vw_sort = VIEW_SIZE}},
	};

	for (size_t i = 0; i < COUNT(t); i++)
		if (!view_same(
			view_parse(str(t[i].query), str(NULL)), t[i].view))
			fail_msg("%s", t[i].query);
}

TEST(json_is_sent_if_accept_prefers_it)
{
	static const struct {
		const char *query, *accept;
		bool json;
	} t[] = {
	    {NULL, NULL, false},
	    {NULL, "", false},
	    {NULL, "*/*", false},
	    {NULL, "application/json", true},
	    {NULL, "application/*", true},
	    {NULL, "application/json;q=0", false},
	    {NULL, "application/json;q=0, text/html;q=0", false},
	    {NULL, "application/json;q=0.001", true},
	    {NULL, "application/json, text/html", false},
	    {NULL, "application/json, text/html;q=0.9", true},
	    {NULL, "application/json;q=0.9, text/html", false},
	    {NULL, "application/json, */*", false},
	    {NULL, "application/json, */*;q=0.5", true},
	    {NULL, "application/json;q=2", false},
	    {NULL, "text/html,application/xml;q=0.9,*/*;q=0.8", false},
	    /* said in so many words */
	    {"format=json", "text/html", true},
	    {"format=html", "application/json", false},
	    {"format=xml", "application/json", true},
	};

	for (size_t i = 0; i < COUNT(t); i++)
		if (view_parse(str(t[i].query), str(t[i].accept)).vw_json !=
		    t[i].json)
			fail_msg("%s", t[i].accept);
}

/* Each is before the next one. */
static void
assert_in_order(struct view vw, const struct row rows[], size_t count)
{
	size_t i, j;
	int by;

	for (i = 0; i < count; i++)
		for (j = 0; j < count; j++) {
			by = view_compare(vw, &rows[i], &rows[j]);
			if ((by > 0) - (by < 0) != (i > j) - (i < j))
				fail_msg("%s to %s: %d", rows[i].row_name,
				    rows[j].row_name, by);
		}
}

static char names[][4] = {"d1", "d2", "d10", "a", "f2", "f16", "l"};

#define DIRECTORY(i, mtime)                                                 \
	{                                                                   \
		names[i], ROW_DIRECTORY, true, 7000 + (mtime), mtime, 0, "" \
	}
#define FILE_ROW(i, size, mtime)                             \
	{                                                    \
		names[i], ROW_FILE, true, size, mtime, 0, "" \
	}
#define LINK(i)                                         \
	{                                               \
		names[i], ROW_OTHER, false, 0, 0, 0, "" \
	}

TEST(directories_are_first_in_every_order)
{
	static const struct row by_name[] = {DIRECTORY(0, 3), DIRECTORY(1, 3),
	    DIRECTORY(2, 3), FILE_ROW(3, 5, 5), FILE_ROW(4, 9, 1),
	    FILE_ROW(5, 1, 9), LINK(6)};
	static const struct row down[] = {DIRECTORY(2, 3), DIRECTORY(1, 3),
	    DIRECTORY(0, 3), LINK(6), FILE_ROW(5, 1, 9), FILE_ROW(4, 9, 1),
	    FILE_ROW(3, 5, 5)};

	assert_in_order((struct view){0}, by_name, COUNT(by_name));
	assert_in_order(
	    (struct view){.vw_descending = true}, down, COUNT(down));
}

/* What has the same is in the order of names, what has none comes last. */
TEST(sizes_and_times_go_up_and_down)
{
	static const struct row sizes[] = {DIRECTORY(1, 1), DIRECTORY(2, 1),
	    FILE_ROW(5, 1, 9), FILE_ROW(3, 5, 5), FILE_ROW(4, 5, 1), LINK(6)};
	static const struct row sizes_down[] = {DIRECTORY(1, 1),
	    DIRECTORY(2, 1), FILE_ROW(3, 5, 5), FILE_ROW(4, 5, 1),
	    FILE_ROW(5, 1, 9), LINK(6)};
	static const struct row times[] = {DIRECTORY(2, -1), DIRECTORY(1, 2),
	    FILE_ROW(4, 5, 1), FILE_ROW(3, 5, 5), FILE_ROW(5, 1, 9), LINK(6)};
	static const struct row times_down[] = {DIRECTORY(1, 2),
	    DIRECTORY(2, -1), FILE_ROW(5, 1, 9), FILE_ROW(3, 5, 5),
	    FILE_ROW(4, 5, 1), LINK(6)};
	struct view vw = {.vw_sort = VIEW_SIZE};

	assert_in_order(vw, sizes, COUNT(sizes));
	vw.vw_descending = true;
	assert_in_order(vw, sizes_down, COUNT(sizes_down));
	vw = (struct view){.vw_sort = VIEW_TIME};
	assert_in_order(vw, times, COUNT(times));
	vw.vw_descending = true;
	assert_in_order(vw, times_down, COUNT(times_down));
}
