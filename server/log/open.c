/*
 * open: see open.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "server/log/open.h"

#define PATH_LEN 4096
#define HOPS	 16 /* maximum number of links */

static int
log_open_one(const char *path, int flags)
{
	int fd;

	/* O_NONBLOCK prevents open and write from blocking on a FIFO. */
	do {
		fd = open(path,
		    O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY |
			O_CLOEXEC | flags,
		    0640);
	} while (fd == -1 && errno == EINTR);
	if (fd == -1)
		return -errno;
	/* FreeBSD ignores O_CLOEXEC for /dev/stdout and the like. */
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

/* Returns true for the error that O_NOFOLLOW causes: ELOOP, or EMLINK on FreeBSD. */
static bool
log_open_is_link(int error)
{
	return error == -ELOOP || error == -EMLINK;
}

/*
 * Replaces the path of a link by the path of its target.  Returns 0, 1 if only open(2) can follow
 * the link (os_read_link), or -errno: -ELOOP if the owner of the link may not choose the file.
 */
static int
log_open_follow_link(char path[PATH_LEN])
{
	char to[PATH_LEN] = "", *name = strrchr(path, '/');
	uid_t owner;
	int error = os_read_link(path, to, sizeof(to), &owner);
	size_t len;

	if (error < 0)
		return error;
	if (owner != 0 && owner != geteuid())
		return -ELOOP;
	if (error != 0)
		return error;
	name = to[0] == '/' || name == NULL ? path : name + 1;
	len = strlen(to) + 1;
	if ((size_t)(name - path) + len > PATH_LEN)
		return -ENAMETOOLONG;
	memcpy(name, to, len);
	return 0;
}

int
log_file_open(const char *path)
{
	char here[PATH_LEN];
	size_t len = strlen(path) + 1;
	int fd, error, hops;

	if (len > sizeof(here))
		return -ENAMETOOLONG;
	memcpy(here, path, len);
	for (hops = 0; hops < HOPS; hops++) {
		fd = log_open_one(here, O_NOFOLLOW);
		if (!log_open_is_link(fd))
			return fd;
		error = log_open_follow_link(here);
		if (error != 0)
			return error == 1 ? log_open_one(here, 0) : error;
	}
	return -ELOOP;
}

static int
log_open_check_access(const char *path, int mode)
{
	return access(path, mode) == 0 ? 0 : -errno;
}

int
log_file_try(const char *path)
{
	char dir[PATH_LEN];
	struct stat st;
	char *slash;

	if (stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return -EISDIR;
		return log_open_check_access(path, W_OK);
	}
	if (errno != ENOENT || strlen(path) >= sizeof(dir))
		return -errno;
	memcpy(dir, path, strlen(path) + 1);
	slash = strrchr(dir, '/');
	if (slash == NULL)
		return log_open_check_access(".", W_OK | X_OK);
	slash[slash == dir ? 1 : 0] = '\0';
	return log_open_check_access(dir, W_OK | X_OK);
}
