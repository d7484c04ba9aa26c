/*
 * owner: see inside.h.  CAP_FOWNER is good for all of it: what the owner of a file may
 * do, and what a sticky directory keeps others from.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "tests/inside/inside.h"

#define THEIRS "sticky/theirs"

/* Does something with the file, open for reading. */
static int
with_theirs(struct inside *in, int (*f)(int fd))
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC};
	int fd = (int)syscall(
	    SYS_openat2, inside_root(in), THEIRS, &how, sizeof(how));
	int error;

	if (fd == -1)
		return -1;
	error = f(fd) == -1 ? errno : 0;
	close(fd);
	errno = error;
	return error == 0 ? 0 : -1;
}

static int
ask(int fd)
{
	int present = os_cachestat(fd, 0, 1);

	errno = present < 0 ? -present : 0;
	return present < 0 ? -1 : 0;
}

int
inside_ask_theirs(struct inside *in)
{
	return with_theirs(in, ask);
}

static int
change_mode(int fd)
{
	return fchmod(fd, 0644);
}

int
inside_chmod_theirs(struct inside *in)
{
	return with_theirs(in, change_mode);
}

static int
change_times(int fd)
{
	static const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

	return futimens(fd, times);
}

int
inside_utimes_theirs(struct inside *in)
{
	return with_theirs(in, change_times);
}

/* acl(5): as mode 0644 has it. */
static int
change_acl(int fd)
{
	static const unsigned char acl[] = {2, 0, 0, 0, /* its version */
	    1, 0, 6, 0, 255, 255, 255, 255,		/* owner */
	    4, 0, 4, 0, 255, 255, 255, 255,		/* group */
	    32, 0, 4, 0, 255, 255, 255, 255};		/* others */

	return fsetxattr(fd, "system.posix_acl_access", acl, sizeof(acl), 0);
}

int
inside_acl_theirs(struct inside *in)
{
	return with_theirs(in, change_acl);
}

/* To what they are: who may not is told so all the same. */
static int
change_flags(int fd)
{
	int flags = 0;

	return ioctl(fd, FS_IOC_GETFLAGS, &flags) == -1
		   ? -1
		   : ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

int
inside_flags_theirs(struct inside *in)
{
	return with_theirs(in, change_flags);
}

static int
set_noatime(int fd)
{
	return fcntl(fd, F_SETFL, O_NOATIME);
}

int
inside_noatime_theirs(struct inside *in)
{
	return with_theirs(in, set_noatime);
}

/* 0 also where it does nothing, since the file is another's. */
static int
page_out(int fd)
{
	void *map = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
	int error;

	if (map == MAP_FAILED)
		return -1;
	error = madvise(map, 1, MADV_PAGEOUT) == -1 ? errno : 0;
	munmap(map, 1);
	errno = error;
	return error == 0 ? 0 : -1;
}

int
inside_pageout_theirs(struct inside *in)
{
	return with_theirs(in, page_out);
}

/* fs.protected_hardlinks: of what one may not write only the owner makes a link. */
int
inside_link_theirs(struct inside *in)
{
	int root = inside_root(in);

	return linkat(root, THEIRS, root, "linked", 0) == 0
		   ? unlinkat(root, "linked", 0)
		   : -1;
}

int
inside_rename_theirs(struct inside *in)
{
	int root = inside_root(in);

	return renameat(root, THEIRS, root, "sticky/moved") == 0
		   ? renameat(root, "sticky/moved", root, THEIRS)
		   : -1;
}

/* It is tried twice. */
int
inside_unlink_theirs(struct inside *in)
{
	int root = inside_root(in);

	return unlinkat(root, "sticky/spare1", 0) == 0 ||
		       (errno == ENOENT &&
			   unlinkat(root, "sticky/spare2", 0) == 0)
		   ? 0
		   : -1;
}
