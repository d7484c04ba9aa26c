/*
 * walk: see walk.h.
 */
#include "server/tool/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/tool/given.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

void
walk_ref(struct walk_dir *dir)
{
	atomic_fetch_add(&dir->wd_refs, 1);
}

/*
 * Releases a reference.  A directory without references is closed, and releases its reference to
 * the parent.
 */
void
walk_unref(struct walk_dir **dirp)
{
	struct walk_dir *dir = *dirp, *parent;

	*dirp = NULL;
	for (; dir != NULL && atomic_fetch_sub(&dir->wd_refs, 1) == 1;
	     dir = parent) {
		parent = dir->wd_parent;
		closedir(dir->wd_dir);
		free(dir);
	}
}

static int
tool_walk_open_fd(const struct walk_dir *parent, const char *name)
{
	int fd;

	if (parent == NULL)
		return given_open(name);
	fd = openat(parent->wd_fd, name, OPEN_DIR | O_NOFOLLOW);
	return fd == -1 ? -errno : fd;
}

/*
 * Opens a directory.  On success takes ownership of the caller's reference to the parent.  Returns
 * 0 or -errno.
 */
static int
tool_walk_open_dir(
    struct walk_dir *parent, const char *name, struct walk_dir **out)
{
	size_t size = strlen(name) + 1;
	struct walk_dir *dir;
	int fd, error = 0;

	if (parent != NULL && parent->wd_depth == WALK_DEPTH)
		return -E2BIG;
	fd = tool_walk_open_fd(parent, name);
	if (fd < 0)
		return fd;
	dir = calloc(1, sizeof(*dir) + size);
	if (dir == NULL)
		error = -ENOMEM;
	else if ((dir->wd_dir = fdopendir(fd)) == NULL)
		error = -errno;
	if (error != 0) {
		close(fd);
		free(dir);
		return error;
	}
	dir->wd_fd = fd;
	dir->wd_parent = parent;
	dir->wd_depth = parent == NULL ? 0 : parent->wd_depth + 1;
	memcpy(dir->wd_name, name, size);
	atomic_init(&dir->wd_refs, 1);
	*out = dir;
	return 0;
}

/*
 * Returns the type of a directory entry.  If the file system does not provide the type, examines
 * the file, and returns DT_DIR, DT_REG or DT_UNKNOWN.
 */
static unsigned char
tool_walk_type_of(const struct walk_dir *dir, const struct dirent *de)
{
	struct stat st;

	if (de->d_type != DT_UNKNOWN)
		return de->d_type;
	if (fstatat(dir->wd_fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return DT_UNKNOWN;
	return S_ISDIR(st.st_mode)   ? DT_DIR
	       : S_ISREG(st.st_mode) ? DT_REG
				     : DT_UNKNOWN;
}

/*
 * Handles an entry.  Returns the directory to continue with: that of the entry if the walk has
 * entered it, else `dir`.
 */
static struct walk_dir *
tool_walk_entry(
    const struct walk *wk, struct walk_dir *dir, const struct dirent *de)
{
	const char *name = de->d_name;
	unsigned char type;
	int error;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return dir;
	type = tool_walk_type_of(dir, de);
	if (type == DT_REG)
		wk->wk_file(wk->wk_arg, &(struct walk_file){dir, name});
	if (type != DT_DIR || !wk->wk_enter(wk->wk_arg, name))
		return dir;
	error = tool_walk_open_dir(dir, name, &dir);
	/* Ignores an entry that was removed, or replaced by a link, before the open. */
	if (error != 0 && error != -ENOENT && error != -ENOTDIR &&
	    error != -ELOOP)
		wk->wk_failed(wk->wk_arg, dir, name, error);
	return dir;
}

static struct walk_dir *
tool_walk_leave(struct walk_dir *dir)
{
	struct walk_dir *parent = dir->wd_parent;

	if (parent != NULL)
		walk_ref(parent);
	walk_unref(&dir);
	return parent;
}

void
walk_tree(const struct walk *wk, const char *path)
{
	struct walk_dir *dir = NULL;
	const struct dirent *de;
	int error = tool_walk_open_dir(NULL, path, &dir);

	if (error != 0)
		wk->wk_failed(wk->wk_arg, NULL, path, error);
	while (dir != NULL) {
		errno = 0;
		de = wk->wk_stopped() ? NULL : readdir(dir->wd_dir);
		if (de != NULL) {
			dir = tool_walk_entry(wk, dir, de);
			continue;
		}
		if (errno != 0 && !wk->wk_stopped())
			wk->wk_failed(wk->wk_arg, dir, NULL, -errno);
		dir = tool_walk_leave(dir);
	}
}

const char *
walk_error(int error)
{
	if (error == -E2BIG)
		return "the path has more than 2048 directory levels and is "
		       "skipped";
	if (error == -EPERM)
		return "the path leads through a symbolic link that another "
		       "user may change; pass the real path instead";
	return strerror(-error);
}

/* ------------------------------------------------------------------- paths */

_Static_assert(WALK_DEPTH == 2048, "walk_error");

long
walk_path(const struct walk_file *wf, char *path, size_t size)
{
	const struct walk_dir *dir = wf->wf_dir;
	const char *name = wf->wf_name;
	size_t len, at = size;

	for (;; name = dir->wd_name, dir = dir->wd_parent) {
		len = strlen(name);
		if (len + 2 > at)
			return -ENAMETOOLONG;
		at -= len;
		memcpy(path + at, name, len);
		path[--at] = '/';
		if (dir->wd_parent == NULL)
			break;
	}
	memmove(path, path + at, size - at);
	path[size - at] = '\0';
	return (long)(size - at);
}

static void
tool_walk_print_name(FILE *f, const char *name)
{
	for (; *name != '\0'; name++) {
		unsigned char c = (unsigned char)*name;

		if (c < ' ' || c >= 0x7f || c == '\\')
			fprintf(f, "\\x%02X", c);
		else
			fputc(c, f);
	}
}

static const struct walk_dir *
tool_walk_at_depth(const struct walk_dir *dir, unsigned depth)
{
	while (dir->wd_depth > depth)
		dir = dir->wd_parent;
	return dir;
}

void
walk_print(FILE *f, const struct walk_dir *dir, const char *name)
{
	const char *part = "";
	bool slash = true;

	for (unsigned i = 0; dir != NULL && i <= dir->wd_depth; i++) {
		fputs(slash ? "" : "/", f);
		part = tool_walk_at_depth(dir, i)->wd_name;
		slash = part[0] == '\0' || part[strlen(part) - 1] == '/';
		tool_walk_print_name(f, part);
	}
	if (name == NULL)
		return;
	fputs(slash ? "" : "/", f);
	tool_walk_print_name(f, name);
}
