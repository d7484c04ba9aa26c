/*
 * freebsd_fs: os_ask_means, which chooses how files of a file system are sent.  It has a file
 * of its own, so that tests on other systems can build it with kernel calls of their own.
 */
#include <sys/param.h>
#include <sys/mount.h>

#include <string.h>
#include <unistd.h>

#include "lib/os/meter.h"
#include "lib/os/os.h"

/*
 * File systems and their residency checks.  sendfile(2) does not wait if the file system's
 * getpages_async returns before the disk read ends, as in ufs and ext2fs.  Files of tmpfs are in
 * memory.  In ZFS, NFS and the rest, getpages_async reads before it returns, and the contents of
 * their own caches are unknown.
 */
static const struct {
	const char *name;
	enum os_ask ask;
} filesystems[] = {
    {"ufs", OS_ASK_NATIVE},
    {"ext2fs", OS_ASK_NATIVE},
    {"tmpfs", OS_ASK_NEVER_COLD},
    {"zfs", OS_ASK_FETCH},
    {"nfs", OS_ASK_FETCH},
    {"fusefs", OS_ASK_FETCH},
    {"msdosfs", OS_ASK_FETCH},
    {"cd9660", OS_ASK_FETCH},
};

#define NFILESYSTEMS (sizeof(filesystems) / sizeof(filesystems[0]))

/*
 * Copies at most size bytes, including the NUL.  Replaces characters that cannot be quoted with
 * '?'.
 */
static void
freebsd_quote(char *to, size_t size, const char *from)
{
	size_t i;

	for (i = 0; i + 1 < size && from[i] != '\0'; i++)
		to[i] = from[i] < ' ' || from[i] == 0x7f || from[i] == '"' ||
				from[i] == '\\'
			    ? '?'
			    : from[i];
	to[i] = '\0';
}

/* Returns OS_ASK_FETCH if blocks are smaller than a page, since sendfile(2) waits for such blocks. */
static enum os_ask
freebsd_native_or_fetch(const struct statfs *sf, struct os_fs *fs)
{
	const char *why;

	if (os_native_probe(&why) != 0 ||
	    sf->f_iosize < (uint64_t)getpagesize())
		return OS_ASK_FETCH;
	fs->fs_block = sf->f_iosize;
	return OS_ASK_NATIVE;
}

/* Also fills in the names of file systems that are not listed. */
enum os_ask
os_ask_means(int fd, struct os_fs *fs)
{
	struct statfs sf;
	size_t i;

	freebsd_quote(fs->fs_name, sizeof(fs->fs_name), "unknown file system");
	meter_call(METER_FSTATFS);
	if (fstatfs(fd, &sf) == -1)
		return OS_ASK_FETCH;
	freebsd_quote(fs->fs_name, sizeof(fs->fs_name), sf.f_fstypename);
	freebsd_quote(fs->fs_mount, sizeof(fs->fs_mount), sf.f_mntonname);
	/* Network file systems do not have MNT_LOCAL, and FUSE does not either. */
	fs->fs_local = (sf.f_flags & MNT_LOCAL) != 0;
	for (i = 0; i < NFILESYSTEMS; i++)
		if (strcmp(filesystems[i].name, sf.f_fstypename) == 0)
			break;
	if (i == NFILESYSTEMS)
		return OS_ASK_FETCH;
	return filesystems[i].ask == OS_ASK_NATIVE
		   ? freebsd_native_or_fetch(&sf, fs)
		   : filesystems[i].ask;
}
