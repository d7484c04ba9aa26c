/*
 * autoindex_html: see autoindex_html.h.
 */
#include <limits.h>
#include <stdio.h>

#include "server/content/autoindex_html.h"
#include "server/http/target.h"
#include "server/util/utf8.h"

static const char autoindex_html_style[] =
    "<style>"
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;margin:2em auto;"
    "max-width:60em;padding:0 1em}"
    "table{border-collapse:collapse;width:100%}"
    "td,th{padding:.25em .75em .25em 0;text-align:left;vertical-align:top}"
    "td:first-child{overflow-wrap:anywhere}"
    "td:nth-child(n+2){white-space:nowrap;font-variant-numeric:tabular-nums}"
    "td:nth-child(2),th:nth-child(2){text-align:right}"
    "a{text-decoration:none}a:hover{text-decoration:underline}"
    "</style>";

static void
add(struct buf *b, const char *text)
{
	struct buf_list none = {0};

	buf_str(b, &none, text);
}

/* Names are bytes: what is not text is shown as U+FFFD. */
static void
add_text(struct buf *b, const char *text)
{
	struct buf_list none = {0};
	size_t n, len = strlen(text);
	uint32_t c;

	for (; len > 0; text += n, len -= n) {
		n = utf8_decode(text, len, &c);
		if (n == 0 || c < 0x20 || c == 0x7f) {
			add(b, "\xef\xbf\xbd");
			n = 1;
		} else if (c == '&')
			add(b, "&amp;");
		else if (c == '<')
			add(b, "&lt;");
		else if (c == '>')
			add(b, "&gt;");
		else if (c == '"')
			add(b, "&quot;");
		else
			buf_add(b, &none, text, n);
	}
}

/* "./" so that a name with a colon is not taken for a scheme. */
static void
add_href(struct buf *b, const char *text, bool dir)
{
	char href[3 * NAME_MAX + 1];

	target_encode((struct str){text, strlen(text)}, href, sizeof(href));
	add(b, "<a href=\"./");
	add(b, href);
	add(b, dir ? "/\">" : "\">");
}

void
autoindex_html_row(struct buf *b, const struct row *row)
{
	char text[64], date[32];
	struct tm tm;

	add(b, "<tr><td>");
	add_href(b, row->row_name, row->row_dir);
	add_text(b, row->row_name);
	add(b, row->row_dir ? "/</a></td>" : "</a></td>");
	if (!row->row_known || gmtime_r(&row->row_mtime, &tm) == NULL) {
		add(b, "<td></td><td></td></tr>\n");
		return;
	}
	if (row->row_dir)
		snprintf(text, sizeof(text), "<td></td>");
	else
		snprintf(text, sizeof(text), "<td>%lld</td>",
		    (long long)row->row_size);
	add(b, text);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M", &tm);
	snprintf(text, sizeof(text), "<td>%s</td></tr>\n", date);
	add(b, text);
}

void
autoindex_html_begin(struct buf *b, const char *title, bool sorted)
{
	add(b, "<!DOCTYPE html>\n<html lang=\"en\"><head>"
	       "<meta charset=\"utf-8\"><meta name=\"viewport\" "
	       "content=\"width=device-width\"><title>");
	add_text(b, title);
	add(b, "</title>");
	add(b, autoindex_html_style);
	add(b, "</head><body>\n<h1>");
	add_text(b, title);
	add(b, "</h1>\n");
	if (!sorted)
		add(b, "<p>The names are not sorted: there are many, or they "
		       "take long to read.</p>\n");
	add(b, "<table><tr><th>Name</th><th>Bytes</th>"
	       "<th>Modified (UTC)</th></tr>\n");
	if (strcmp(title, "/") != 0)
		add(b, "<tr><td><a href=\"../\">../</a></td>"
		       "<td></td><td></td></tr>\n");
}

void
autoindex_html_end(struct buf *b)
{
	add(b, "</table>\n</body></html>\n");
}
