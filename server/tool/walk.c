/*
 * walk: see walk.h.
 */
#include "server/tool/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

void
walk_ref(struct walk_dir *dir)
{
	atomic_fetch_add(&dir->wd_refs, 1);
}

void
walk_unref(struct walk_dir **dirp)
{
	struct walk_dir *dir = *dirp;

	*dirp = NULL;
	if (dir == NULL || atomic_fetch_sub(&dir->wd_refs, 1) > 1)
		return;
	closedir(dir->wd_dir);
	free(dir->wd_path);
	free(dir);
}

static char *
join(const struct walk_dir *parent, const char *name)
{
	size_t len = parent == NULL ? 0 : strlen(parent->wd_path);
	bool slash = len > 0 && parent->wd_path[len - 1] == '/';
	char *path;

	if (parent == NULL)
		return strdup(name);
	if (asprintf(
		&path, "%s%s%s", parent->wd_path, slash ? "" : "/", name) == -1)
		return NULL;
	return path;
}

/* 0 or -errno. */
static int
open_dir(struct walk_dir *parent, const char *name, struct walk_dir **out)
{
	int at = parent == NULL ? AT_FDCWD : parent->wd_fd;
	struct walk_dir *dir = calloc(1, sizeof(*dir));
	int fd, error;

	if (dir == NULL)
		return -ENOMEM;
	fd = openat(at, name, OPEN_DIR | (parent == NULL ? 0 : O_NOFOLLOW));
	dir->wd_fd = fd;
	dir->wd_dir = fd == -1 ? NULL : fdopendir(fd);
	error = dir->wd_dir == NULL ? -errno : 0;
	dir->wd_path = join(parent, name);
	if (error == 0 && dir->wd_path != NULL) {
		atomic_init(&dir->wd_refs, 1);
		*out = dir;
		return 0;
	}
	if (dir->wd_dir != NULL)
		closedir(dir->wd_dir);
	else if (fd != -1)
		close(fd);
	free(dir->wd_path);
	free(dir);
	return error != 0 ? error : -ENOMEM;
}

/* As in a directory entry; DT_UNKNOWN: it is gone, or cannot be asked. */
static unsigned char
type_of(const struct walk_dir *dir, const struct dirent *de)
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

static void walk(const struct walk *, struct walk_dir *parent, const char *);

static void
entry(const struct walk *wk, struct walk_dir *dir, const struct dirent *de)
{
	const char *name = de->d_name;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return;
	switch (type_of(dir, de)) {
	case DT_DIR:
		if (wk->wk_enter(wk->wk_arg, name))
			walk(wk, dir, name);
		break;
	case DT_REG:
		wk->wk_file(wk->wk_arg, &(struct walk_file){dir, name});
		break;
	default:
		break;
	}
}

static void
walk(const struct walk *wk, struct walk_dir *parent, const char *name)
{
	struct walk_dir *dir;
	struct dirent *de;
	int error = open_dir(parent, name, &dir);

	/* Between the name and the open it was removed, or became a link. */
	if (parent != NULL &&
	    (error == -ENOENT || error == -ENOTDIR || error == -ELOOP))
		return;
	if (error != 0) {
		wk->wk_failed(wk->wk_arg, parent, name, error);
		return;
	}
	while (
	    !wk->wk_stopped() && (errno = 0, de = readdir(dir->wd_dir)) != NULL)
		entry(wk, dir, de);
	if (errno != 0 && !wk->wk_stopped())
		wk->wk_failed(wk->wk_arg, dir, NULL, -errno);
	walk_unref(&dir);
}

void
walk_tree(const struct walk *wk, const char *path)
{
	walk(wk, NULL, path);
}
