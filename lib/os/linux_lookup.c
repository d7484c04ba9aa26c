/*
 * linux_lookup: opens names below a root, without waiting if required, and chooses the residency
 * check for a file system.
 */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/os/meter.h"
#include "lib/os/os.h"

/* Magic numbers that linux/magic.h lacks. */
#define ZFS_SUPER_MAGIC 0x2fc12fc1
#define BCACHEFS_MAGIC	0xca451a4e

#define LOOKUP_TRIES 16 /* maximum calls of openat2 with EAGAIN */

static int
linux_lookup_open_how(
    int dirfd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = resolve};
	long fd;

	do {
		meter_call(METER_OPENAT2);
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	} while (fd == -1 && errno == EINTR);
	return fd == -1 ? -errno : (int)fd;
}

static uint64_t
linux_lookup_bits_of(int resolve)
{
	static const uint64_t mounts[] = {
	    [OS_CACHED] = RESOLVE_NO_XDEV | RESOLVE_CACHED,
	    [OS_ONE_MOUNT] = RESOLVE_NO_XDEV,
	    [OS_ANY_MOUNT] = 0,
	};
	uint64_t bits = mounts[resolve & OS_RESOLVE] | RESOLVE_NO_MAGICLINKS;

	if ((resolve & OS_ALL_LINKS) == 0)
		bits |= (resolve & OS_AS_SLASH) != 0 ? RESOLVE_IN_ROOT
						     : RESOLVE_BENEATH;
	return (resolve & OS_NO_LINKS) != 0 ? bits | RESOLVE_NO_SYMLINKS : bits;
}

/*
 * Tries again on EAGAIN, which means that a directory was renamed during the lookup.  Without
 * O_PATH, EAGAIN may also mean a lease on the file.  With RESOLVE_CACHED, EAGAIN may also mean
 * another mount (in place of EXDEV), so the function does not try again.
 */
static int
linux_lookup_open_resolved(
    int dirfd, const char *path, uint64_t flags, int resolve)
{
	int fd = -EIO, tries;

	for (tries = 0; tries < LOOKUP_TRIES; tries++) {
		fd = linux_lookup_open_how(
		    dirfd, path, flags, linux_lookup_bits_of(resolve));
		if (fd != -EAGAIN || (resolve & OS_RESOLVE) == OS_CACHED)
			return fd;
	}
	return fd == -EAGAIN && (flags & O_PATH) == 0 ? fd : -EIO;
}

int
os_lookup(int dirfd, const char *path, int resolve)
{
	return linux_lookup_open_resolved(dirfd, path, O_PATH, resolve);
}

/*
 * Opens with O_NOATIME if the process may use it (owner, CAP_FOWNER).  Otherwise a read on the loop
 * updates the access time, and may wait for the file system's journal.
 */
int
os_open(int dirfd, const char *path, int resolve)
{
	static const uint64_t flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
	int fd =
	    linux_lookup_open_resolved(dirfd, path, flags | O_NOATIME, resolve);

	return fd == -EPERM
		   ? linux_lookup_open_resolved(dirfd, path, flags, resolve)
		   : fd;
}

/* Uses AT_STATX_DONT_SYNC, with which NFS, FUSE and others return the kernel's cached values. */
int
os_device_of(int fd, dev_t *dev)
{
	struct statx stx;

	meter_call(METER_FSTAT);
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE,
		&stx) == -1)
		return -errno;
	*dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
	return 0;
}

/* Opens the file again, with a file description of its own.  Returns -1 with errno, as open(2). */
static int
linux_lookup_reopen(int fd)
{
	static const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	char path[32];
	int own;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	meter_call(METER_OPENAT);
	own = open(path, flags | O_NOATIME);
	return own == -1 && errno == EPERM ? open(path, flags) : own;
}

int
os_own(int fd)
{
	int own, flags = fcntl(fd, F_GETFL);

	if (flags == -1)
		return -errno;
	if ((flags & O_PATH) != 0 || (flags & O_ACCMODE) == O_WRONLY)
		return -EBADF;
	own = linux_lookup_reopen(fd);
	if (own == -1 && (flags & O_DIRECT) != 0)
		return errno == EMFILE || errno == ENFILE ? -errno : -EINVAL;
	if (own == -1)
		own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return own == -1 ? -errno : own;
}

int
os_stat_name(int dirfd, const char *name, struct stat *st)
{
	int fd, error;

	fd = linux_lookup_open_resolved(
	    dirfd, name, O_PATH | O_NOFOLLOW, OS_ONE_MOUNT);
	if (fd < 0)
		return fd;
	error = fstat(fd, st) == -1 ? -errno : 0;
	close(fd);
	return error;
}

int
os_open_dir(int dirfd, const char *path, int links)
{
	return linux_lookup_open_resolved(
	    dirfd, path, O_RDONLY | O_DIRECTORY, OS_ANY_MOUNT | links);
}

/*
 * File systems and their residency checks.  RESOLVE_CACHED applies to the lookup only.  The open
 * method of a network or user-space file system waits for its server, and fstat(2) may wait, too.
 * So the loop calls neither function on such file systems, or on file systems that are not listed.
 * Disk threads also open the files of file systems with OS_ASK_FETCH.  ZFS has a separate cache,
 * whose contents mincore(2) does not see.  The lower layer of an overlay is assumed to be local.
 */
static const struct {
	long type;
	const char *name;
	enum os_ask ask;
	bool local;
} filesystems[] = {
    {EXT4_SUPER_MAGIC, "ext4", OS_ASK_NOWAIT, true},
    {XFS_SUPER_MAGIC, "xfs", OS_ASK_NOWAIT, true},
    {BTRFS_SUPER_MAGIC, "btrfs", OS_ASK_NOWAIT, true},
    {F2FS_SUPER_MAGIC, "f2fs", OS_ASK_NOWAIT, true},
    {BCACHEFS_MAGIC, "bcachefs", OS_ASK_NOWAIT, true},
    {TMPFS_MAGIC, "tmpfs", OS_ASK_NEVER_COLD, true},
    {RAMFS_MAGIC, "ramfs", OS_ASK_NEVER_COLD, true},
    {OVERLAYFS_SUPER_MAGIC, "overlayfs", OS_ASK_MINCORE, true},
    {ISOFS_SUPER_MAGIC, "iso9660", OS_ASK_MINCORE, true},
    {SQUASHFS_MAGIC, "squashfs", OS_ASK_MINCORE, true},
    {EROFS_SUPER_MAGIC_V1, "erofs", OS_ASK_MINCORE, true},
    {ZFS_SUPER_MAGIC, "zfs", OS_ASK_FETCH, true},
    {MSDOS_SUPER_MAGIC, "vfat", OS_ASK_FETCH, true},
    {EXFAT_SUPER_MAGIC, "exfat", OS_ASK_FETCH, true},
    {FUSE_SUPER_MAGIC, "fuse", OS_ASK_FETCH, false},
    {NFS_SUPER_MAGIC, "nfs", OS_ASK_FETCH, false},
    {CIFS_SUPER_MAGIC, "cifs", OS_ASK_FETCH, false},
    {SMB2_SUPER_MAGIC, "smb3", OS_ASK_FETCH, false},
    {V9FS_MAGIC, "9p", OS_ASK_FETCH, false},
    {CEPH_SUPER_MAGIC, "ceph", OS_ASK_FETCH, false},
};

#define NFILESYSTEMS (sizeof(filesystems) / sizeof(filesystems[0]))

/* Returns the file system's index in filesystems, or NFILESYSTEMS if it is unknown. */
static size_t
linux_lookup_filesystem(int fd)
{
	struct statfs sf;
	size_t i;

	meter_call(METER_FSTATFS);
	if (fstatfs(fd, &sf) == -1)
		return NFILESYSTEMS;
	for (i = 0; i < NFILESYSTEMS; i++)
		if (filesystems[i].type == (long)sf.f_type)
			break;
	return i;
}

bool
os_cached_works(int dirfd)
{
	size_t i = linux_lookup_filesystem(dirfd);
	int fd;

	if (i == NFILESYSTEMS || filesystems[i].ask == OS_ASK_FETCH)
		return false;
	fd = os_lookup(dirfd, ".", OS_CACHED);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || fd == -EAGAIN;
}

/* Does nothing, since os_ask_means reads all facts by fstatfs(2). */
void
os_learn(void)
{
}

/*
 * Tries RWF_NOWAIT, since support differs between kernels and layers of file systems.  Returns
 * OS_ASK_FETCH for file systems that are not listed: OCFS2 supports RWF_NOWAIT, but its fstat(2) waits
 * for the cluster.
 */
enum os_ask
os_ask_means(int fd, struct os_fs *fs)
{
	size_t i = linux_lookup_filesystem(fd);
	int got;

	snprintf(fs->fs_name, sizeof(fs->fs_name), "%s",
	    i == NFILESYSTEMS ? "unknown file system" : filesystems[i].name);
	fs->fs_local = i != NFILESYSTEMS && filesystems[i].local;
	if (i == NFILESYSTEMS)
		return OS_ASK_FETCH;
	if (filesystems[i].ask == OS_ASK_NEVER_COLD ||
	    filesystems[i].ask == OS_ASK_FETCH)
		return filesystems[i].ask;
	/* Reads past the end of any file, so that only the flag is checked. */
	got = os_nowait(fd, (off_t)1 << 62, 1);
	return got >= 0 ? OS_ASK_NOWAIT : OS_ASK_MINCORE;
}
