/*
 * page: see page.h.
 */
#include <limits.h>
#include <stdio.h>

#include "page.h"
#include "target.h"

static const char page_style[] =
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

/* Length of the UTF-8 sequence at s, 0 if it is none. */
static size_t
utf8_len(const unsigned char *s)
{
	size_t n, i;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	n = s[0] >= 0xc2 && s[0] < 0xe0	  ? 2
	    : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
	    : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
					  : 0;
	for (i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong, a surrogate, above U+10FFFF. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* Names are bytes: what is not text is shown as U+FFFD. */
static void
add_text(struct buf *b, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	struct buf_list none = {0};
	size_t n;

	for (; *s != '\0'; s += n == 0 ? 1 : n) {
		n = utf8_len(s);
		if (n == 0)
			add(b, "\xef\xbf\xbd");
		else if (*s == '&')
			add(b, "&amp;");
		else if (*s == '<')
			add(b, "&lt;");
		else if (*s == '>')
			add(b, "&gt;");
		else if (*s == '"')
			add(b, "&quot;");
		else
			buf_add(b, &none, (const char *)s, n);
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
page_row(struct buf *b, const struct row *row)
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
page_begin(struct buf *b, const char *title, bool sorted)
{
	add(b, "<!DOCTYPE html>\n<html lang=\"en\"><head>"
	       "<meta charset=\"utf-8\"><meta name=\"viewport\" "
	       "content=\"width=device-width\"><title>");
	add_text(b, title);
	add(b, "</title>");
	add(b, page_style);
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
page_end(struct buf *b)
{
	add(b, "</table>\n</body></html>\n");
}
