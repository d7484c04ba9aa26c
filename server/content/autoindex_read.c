/*
 * autoindex_read: see autoindex_read.h.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/util/clock.h"
#include "server/content/autoindex_header.h"
#include "server/content/autoindex_html.h"
#include "server/content/autoindex_json.h"
#include "server/content/autoindex_read.h"
#include "server/http/coding.h"
#include "server/http/target.h"

#define ROW_HTML 120	 /* minimum bytes of an HTML row without its names */
#define ROW_JSON 80	 /* minimum bytes of a JSON row without its names */
#define BLOCK_US 1000000 /* maximum time for a block, microseconds */
#define WHOLE_US 5000000 /* maximum time for a whole page, microseconds */

struct autoindex_names {
	struct row *ns_rows;
	size_t ns_count, ns_room;
	size_t ns_shown; /* number of rows to show, at the front of ns_rows */
	size_t ns_row;	 /* ROW_HTML or ROW_JSON */
	size_t ns_text;	 /* estimated bytes of the rows */
	uint64_t ns_until;
};

static bool
autoindex_read_shown(const struct place *pl, const char *name)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	return name[0] != '.' || pl->pl_dotfiles ||
	       target_dotname(pl->pl_dotnames, name, strlen(name));
}

static void
autoindex_read_look_at_digest(int dirfd, struct row *row, const struct stat *st)
{
	char text[DIGEST_TEXT];
	struct digest dg;
	long n;

	n = pw_name_attribute(
	    dirfd, row->row_name, DIGEST_ATTRIBUTE, text, sizeof(text));
	if (n > 0 && digest_parse((struct str){text, (size_t)n}, &dg) &&
	    digest_is_of(&dg, st->st_size, &st->st_mtim))
		digest_base64(dg.dg_hash, row->row_digest);
}

/*
 * Reads the state of a link's target.  The target must be below the root, as for a requested file.
 * Returns 0 or -errno.
 */
static int
autoindex_read_follow(const struct place *pl, const char *name, struct stat *st)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", pl->pl_path, name);

	if (n >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return pw_root_stat(pl->pl_root, path, st);
}

static enum row_type
autoindex_read_type_of(mode_t mode)
{
	if (S_ISDIR(mode))
		return ROW_DIRECTORY;
	return S_ISREG(mode) ? ROW_FILE : ROW_OTHER;
}

/*
 * Fills in a row.  A link gets the type of its target, because programs that read listings
 * recognize directories by the '/'.  A link whose target is missing, outside the root or on another
 * file system has no size and no date.  A mount point is a directory without a date.
 */
static void
autoindex_read_look_at(int dirfd, const struct place *pl, struct row *row)
{
	struct stat st;
	bool link;
	int error;

	error = pw_stat_name(dirfd, row->row_name, &st);
	row->row_type = error == -EXDEV ? ROW_DIRECTORY : ROW_OTHER;
	if (error != 0)
		return;
	row->row_changed = st.st_ctim.tv_sec;
	link = S_ISLNK(st.st_mode);
	if (link && autoindex_read_follow(pl, row->row_name, &st) != 0)
		return;
	if (st.st_ctim.tv_sec > row->row_changed)
		row->row_changed = st.st_ctim.tv_sec;
	row->row_type = autoindex_read_type_of(st.st_mode);
	row->row_known = true;
	row->row_size = row->row_type == ROW_FILE ? st.st_size : 0;
	row->row_mtime = st.st_mtim.tv_sec;
	if (row->row_type == ROW_FILE && !link && pl->pl_digests &&
	    pl->pl_view.vw_json)
		autoindex_read_look_at_digest(dirfd, row, &st);
}

/*
 * Returns true if the row is a compressed sibling.  Looks up the name without its suffix; this
 * costs little, because the listing looks up that name too.
 */
static bool
autoindex_read_is_sibling(
    int dirfd, const struct place *pl, const struct row *row)
{
	enum coding coding = coding_of_name(row->row_name);
	char stem[NAME_MAX + 1];
	struct stat st;
	int len;

	if (coding == CODING_NONE || (pl->pl_siblings & 1u << coding) == 0 ||
	    row->row_type == ROW_DIRECTORY)
		return false;
	len = (int)(strlen(row->row_name) - strlen(coding_suffix(coding)));
	snprintf(stem, sizeof(stem), "%.*s", len, row->row_name);
	return pw_stat_name(dirfd, stem, &st) == 0 &&
	       (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode));
}

/* Fills in the row of a name.  Returns false if the listing must not show the name. */
static bool
autoindex_read_look_at_shown(int dirfd, const struct place *pl, struct row *row)
{
	autoindex_read_look_at(dirfd, pl, row);
	return !autoindex_read_is_sibling(dirfd, pl, row);
}

bool
autoindex_read_room(struct buf *b)
{
	struct buf_list none = {0};

	b->b_len = 0;
	return buf_reserve(b, &none, AUTOINDEX_READ_BLOCK + BUF_SIZE);
}

int
autoindex_read_open(const struct place *pl, DIR **dirp)
{
	int fd, error;

	fd = pw_root_open_dir(pl->pl_root, pl->pl_path);
	if (fd < 0)
		return fd;
	*dirp = fdopendir(fd);
	if (*dirp != NULL)
		return 0;
	error = -errno;
	close(fd);
	return error;
}

static uint64_t
autoindex_read_deadline(const struct place *pl, uint64_t most_us)
{
	uint64_t patience = pl->pl_patience_us;

	return clock_now() +
	       (patience > 0 && patience < most_us ? patience : most_us);
}

void
autoindex_read_begin(const struct place *pl, struct buf *b, bool sorted)
{
	if (pl->pl_view.vw_json) {
		autoindex_json_begin(b);
		return;
	}
	autoindex_html_begin(b, pl->pl_title);
	if (pl->pl_header != NULL)
		autoindex_header(pl, b);
	autoindex_html_table(b, pl->pl_title, sorted ? &pl->pl_view : NULL);
}

void
autoindex_read_end(const struct place *pl, struct buf *b)
{
	if (pl->pl_view.vw_json)
		autoindex_json_end(b);
	else
		autoindex_html_end(b);
}

static void
autoindex_read_add_row(
    const struct place *pl, struct buf *b, const struct row *row, bool first)
{
	if (pl->pl_view.vw_json)
		autoindex_json_row(b, row, first);
	else
		autoindex_html_row(b, row);
}

int
autoindex_read_block(
    DIR *dir, const struct place *pl, struct buf *b, bool first, bool *end)
{
	uint64_t until = autoindex_read_deadline(pl, BLOCK_US);
	size_t before = b->b_len;
	struct dirent *de;
	struct row row;

	*end = false;
	while (b->b_len < AUTOINDEX_READ_BLOCK &&
	       (b->b_len == before || clock_now() < until)) {
		errno = 0;
		de = readdir(dir);
		if (de == NULL) {
			*end = errno == 0;
			return -errno;
		}
		if (!autoindex_read_shown(pl, de->d_name))
			continue;
		row = (struct row){.row_name = de->d_name};
		if (!autoindex_read_look_at_shown(dirfd(dir), pl, &row))
			continue;
		autoindex_read_add_row(
		    pl, b, &row, first && b->b_len == before);
		if (b->b_failed)
			return -ENOMEM;
	}
	return 0;
}

/* ----------------------------------------------------------- all, sorted */

/* View for autoindex_read_compare; a variable, because qsort(3) passes no argument. */
static _Thread_local struct view sorted_for;

static int
autoindex_read_compare(const void *a, const void *b)
{
	return view_compare(sorted_for, a, b);
}

static int
autoindex_read_add_name(struct autoindex_names *ns, const char *name)
{
	size_t room = ns->ns_room == 0 ? 64 : 2 * ns->ns_room;
	struct row *rows;
	char *copy;

	ns->ns_text += ns->ns_row + 2 * strlen(name);
	if (ns->ns_text > AUTOINDEX_READ_WHOLE || clock_now() >= ns->ns_until)
		return -E2BIG;
	if (ns->ns_count == ns->ns_room) {
		rows = realloc(ns->ns_rows, room * sizeof(*rows));
		if (rows == NULL)
			return -ENOMEM;
		ns->ns_rows = rows;
		ns->ns_room = room;
	}
	copy = strdup(name);
	if (copy == NULL)
		return -ENOMEM;
	ns->ns_rows[ns->ns_count++] = (struct row){.row_name = copy};
	return 0;
}

static int
autoindex_read_names(
    DIR *dir, const struct place *pl, struct autoindex_names *ns)
{
	struct dirent *de;
	int error = 0;

	while (error == 0 && (errno = 0, de = readdir(dir)) != NULL)
		if (autoindex_read_shown(pl, de->d_name))
			error = autoindex_read_add_name(ns, de->d_name);
	return error == 0 ? -errno : error;
}

static int
autoindex_read_render(
    const struct place *pl, const struct autoindex_names *ns, struct buf *b)
{
	size_t i;

	for (i = 0; i < ns->ns_shown && b->b_len <= AUTOINDEX_READ_WHOLE; i++)
		autoindex_read_add_row(pl, b, &ns->ns_rows[i], i == 0);
	autoindex_read_end(pl, b);
	if (b->b_failed)
		return -ENOMEM;
	return b->b_len > AUTOINDEX_READ_WHOLE ? -E2BIG : 0;
}

/*
 * Fills in all rows, and moves the rows to show to the front of ns_rows.  Returns 0, or -E2BIG if
 * ns_until has passed.
 */
static int
autoindex_read_look_at_names(const struct place *pl, DIR *dir,
    struct autoindex_names *ns, struct listing_validator *lv)
{
	size_t i, kept = 0, count = ns->ns_count;
	struct row row;

	for (i = 0; i < count; i++) {
		if (clock_now() >= ns->ns_until)
			return -E2BIG;
		if (autoindex_read_look_at_shown(
			dirfd(dir), pl, &ns->ns_rows[i])) {
			row = ns->ns_rows[i];
			ns->ns_rows[i] = ns->ns_rows[kept];
			ns->ns_rows[kept++] = row;
			validator_row(lv, &row);
		}
	}
	ns->ns_shown = kept;
	return 0;
}

static int
autoindex_read_and_render(const struct place *pl, DIR *dir,
    struct autoindex_names *ns, struct buf *b, struct listing_validator *lv)
{
	int error;

	ns->ns_until = autoindex_read_deadline(pl, WHOLE_US);
	ns->ns_row = pl->pl_view.vw_json ? ROW_JSON : ROW_HTML;
	if (!autoindex_read_room(b))
		return -ENOMEM;
	autoindex_read_begin(pl, b, true);
	validator_text(lv, b->b_data, b->b_len);
	error = autoindex_read_names(dir, pl, ns);
	if (error == 0)
		error = autoindex_read_look_at_names(pl, dir, ns, lv);
	if (error != 0) {
		lv->lv_whole = false;
		return error;
	}
	sorted_for = pl->pl_view;
	if (ns->ns_shown > 0)
		qsort(ns->ns_rows, ns->ns_shown, sizeof(*ns->ns_rows),
		    autoindex_read_compare);
	return autoindex_read_render(pl, ns, b);
}

int
autoindex_read_whole(const struct place *pl, struct buf *b, bool *same,
    struct listing_validator *lv)
{
	struct autoindex_names ns = {0};
	time_t now = time(NULL);
	struct stat st = {0};
	DIR *dir;
	size_t i;
	int error;

	error = autoindex_read_open(pl, &dir);
	if (error != 0)
		return error;
	error = fstat(dirfd(dir), &st) == 0 ? 0 : -errno;
	*same =
	    error == 0 && st.st_dev == pl->pl_dev && st.st_ino == pl->pl_ino;
	validator_begin(lv, &st, pl->pl_view, now);
	if (error == 0)
		error = autoindex_read_and_render(pl, dir, &ns, b, lv);
	closedir(dir);
	for (i = 0; i < ns.ns_count; i++)
		free(ns.ns_rows[i].row_name);
	free(ns.ns_rows);
	return error;
}
