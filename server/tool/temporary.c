/*
 * temporary: see temporary.h.
 */
#include "server/tool/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define PREFIX ".pagewise-"
#define SUFFIX ".tmp"
#define DIGITS "0123456789abcdef"
#define RANDOM 16 /* digits between PREFIX and SUFFIX */

/*
 * Creates a file.  Returns 0, -EEXIST if a cleanup removed the file as a leftover before it was
 * locked, so that the caller must try again, or another -errno.
 */
static int
temporary_create_one(struct temporary *tmp)
{
	struct stat st;
	uint64_t number;
	int fd;

	if (getentropy(&number, sizeof(number)) == -1)
		return -errno;
	snprintf(tmp->tmp_name, sizeof(tmp->tmp_name), PREFIX "%016llx" SUFFIX,
	    (unsigned long long)number);
	fd = openat(tmp->tmp_dir, tmp->tmp_name,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		return -errno;
	tmp->tmp_fd = fd;
	if (flock(fd, LOCK_EX) == 0 && fstat(fd, &st) == 0 &&
	    st.st_nlink == 0) {
		close(fd);
		return -EEXIST;
	}
	return 0;
}

int
temporary_create(struct temporary *tmp, int dirfd)
{
	int error;

	tmp->tmp_dir = dirfd;
	do
		error = temporary_create_one(tmp);
	while (error == -EEXIST);
	return error;
}

void
temporary_remove(struct temporary *tmp)
{
	unlinkat(tmp->tmp_dir, tmp->tmp_name, 0);
	close(tmp->tmp_fd);
}

static void
temporary_set_owner(int fd, const struct stat *as)
{
	mode_t mode = as->st_mode & 0777;
	struct stat st;

	if (fchown(fd, as->st_uid, as->st_gid) == -1 &&
	    fchown(fd, (uid_t)-1, as->st_gid) == -1 && fstat(fd, &st) == 0 &&
	    st.st_gid != as->st_gid)
		mode &= ~(mode_t)070 | (mode & 07) << 3;
	fchmod(fd, mode);
}

int
temporary_commit(struct temporary *tmp, const char *name, const struct stat *as)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, as->st_mtim};
	int error = 0;

	temporary_set_owner(tmp->tmp_fd, as);
	if (futimens(tmp->tmp_fd, times) == -1 || fsync(tmp->tmp_fd) == -1 ||
	    renameat(tmp->tmp_dir, tmp->tmp_name, tmp->tmp_dir, name) == -1)
		error = -errno;
	if (error != 0)
		unlinkat(tmp->tmp_dir, tmp->tmp_name, 0);
	close(tmp->tmp_fd);
	return error;
}

bool
temporary_is(const char *name)
{
	size_t len = strlen(PREFIX);

	return strncmp(name, PREFIX, len) == 0 &&
	       strspn(name + len, DIGITS) == RANDOM &&
	       strcmp(name + len + RANDOM, SUFFIX) == 0;
}

void
temporary_clean(int dirfd, const char *name)
{
	int fd =
	    openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd == -1)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		unlinkat(dirfd, name, 0);
	close(fd);
}
