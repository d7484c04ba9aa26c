/*
 * freebsd_fs: os_ask_means, which chooses how files of a file system are sent.  The function has a
 * file of its own, so that tests on other systems can build it with kernel calls of their own.
 */
#include <sys/param.h>
#include <sys/mount.h>

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/freebsd.h"
#include "lib/os/meter.h"
#include "lib/os/os.h"

/*
 * File systems and their residency checks.  sendfile(2) does not wait if the file system's
 * getpages_async returns before the disk read ends, as in ufs and ext2fs.  In tmpfs, getpages_async
 * waits for pages that were swapped out.  In ZFS, NFS and the rest, getpages_async ends after the
 * read; these file systems have caches of their own, with unknown contents.
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

/* Facts that os_learn has read. */
static bool swaps = true; /* true if the machine has a swap device */
/* f_type of each entry of filesystems, or -1 if the kernel lacks the file system */
static int types[NFILESYSTEMS];

static void
freebsd_fs_learn(void)
{
	struct xvfsconf xv;
	size_t i;

	for (i = 0; i < NFILESYSTEMS; i++)
		types[i] = getvfsbyname(filesystems[i].name, &xv) == 0
			       ? xv.vfc_typenum
			       : -1;
	swaps = os_freebsd_sysctl("vm.nswapdev") != 0;
}

void
os_learn(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, freebsd_fs_learn);
}

/*
 * Copies at most size bytes, including the NUL.  Replaces characters that cannot be quoted with
 * '?'.
 */
static void
freebsd_fs_quote(char *to, size_t size, const char *from)
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
freebsd_fs_native(const struct statfs *sf, struct os_fs *fs)
{
	const char *why;

	if (os_native_probe(&why) != 0 ||
	    sf->f_iosize < (uint64_t)getpagesize())
		return OS_ASK_FETCH;
	fs->fs_block = sf->f_iosize;
	return OS_ASK_NATIVE;
}

static enum os_ask
freebsd_fs_choose(size_t i, const struct statfs *sf, struct os_fs *fs)
{
	if (i == NFILESYSTEMS)
		return OS_ASK_FETCH;
	switch (filesystems[i].ask) {
	case OS_ASK_NATIVE:
		return freebsd_fs_native(sf, fs);
	case OS_ASK_NEVER_COLD:
		return swaps ? OS_ASK_FETCH : OS_ASK_NEVER_COLD;
	default:
		return OS_ASK_FETCH;
	}
}

/*
 * Returns the index of the file system, or NFILESYSTEMS.  For nullfs, returns the index of the
 * lower file system, since vnodes of nullfs have the v_object of the lower vnode, through which
 * sendfile(2) reads.  fstatfs(2) of nullfs returns the name nullfs, but f_type and f_iosize of the
 * lower mount, which stays the same while nullfs is mounted.  A lookup through nullfs does not
 * enter other mounts of the lower file system.  So f_type is that of each file, without a race.
 */
static size_t
freebsd_fs_find(const struct statfs *sf)
{
	bool below = strcmp(sf->f_fstypename, "nullfs") == 0;
	size_t i;

	for (i = 0; i < NFILESYSTEMS; i++)
		if (below ? types[i] >= 0 && sf->f_type == (uint32_t)types[i]
			  : strcmp(filesystems[i].name, sf->f_fstypename) == 0)
			break;
	return i;
}

/* Also fills in the names of file systems that are not listed. */
enum os_ask
os_ask_means(int fd, struct os_fs *fs)
{
	struct statfs sf;

	freebsd_fs_quote(
	    fs->fs_name, sizeof(fs->fs_name), "unknown file system");
	meter_call(METER_FSTATFS);
	if (fstatfs(fd, &sf) == -1)
		return OS_ASK_FETCH;
	freebsd_fs_quote(fs->fs_name, sizeof(fs->fs_name), sf.f_fstypename);
	freebsd_fs_quote(fs->fs_mount, sizeof(fs->fs_mount), sf.f_mntonname);
	/* Network file systems do not have MNT_LOCAL, and FUSE does not either. */
	fs->fs_local = (sf.f_flags & MNT_LOCAL) != 0;
	return freebsd_fs_choose(freebsd_fs_find(&sf), &sf, fs);
}
