/* Pages of directories (server/content/autoindex_read.h), and their rows. */
#include "lib/file/file.h"
#include "lib_fixture.h"

#include "server/content/autoindex_read.h"
#include "server/http/target.h"

/* Freed by the caller, after an error as well. */
static inline int
list_as(const char *path, const char *title, bool dotfiles, struct buf *page)
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
static inline char *
page_of(const char *path, const char *title, bool dotfiles)
{
	struct buf page;

	assert_int_equal(list_as(path, title, dotfiles, &page), 0);
	assert_true(page.b_len < page.b_cap);
	page.b_data[page.b_len] = '\0';
	assert_int_equal(strlen(page.b_data), page.b_len);
	return page.b_data;
}

static inline void
touch(const char *name)
{
	SCOPED(close_at)
	int fd = open(path_in(name), O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
}

/* A row: its link as in the page, and the text that is seen. */
struct seen {
	const char *row_href, *row_text;
	size_t row_href_len, row_text_len;
};

/* Takes the next one; false when there is none.  Fails if it is no row. */
static inline bool
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

static inline unsigned
count_rows(const char *page)
{
	struct seen row;
	unsigned n = 0;

	while (next_row(&page, &row))
		n++;
	return n;
}
