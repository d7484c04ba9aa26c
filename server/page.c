/*
 * listing: see listing.h.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "listing.h"
#include "target.h"

struct name {
	char *nm_text;
	bool nm_dir;
	bool nm_stat; /* size and time are known */
	off_t nm_size;
	time_t nm_mtime;
};

struct names {
	struct name *ns_list;
	size_t ns_count, ns_room;
	bool ns_more;
};

/* Pool threads have no free list: an empty one makes plain malloc. */
struct page {
	struct buf pg_buf;
	struct buf_list pg_list;
};

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
add(struct page *pg, const char *text)
{
	buf_str(&pg->pg_buf, &pg->pg_list, text);
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
add_text(struct page *pg, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n;

	for (; *s != '\0'; s += n == 0 ? 1 : n) {
		n = utf8_len(s);
		if (n == 0)
			add(pg, "\xef\xbf\xbd");
		else if (*s == '&')
			add(pg, "&amp;");
		else if (*s == '<')
			add(pg, "&lt;");
		else if (*s == '>')
			add(pg, "&gt;");
		else if (*s == '"')
			add(pg, "&quot;");
		else
			buf_add(&pg->pg_buf, &pg->pg_list, (const char *)s, n);
	}
}

/* "./" so that a name with a colon is not taken for a scheme. */
static void
add_href(struct page *pg, const char *text, bool dir)
{
	char href[3 * NAME_MAX + 1];

	target_encode((struct str){text, strlen(text)}, href, sizeof(href));
	add(pg, "<a href=\"./");
	add(pg, href);
	add(pg, dir ? "/\">" : "\">");
}

static void
add_row(struct page *pg, const struct name *nm)
{
	char text[64], date[32];
	struct tm tm;

	add(pg, "<tr><td>");
	add_href(pg, nm->nm_text, nm->nm_dir);
	add_text(pg, nm->nm_text);
	add(pg, nm->nm_dir ? "/</a></td>" : "</a></td>");
	if (!nm->nm_stat || gmtime_r(&nm->nm_mtime, &tm) == NULL) {
		add(pg, "<td></td><td></td></tr>\n");
		return;
	}
	if (nm->nm_dir)
		snprintf(text, sizeof(text), "<td></td>");
	else
		snprintf(text, sizeof(text), "<td>%lld</td>",
		    (long long)nm->nm_size);
	add(pg, text);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M", &tm);
	snprintf(text, sizeof(text), "<td>%s</td></tr>\n", date);
	add(pg, text);
}

static int
compare(const void *va, const void *vb)
{
	const struct name *a = va, *b = vb;

	if (a->nm_dir != b->nm_dir)
		return a->nm_dir ? -1 : 1;
	return strcmp(a->nm_text, b->nm_text);
}

/*
 * Where a link leads is not looked up: it may lead out of the root.  A mount
 * point is a directory without a date.
 */
static void
stat_name(int dirfd, struct name *nm)
{
	struct stat st;
	int error;

	error = pw_stat_name(dirfd, nm->nm_text, &st);
	nm->nm_dir = error == -EXDEV || (error == 0 && S_ISDIR(st.st_mode));
	if (error != 0 || S_ISLNK(st.st_mode))
		return;
	nm->nm_stat = true;
	nm->nm_size = st.st_size;
	nm->nm_mtime = st.st_mtime;
}

static int
add_name(struct names *ns, int dirfd, const char *text)
{
	struct name *list;
	size_t room;

	if (ns->ns_count == ns->ns_room) {
		room = ns->ns_room == 0 ? 64 : 2 * ns->ns_room;
		list = realloc(ns->ns_list, room * sizeof(*list));
		if (list == NULL)
			return -ENOMEM;
		ns->ns_list = list;
		ns->ns_room = room;
	}
	list = &ns->ns_list[ns->ns_count];
	*list = (struct name){.nm_text = strdup(text)};
	if (list->nm_text == NULL)
		return -ENOMEM;
	ns->ns_count++;
	stat_name(dirfd, list);
	return 0;
}

static bool
shown(const struct listing *li, const char *name)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	return name[0] != '.' || li->li_dotfiles;
}

static int
read_names(struct listing *li, struct names *ns)
{
	struct dirent *de;
	DIR *dir;
	int fd, error = 0;

	fd = pw_root_open_dir(li->li_root, li->li_path);
	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (dir == NULL) {
		error = -errno;
		close(fd);
		return error;
	}
	while (error == 0 && (errno = 0, de = readdir(dir)) != NULL) {
		if (!shown(li, de->d_name))
			continue;
		ns->ns_more = ns->ns_count == LISTING_MAX;
		if (ns->ns_more)
			break;
		error = add_name(ns, fd, de->d_name);
	}
	if (error == 0 && !ns->ns_more)
		error = -errno;
	closedir(dir);
	return error;
}

static void
render(struct listing *li, const struct names *ns)
{
	struct page pg = {0};
	size_t i;

	add(&pg, "<!DOCTYPE html>\n<html lang=\"en\"><head>"
		 "<meta charset=\"utf-8\"><meta name=\"viewport\" "
		 "content=\"width=device-width\"><title>");
	add_text(&pg, li->li_title);
	add(&pg, "</title>");
	add(&pg, page_style);
	add(&pg, "</head><body>\n<h1>");
	add_text(&pg, li->li_title);
	add(&pg, "</h1>\n<table><tr><th>Name</th><th>Bytes</th>"
		 "<th>Modified (UTC)</th></tr>\n");
	if (strcmp(li->li_title, "/") != 0)
		add(&pg, "<tr><td><a href=\"../\">../</a></td>"
			 "<td></td><td></td></tr>\n");
	for (i = 0; i < ns->ns_count; i++)
		add_row(&pg, &ns->ns_list[i]);
	add(&pg, "</table>\n");
	if (ns->ns_more)
		add(&pg, "<p>There are more names than are shown.</p>\n");
	add(&pg, "</body></html>\n");
	li->li_html = pg.pg_buf.b_data;
	li->li_len = pg.pg_buf.b_len;
	if (pg.pg_buf.b_failed)
		li->li_error = -ENOMEM;
	buf_list_destroy(&pg.pg_list);
}

static int
listing_work(struct pw_task *tk)
{
	struct listing *li =
	    (struct listing *)(void *)((char *)tk -
				       offsetof(struct listing, li_task));
	struct names ns = {0};
	size_t i;

	li->li_error = read_names(li, &ns);
	if (li->li_error == 0) {
		if (ns.ns_count > 0)
			qsort(ns.ns_list, ns.ns_count, sizeof(*ns.ns_list),
			    compare);
		render(li, &ns);
	}
	for (i = 0; i < ns.ns_count; i++)
		free(ns.ns_list[i].nm_text);
	free(ns.ns_list);
	return 0;
}

static void
listing_ended(struct pw_waiter *w)
{
	struct listing *li =
	    (struct listing *)(void *)((char *)w - offsetof(struct listing,
						       li_task.tk_waiter));

	li->li_done(li);
}

int
listing_start(struct listing *li, struct pw_loop *lp)
{
	if (li->li_path == NULL || li->li_title == NULL)
		return -ENOMEM;
	li->li_task.tk_work = listing_work;
	li->li_task.tk_waiter.wt_done = listing_ended;
	return pw_task_run(lp, li->li_dev, &li->li_task);
}

void
listing_free(struct listing *li)
{
	free(li->li_path);
	free(li->li_title);
	free(li->li_html);
	free(li);
}
