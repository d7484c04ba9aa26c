/*
 * autoindex_html: see autoindex_html.h.  Omits optional end tags, because a page may have thousands
 * of rows.
 */
#include <limits.h>
#include <stdio.h>

#include "server/content/autoindex_html.h"
#include "server/http/target.h"
#include "server/util/utf8.h"

/*
 * Maximum number of links in the heading, and maximum bytes of each link.  Without these limits,
 * the total length of the links would be quadratic in the depth of the path.
 */
#define LINKED_MOST  64
#define LINKED_BYTES 1024

#define NBSP "\xc2\xa0"

#define ICON(shape)                                                           \
	"url(\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' " \
	"viewBox='0 0 16 16'%3E%3Cpath " shape "/%3E%3C/svg%3E\")"
#define FOLDER ICON("fill='%23c8922e' d='M1 2.5h5l2 2h7v9H1z'")
#define SHEET                                                     \
	ICON("fill='none' stroke='%238a919c' stroke-width='1.3' " \
	     "d='M3.2 1.7h6l3.6 3.6v9H3.2zM9 2v3.5h3.5'")
#define UP                                                        \
	ICON("fill='none' stroke='%238a919c' stroke-width='1.6' " \
	     "d='M4 7l4-4 4 4M8 3v11'")

/*
 * The layout of the table is fixed, so that a browser can show the table while it arrives.  On a
 * narrow screen, size and date are below the name.
 */
static const char autoindex_html_style[] =
    "<style>\n"
    ":root{color-scheme:light dark;"
    "--fg:#1c2024;--bg:#fff;--dim:#5f6771;--line:#e3e6ea;--on:#f3f5f8;"
    "--link:#0b57b4}\n"
    "@media(prefers-color-scheme:dark){:root{"
    "--fg:#e2e5e9;--bg:#15181c;--dim:#98a1ac;--line:#2b3037;--on:#1e2329;"
    "--link:#83b7f7}}\n"
    "body{font:16px/1.5 system-ui,sans-serif;color:var(--fg);"
    "background:var(--bg);max-width:60em;margin:0 auto;padding:1.5em 1em 3em}\n"
    "h1{font-size:1.35em;line-height:1.4;margin:0 0 1em;"
    "overflow-wrap:anywhere}\n"
    "h1 a,h1 bdi{padding:.1em .15em}\n"
    "a{color:var(--link);text-decoration:none}"
    "a:hover,a:focus{text-decoration:underline}\n"
    "header{margin:0 0 1.5em}header pre{white-space:pre-wrap;"
    "overflow-wrap:anywhere}.note{color:var(--dim)}\n"
    "#list{table-layout:fixed;border-collapse:collapse;width:100%}"
    "#list tr{border-bottom:1px solid var(--line)}"
    "#list tr:hover{background:var(--on)}\n"
    "#list th{text-align:left;padding:.35em .5em}"
    "#list th+th{width:10em;text-align:right}"
    "#list th+th+th{width:6.5em}"
    "#list form{margin:0}"
    "#list button{font:inherit;color:inherit;background:none;border:0;"
    "padding:0;cursor:pointer}"
    "#list button:hover{text-decoration:underline}"
    "[aria-sort=ascending] button::after{content:\" \\2191\"}"
    "[aria-sort=descending] button::after{content:\" \\2193\"}\n"
    "#list td{padding:0;vertical-align:top;overflow-wrap:anywhere}"
    "#list td+td{padding:.35em .5em;text-align:right;white-space:nowrap;"
    "color:var(--dim);font-variant-numeric:tabular-nums}\n"
    "#list td a{display:block;text-align:left;padding:.35em .5em .35em 2.1em;"
    "background:" SHEET " no-repeat .5em .55em/1.15em}"
    "#list td a[href$=\"/\"]{background-image:" FOLDER "}"
    "#list td a[href=\"../\"]{background-image:" UP "}\n"
    "@media(max-width:40em){"
    "#list,#list tbody,#list thead,#list tr,#list td{display:block}"
    "#list tr{padding:.1em 0 .4em}"
    "#list th,#list th+th,#list th+th+th{display:inline-block;width:auto}"
    "#list td a{padding-bottom:0}"
    "#list td+td{display:inline;padding:0 0 0 2.35em;font-size:.9em}"
    "#list td+td+td{padding-left:.8em}"
    "#list td+td+td:not([title]){display:none}"
    "}\n"
    "</style>";

static void
autoindex_html_add(struct buf *b, const char *text)
{
	struct buf_list none = {0};

	buf_str(b, &none, text);
}

/* Returns the HTML entity for a markup character, or NULL for any other character. */
static const char *
autoindex_html_entity(uint32_t c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	default:
		return NULL;
	}
}

static bool
autoindex_html_is_space(uint32_t c)
{
	return c == '\n' || c == '\t' || c == '\r';
}

/*
 * Appends escaped text.  A file name may have any bytes, so bytes that are not valid UTF-8 become
 * U+FFFD.  If `lines` is true, keeps line ends and tabs.
 */
static void
autoindex_html_add_text(struct buf *b, const char *text, size_t len, bool lines)
{
	struct buf_list none = {0};
	size_t n;
	uint32_t c;

	for (; len > 0; text += n, len -= n) {
		n = utf8_decode(text, len, &c);
		if (n == 0 || c == 0x7f ||
		    (c < 0x20 && !(lines && autoindex_html_is_space(c)))) {
			autoindex_html_add(b, "\xef\xbf\xbd");
			n = 1;
		} else if (autoindex_html_entity(c) != NULL)
			autoindex_html_add(b, autoindex_html_entity(c));
		else
			buf_add(b, &none, text, n);
	}
}

void
autoindex_html_text(struct buf *b, const char *text, size_t len)
{
	autoindex_html_add_text(b, text, len, true);
}

/* ------------------------------------------------------------------- rows */

/*
 * Appends the link of a row.  Programs parse the page with regular expressions, so href is the
 * first attribute and contains only the name.  Encodes colons, so that no name looks like a URL
 * with a scheme.  Writes "./" before a name that starts with "http", because fsspec would treat
 * such a name as a URL.
 */
static void
autoindex_html_add_href(struct buf *b, const char *text, bool dir)
{
	char href[3 * NAME_MAX + 1];

	target_encode((struct str){text, strlen(text)}, href, sizeof(href));
	autoindex_html_add(
	    b, strncmp(text, "http", 4) == 0 ? "<a href=\"./" : "<a href=\"");
	autoindex_html_add(b, href);
	autoindex_html_add(b, dir ? "/\" dir=auto>" : "\" dir=auto>");
}

/*
 * Appends a size in B, KiB, MiB and so on.  In KiB and larger units, numbers below 100 have one
 * decimal.  A size that rounds to 1024 of a unit is written as 1.0 of the next unit.  lftp reads a
 * number before a space as the exact size, so only a number of bytes has a space after it.
 */
static void
autoindex_html_add_size(struct buf *b, off_t size)
{
	static const char units[][4] = {
	    "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)size;
	unsigned unit = 0;
	char text[96];

	while (value >= 1023.5) {
		value /= 1024;
		unit++;
	}
	if (unit == 0)
		snprintf(text, sizeof(text), "<td title=\"%d bytes\">%d B",
		    (int)size, (int)size);
	else
		snprintf(text, sizeof(text),
		    "<td title=\"%lld bytes\">%.*f" NBSP "%s", (long long)size,
		    value < 99.95, value, units[unit]);
	autoindex_html_add(b, text);
}

static void
autoindex_html_add_time(struct buf *b, time_t mtime)
{
	char text[128] = "<td>";
	struct tm tm;

	if (gmtime_r(&mtime, &tm) != NULL)
		strftime(text, sizeof(text),
		    "<td><time datetime=%Y-%m-%dT%H:%M:%SZ>"
		    "%Y-%m-%d %H:%M</time> ",
		    &tm);
	autoindex_html_add(b, text);
}

void
autoindex_html_row(struct buf *b, const struct row *row)
{
	bool dir = row->row_type == ROW_DIRECTORY;

	autoindex_html_add(b, "<tr><td>");
	autoindex_html_add_href(b, row->row_name, dir);
	autoindex_html_add_text(b, row->row_name, strlen(row->row_name), false);
	autoindex_html_add(b, dir ? "/</a>" : "</a>");
	if (row->row_known)
		autoindex_html_add_time(b, row->row_mtime);
	if (row->row_known && row->row_type == ROW_FILE)
		autoindex_html_add_size(b, row->row_size);
	else if (row->row_known)
		autoindex_html_add(b, "<td>-");
	autoindex_html_add(b, "\n");
}

/* ------------------------------------------------------------------- page */

/*
 * Appends the start of a link to a part of the path.  Returns false if the link would be too long.
 * Programs that search the page for names ignore this link: GDAL because href is not the first
 * attribute, fsspec because the absolute path leads out of the directory.  fsspec would treat "/"
 * as this directory, so the link of the root is "/./".
 */
static bool
autoindex_html_add_crumb_link(struct buf *b, const char *path, size_t len)
{
	char href[LINKED_BYTES];

	if (target_encode((struct str){path, len}, href, sizeof(href)) >=
	    sizeof(href))
		return false;
	autoindex_html_add(b, "<a dir=auto href=\"");
	autoindex_html_add(b, len == 1 ? "/./" : href);
	autoindex_html_add(b, "\">");
	return true;
}

static void
autoindex_html_add_crumb_text(struct buf *b, const char *name, size_t len)
{
	autoindex_html_add(b, "<bdi>");
	autoindex_html_add_text(b, name, len, false);
	autoindex_html_add(b, "</bdi>/");
}

/* Appends one directory of the path: the `len` bytes at `from`, before a '/'. */
static void
autoindex_html_add_crumb(
    struct buf *b, const char *path, const char *from, size_t len)
{
	bool root = from == path;

	if (autoindex_html_add_crumb_link(
		b, path, (size_t)(from - path) + len + 1)) {
		/* The root has no name, so its '/' is its text. */
		autoindex_html_add_text(
		    b, root ? "/" : from, root ? 1 : len, false);
		autoindex_html_add(b, root ? "</a>" : "</a>/");
		return;
	}
	autoindex_html_add_crumb_text(b, from, len);
}

static void
autoindex_html_add_path(struct buf *b, const char *path)
{
	const char *from = path, *end;
	size_t len;
	int links = 0;

	while ((end = strchr(from, '/')) != NULL && end[1] != '\0' &&
	       links++ < LINKED_MOST) {
		autoindex_html_add_crumb(b, path, from, (size_t)(end - from));
		from = end + 1;
	}
	len = strlen(from);
	if (len > 0 && from[len - 1] == '/')
		autoindex_html_add_crumb_text(b, from, len - 1);
	else
		autoindex_html_add_text(b, from, len, false);
}

void
autoindex_html_begin(struct buf *b, const char *title)
{
	autoindex_html_add(b,
	    "<!DOCTYPE html>\n<html lang=\"en\"><head>"
	    "<meta charset=\"utf-8\"><meta name=\"viewport\" "
	    "content=\"width=device-width\"><title>Index of ");
	autoindex_html_add_text(b, title, strlen(title), false);
	autoindex_html_add(b, "</title>\n");
	autoindex_html_add(b, autoindex_html_style);
	autoindex_html_add(b, "</head><body>\n<h1>");
	autoindex_html_add_path(b, title);
	autoindex_html_add(b, "</h1>\n");
}

/*
 * Appends the heading of a column with a button that sorts by this column: names ascending, times
 * and sizes descending.  If the page already has this order, the button reverses it.  The heading
 * has no link, because programs that follow all links would fetch each order.
 */
static void
autoindex_html_add_heading(struct buf *b, const struct view *order,
    enum view_sort sort, const char *text)
{
	bool here = order != NULL && order->vw_sort == sort;
	bool descending = here ? !order->vw_descending : sort != VIEW_NAME;

	autoindex_html_add(b, "<th");
	if (here)
		autoindex_html_add(b, descending ? " aria-sort=ascending"
						 : " aria-sort=descending");
	autoindex_html_add(b, ">");
	if (order != NULL) {
		autoindex_html_add(
		    b, "<form><input type=hidden name=order value=");
		autoindex_html_add(b, descending ? "desc" : "asc");
		autoindex_html_add(b, "><button name=sort value=");
		autoindex_html_add(b, view_sort_name(sort));
		autoindex_html_add(b, ">");
	}
	autoindex_html_add(b, text);
	autoindex_html_add(
	    b, order != NULL ? "</button></form></th>" : "</th>");
}

void
autoindex_html_table(struct buf *b, const char *title, const struct view *order)
{
	if (order == NULL)
		autoindex_html_add(b,
		    "<p class=note>The names are not sorted: there are "
		    "many, or they "
		    "take long to read.</p>\n");
	autoindex_html_add(b, "<table id=list><thead><tr>");
	autoindex_html_add_heading(b, order, VIEW_NAME, "Name");
	autoindex_html_add_heading(b, order, VIEW_TIME, "Modified (UTC)");
	autoindex_html_add_heading(b, order, VIEW_SIZE, "Size");
	autoindex_html_add(b, "</tr></thead><tbody>\n");
	if (strcmp(title, "/") != 0)
		autoindex_html_add(b, "<tr><td><a href=\"../\">../</a>\n");
}

void
autoindex_html_end(struct buf *b)
{
	autoindex_html_add(b, "</table>\n</body></html>\n");
}
