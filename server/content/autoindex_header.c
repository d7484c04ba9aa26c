/*
 * autoindex_header: see autoindex_header.h.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/content/autoindex_header.h"
#include "server/content/autoindex_html.h"
#include "server/http/target.h"
#include "server/util/utf8.h"

static bool
autoindex_header_ends_in(const char *name, struct str end)
{
	struct str s = {name, strlen(name)};

	if (s.s_len < end.s_len)
		return false;
	s.s_ptr += s.s_len - end.s_len;
	s.s_len = end.s_len;
	return str_caseeq(s, end);
}

/* Reads the whole file.  Returns false if the file fills the buffer or cannot be read. */
static bool
autoindex_header_read_all(int fd, char *data, size_t size, size_t *len)
{
	ssize_t n = 1;

	for (*len = 0; n != 0 && *len < size; *len += (size_t)n) {
		n = read(fd, data + *len, size - *len);
		if (n == -1)
			return false;
	}
	return *len < size;
}

static bool
autoindex_header_is_utf8(const char *text, size_t len)
{
	size_t n;
	uint32_t c;

	for (; len > 0; text += n, len -= n) {
		n = utf8_decode(text, len, &c);
		if (n == 0)
			return false;
	}
	return true;
}

static void
autoindex_header_show(
    const char *name, const char *text, size_t len, struct buf *b)
{
	bool html = autoindex_header_ends_in(name, STR(".html")) ||
		    autoindex_header_ends_in(name, STR(".htm"));
	struct buf_list none = {0};
	struct buf shown = {0};

	if (!buf_reserve(&shown, &none, BUF_SIZE + 1 + len))
		return;
	if (html)
		buf_add(&shown, &none, text, len);
	else
		autoindex_html_text(&shown, text, len);
	if (!shown.b_failed && shown.b_len <= AUTOINDEX_HEADER_MOST) {
		buf_str(b, &none, html ? "<header>" : "<header><pre>\n");
		buf_add(b, &none, shown.b_data, shown.b_len);
		buf_str(b, &none, html ? "</header>\n" : "</pre></header>\n");
	}
	free(shown.b_data);
}

/*
 * Opens the header file below the root, by the rules for a requested file.  Returns a descriptor or
 * -errno.
 */
static int
autoindex_header_open(const struct place *pl)
{
	char path[PATH_MAX];
	int n =
	    snprintf(path, sizeof(path), "%s/%s", pl->pl_path, pl->pl_header);

	if (n >= (int)sizeof(path) ||
	    (pl->pl_header[0] == '.' && !pl->pl_dotfiles &&
		!target_dotname(
		    pl->pl_dotnames, pl->pl_header, strlen(pl->pl_header))))
		return -ENOENT;
	return pw_root_open_file(pl->pl_root, path);
}

void
autoindex_header(const struct place *pl, struct buf *b)
{
	size_t len, size = AUTOINDEX_HEADER_MOST + 1;
	char *text;
	int fd;

	fd = autoindex_header_open(pl);
	if (fd < 0)
		return;
	text = malloc(size);
	if (text != NULL && autoindex_header_read_all(fd, text, size, &len) &&
	    autoindex_header_is_utf8(text, len))
		autoindex_header_show(pl->pl_header, text, len, b);
	free(text);
	close(fd);
}
