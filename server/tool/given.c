/*
 * given: see given.h.  The path is walked name by name, from open directories.
 */
#include "server/tool/given.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS 40 /* maximum links in a path, as in Linux */
#define STEP  (O_PATH | O_NOFOLLOW | O_CLOEXEC)

struct walk_to {
	int wt_fd;		    /* directory reached so far */
	unsigned wt_links;	    /* links followed so far */
	char wt_rest[2 * PATH_MAX]; /* rest of the path */
};

/*
 * Returns the mode bits that let other users write.  The group of a user's own directory usually
 * has only that user, so the group bit counts only for root.  If the directory has a POSIX ACL, the
 * group bits are the mask of the ACL.
 */
static mode_t
tool_given_others(const struct stat *st)
{
	return geteuid() == 0 && st->st_gid != 0 ? S_IWOTH | S_IWGRP : S_IWOTH;
}

static bool
tool_given_may_link(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 &&
	       (st.st_uid == 0 || st.st_uid == geteuid()) &&
	       (st.st_mode & tool_given_others(&st)) == 0;
}

static int
tool_given_enter(struct walk_to *wt, int fd)
{
	if (fd == -1)
		return -errno;
	if (wt->wt_fd != -1)
		close(wt->wt_fd);
	wt->wt_fd = fd;
	return 0;
}

/* Replaces the link `name` in wt_rest by its target. */
static int
tool_given_follow(struct walk_to *wt, const char *name, const char *behind)
{
	char target[PATH_MAX], whole[sizeof(wt->wt_rest)];
	ssize_t n = readlinkat(wt->wt_fd, name, target, sizeof(target) - 1);

	if (n == -1)
		return -errno;
	target[n] = '\0';
	if (!tool_given_may_link(wt->wt_fd))
		return -EPERM;
	if (++wt->wt_links > LINKS)
		return -ELOOP;
	if ((size_t)snprintf(whole, sizeof(whole), "%s/%s", target, behind) >=
	    sizeof(whole))
		return -ENAMETOOLONG;
	memcpy(wt->wt_rest, whole, strlen(whole) + 1);
	return target[0] == '/' ? tool_given_enter(wt, open("/", STEP)) : 0;
}

static int
tool_given_step(struct walk_to *wt, const char *name, const char *behind)
{
	int fd = openat(wt->wt_fd, name, STEP), error;
	struct stat st;

	if (fd == -1)
		return -errno;
	if (fstat(fd, &st) == 0 && !S_ISLNK(st.st_mode)) {
		error = tool_given_enter(wt, fd);
		memmove(wt->wt_rest, behind, strlen(behind) + 1);
		return error;
	}
	close(fd);
	return tool_given_follow(wt, name, behind);
}

int
given_open(const char *path)
{
	struct walk_to wt = {.wt_fd = -1};
	char name[NAME_MAX + 1];
	const char *p;
	size_t len;
	int error, fd = -1;

	if (path[0] == '\0')
		return -ENOENT;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(wt.wt_rest, path, strlen(path) + 1);
	error = tool_given_enter(&wt, open(path[0] == '/' ? "/" : ".", STEP));
	while (error == 0) {
		p = wt.wt_rest + strspn(wt.wt_rest, "/");
		len = strcspn(p, "/");
		if (len == 0)
			break;
		if (len > NAME_MAX) {
			error = -ENAMETOOLONG;
			break;
		}
		memcpy(name, p, len);
		name[len] = '\0';
		error = tool_given_step(&wt, name, p + len);
	}
	if (error == 0) {
		fd = openat(wt.wt_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		error = fd == -1 ? -errno : 0;
	}
	if (wt.wt_fd != -1)
		close(wt.wt_fd);
	return error == 0 ? fd : error;
}
