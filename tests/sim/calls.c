/*
 * calls: system calls about files and descriptors.
 */
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/kernel.h"
#include "tests/sim/wrap.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
#define SELF_FD "/proc/self/fd/"

struct fd fds[FDS_MAX];

int
fd_new(enum fd_kind kind)
{
	int i;

	for (i = 3; i < FDS_MAX; i++)
		if (fds[i].fd_kind == FD_FREE)
			break;
	if (i == FDS_MAX)
		return failed(EMFILE);
	fds[i] = (struct fd){.fd_kind = kind};
	return i;
}

struct fd *
fd_of(int fd)
{
	if (fd >= 0 && fd < FDS_MAX && fds[fd].fd_kind != FD_FREE)
		return &fds[fd];
	errno = EBADF;
	return NULL;
}

unsigned
fds_open(void)
{
	unsigned i, n = 0;

	for (i = 0; i < FDS_MAX; i++)
		n += fds[i].fd_kind != FD_FREE;
	return n;
}

int
fd_open_inode(struct inode *in, int flags)
{
	int fd;

	if ((flags & O_NOATIME) != 0 && !in->in_owned)
		return failed(EPERM);
	fd = fd_new(FD_FILE);
	if (fd == -1)
		return -1;
	in->in_opens++;
	fds[fd].fd_inode = in;
	fds[fd].fd_disk = in->in_disk;
	fds[fd].fd_direct = (flags & O_DIRECT) != 0;
	fds[fd].fd_path = (flags & O_PATH) != 0;
	return fd;
}

/*
 * The last close of a removed file waits for the disk.  A loop may make it if memory is short or no thread can be
 * started (file_close_later), or if the file was removed since the step began.
 */
void
inode_release(struct inode *in)
{
	if (--in->in_opens > 0 || in->in_links > 0)
		return;
	if (task_is_loop() &&
	    (has_fault(FAULT_MEMORY) || in->in_removed >= *task_step()))
		return;
	disk_is_waited_for("close of a removed file");
	disk_wait(in->in_disk);
}

WRAP(int, close, (int fd))
{
	struct fd *f = fd_of(fd), was;

	world_point("close");
	if (f == NULL)
		world_fail("%s closes descriptor %d, which is not open",
		    task_name(world_me), fd);
	was = *f;
	f->fd_kind = FD_FREE;
	net_close(&was, fd); /* before another thread may have the descriptor */
	if (was.fd_kind == FD_FILE)
		inode_release(was.fd_inode);
	if (was.fd_kind == FD_PIPE_IN || was.fd_kind == FD_PIPE_OUT)
		pipe_close(was.fd_pipe);
	return 0;
}

/* ---------------------------------------------------------------------- open */

static int
call_open_text(const char *path)
{
	const char *text = machine_text(path);
	int fd;

	if (text == NULL)
		return failed(ENOENT);
	fd = fd_new(
	    strcmp(path, "/proc/self/pagemap") == 0 ? FD_PAGEMAP : FD_TEXT);
	if (fd != -1)
		fds[fd].fd_text = path;
	return fd;
}

/* Opens a descriptor again.  A network file system asks its server. */
static int
call_open_again(int old, int flags)
{
	struct fd *f = fd_of(old);

	if (f == NULL || f->fd_kind != FD_FILE)
		return failed(ENOENT);
	if (f->fd_disk->di_kind == NFS) {
		disk_is_waited_for("open");
		disk_wait(f->fd_disk);
	}
	if ((flags & O_DIRECT) != 0 && !machine.ma_direct)
		return failed(EINVAL);
	return fd_open_inode(f->fd_inode, flags);
}

WRAP(int, open, (const char *path, int flags, ...))
{
	unsigned disk;
	int fd;

	world_point("open");
	if (strncmp(path, SELF_FD, strlen(SELF_FD)) == 0)
		return call_open_again(atoi(path + strlen(SELF_FD)), flags);
	if (strcmp(path, "/dev/null") == 0)
		return fd_new(FD_NULL);
	if (sscanf(path, "/disk%u", &disk) != 1)
		return call_open_text(path);
	fd = fd_new(FD_DIR);
	if (fd != -1)
		fds[fd].fd_disk = &disks[disk];
	return fd;
}

static struct name *
call_find_name(struct disk *di, const char *path)
{
	unsigned i;

	for (i = 0; i < di->di_nnames; i++)
		if (strcmp(di->di_names[i].na_text, path) == 0)
			return &di->di_names[i];
	return NULL;
}

/* openat2(2) of a name in a root. */
static int
call_openat2(int dir, const char *path, const struct open_how *how)
{
	struct fd *f = fd_of(dir);
	struct name *na;
	struct inode *in;
	int fd;

	if (f == NULL)
		return -1;
	if (strcmp(path, ".") == 0) {
		fd = fd_new(FD_DIR);
		if (fd != -1)
			fds[fd].fd_disk = f->fd_disk;
		return fd;
	}
	na = call_find_name(f->fd_disk, path);
	if (na == NULL)
		return failed(ENOENT);
	if (f->fd_disk->di_kind == NFS && (how->flags & O_PATH) == 0)
		disk_is_waited_for("openat2");
	if (!na->na_cached || f->fd_disk->di_kind == NFS) {
		if ((how->resolve & RESOLVE_CACHED) != 0)
			return failed(EAGAIN);
		disk_is_waited_for("openat2");
		in = &inodes[na->na_inode];
		disk_wait(in->in_disk);
		if (has_fault(FAULT_ERRORS) && world_once_in(200))
			return failed(EIO);
		na->na_cached = true;
	}
	return fd_open_inode(&inodes[na->na_inode], (int)how->flags);
}

/* ---------------------------------------------------------------------- stat */

static void
call_fill_stat(const struct fd *f, struct stat *st)
{
	const struct inode *in = f->fd_inode;

	memset(st, 0, sizeof(*st));
	st->st_dev = f->fd_disk == NULL ? 1 : f->fd_disk->di_dev;
	st->st_mode = f->fd_kind == FD_FILE ? S_IFREG | 0644 : S_IFDIR | 0755;
	st->st_ino = 2;
	if (in == NULL)
		return;
	st->st_ino = in->in_number;
	st->st_size = in->in_size;
	st->st_nlink = in->in_links;
	st->st_uid = in->in_owned ? 1000 : 2000;
	st->st_mtim = st->st_ctim =
	    (struct timespec){in->in_time, (long)in->in_version};
	st->st_blocks = in->in_size / 512 + 1;
}

/* The configuration looks whether roots exist. */
WRAP(int, stat, (const char *path, struct stat *st))
{
	(void)path;
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFDIR | 0755;
	return 0;
}

WRAP(int, faccessat, (int dir, const char *path, int mode, int flags))
{
	(void)dir, (void)path, (void)mode, (void)flags;
	return 0;
}

WRAP(int, fstat, (int fd, struct stat *st))
{
	struct fd *f = fd_of(fd);

	world_point("fstat");
	if (f == NULL)
		return -1;
	kernel_call("fstat", f->fd_inode, 0);
	if (f->fd_kind == FD_FILE && f->fd_disk->di_kind == NFS &&
	    !f->fd_path) {
		disk_is_waited_for("fstat");
		if (world_once_in(4))
			disk_wait(f->fd_disk);
		f = fd_of(fd);
	}
	call_fill_stat(f, st);
	return 0;
}

WRAP(int, statx,
    (int dir, const char *path, int flags, unsigned mask, struct statx *sx))
{
	struct fd *f = fd_of(dir);
	struct stat st;

	(void)path, (void)flags;
	world_point("statx");
	if (f == NULL)
		return -1;
	call_fill_stat(f, &st);
	memset(sx, 0, sizeof(*sx));
	sx->stx_mask = mask & STATX_BASIC_STATS;
	sx->stx_dev_major = major(st.st_dev);
	sx->stx_dev_minor = minor(st.st_dev);
	sx->stx_size = (uint64_t)st.st_size;
	sx->stx_mtime.tv_sec = sx->stx_ctime.tv_sec = st.st_mtim.tv_sec;
	sx->stx_mtime.tv_nsec = sx->stx_ctime.tv_nsec =
	    (uint32_t)st.st_mtim.tv_nsec;
#ifdef STATX_DIOALIGN
	if (machine.ma_direct && f->fd_disk != NULL &&
	    f->fd_disk->di_kind == EXT4) {
		sx->stx_mask |= mask & STATX_DIOALIGN;
		sx->stx_dio_mem_align = 512;
		sx->stx_dio_offset_align = 512;
	}
#endif
	return 0;
}

WRAP(int, fstatfs, (int fd, struct statfs *sf))
{
	static const long types[KINDS] = {EXT4_SUPER_MAGIC,
	    OVERLAYFS_SUPER_MAGIC, NFS_SUPER_MAGIC, TMPFS_MAGIC};
	struct fd *f = fd_of(fd);

	world_point("fstatfs");
	if (f == NULL)
		return -1;
	memset(sf, 0, sizeof(*sf));
	sf->f_type = types[f->fd_disk->di_kind];
	return 0;
}

WRAP(ssize_t, fgetxattr, (int fd, const char *name, void *to, size_t size))
{
	(void)fd, (void)name, (void)to, (void)size;
	world_point("fgetxattr");
	disk_is_waited_for("fgetxattr");
	return failed(ENODATA);
}

/* --------------------------------------------------------------- directories */

struct dir {
	int dr_fd;
	unsigned dr_at;
	struct dirent dr_name;
};

WRAP(DIR *, fdopendir, (int fd))
{
	struct dir *dr = calloc(1, sizeof(*dr));

	world_point("fdopendir");
	disk_is_waited_for("fdopendir");
	dr->dr_fd = fd;
	return (DIR *)(void *)dr;
}

WRAP(struct dirent *, readdir, (DIR * dir))
{
	struct dir *dr = (struct dir *)(void *)dir;
	struct disk *di = fds[dr->dr_fd].fd_disk;

	world_point("readdir");
	disk_is_waited_for("readdir");
	if (dr->dr_at == 0)
		disk_wait(di);
	if (dr->dr_at == di->di_nnames)
		return NULL;
	snprintf(dr->dr_name.d_name, sizeof(dr->dr_name.d_name), "%s",
	    di->di_names[dr->dr_at++].na_text);
	return &dr->dr_name;
}

WRAP(int, dirfd, (DIR * dir))
{
	return ((struct dir *)(void *)dir)->dr_fd;
}

WRAP(int, closedir, (DIR * dir))
{
	int fd = __wrap_dirfd(dir);

	free(dir);
	return __wrap_close(fd);
}

/* ---------------------------------------------------------------- page cache */

/* Linux 6.13 reports residency only to owners; an overlay has no pages of its own. */
static int
call_cachestat(int fd, const uint64_t range[2], uint64_t counts[5])
{
	struct fd *f;
	off_t off, end;

	if (!machine.ma_cachestat)
		return failed(ENOSYS);
	f = fd_of(fd);
	if (f == NULL)
		return -1;
	if (!f->fd_inode->in_owned && !machine.ma_cachestat_all)
		return failed(EPERM);
	kernel_call("cachestat", f->fd_inode, (off_t)range[0]);
	counts[0] = 0;
	end = (off_t)(range[0] + range[1]);
	if (end > f->fd_inode->in_size)
		end = f->fd_inode->in_size;
	for (off = (off_t)range[0]; off < end; off = (off / PAGE + 1) * PAGE)
		if (f->fd_disk->di_kind != OVERLAY)
			counts[0] +=
			    page_at(f->fd_inode, off)->pg_state != ABSENT;
	story("cachestat of file %llu [%llu, +%llu): %llu pages",
	    (unsigned long long)f->fd_inode->in_number,
	    (unsigned long long)range[0], (unsigned long long)range[1],
	    (unsigned long long)counts[0]);
	world_point("cachestat ends");
	return 0;
}

/* Copies the file's bytes at one moment. */
static size_t
call_copy_out(struct inode *in, off_t off, char *to, size_t len)
{
	size_t done = 0, n, at;

	for (; done < len && off < in->in_size; done += n, off += (off_t)n) {
		at = (size_t)(off % PAGE);
		n = PAGE - at < len - done ? PAGE - at : len - done;
		if ((off_t)n > in->in_size - off)
			n = (size_t)(in->in_size - off);
		memcpy(to + done,
		    inode_bytes(in, off / PAGE, page_at(in, off)->pg_version) +
			at,
		    n);
	}
	return done;
}

/* Reads page by page, so that a writer may come between. */
static ssize_t
call_read_pages(struct fd *f, off_t off, char *to, size_t len, bool nowait)
{
	struct inode *in = f->fd_inode;
	size_t done = 0, n;
	int error = 0;

	for (; done < len && off < in->in_size; done += n, off += (off_t)n) {
		if (nowait && in->in_disk->di_kind != TMPFS &&
		    page_at(in, off)->pg_state != RESIDENT) {
			if (done > 0)
				break;
			if (task_is_loop() && machine.ma_cachestat &&
			    in->in_owned &&
			    page_at(in, off)->pg_state == ABSENT)
				page_excuse(in, page_at(in, off),
				    "preadv2(RWF_NOWAIT)");
			story(
			    "RWF_NOWAIT at %lld: not resident", (long long)off);
			pages_read(in, off, off + 1, false);
			return failed(EAGAIN);
		}
		error =
		    page_need(in, off, f->fd_random ? len - done : 0, "read");
		if (error != 0)
			return done > 0		   ? (ssize_t)done
			       : error == -ENODATA ? 0
						   : failed(-error);
		n = PAGE - (size_t)(off % PAGE);
		n = call_copy_out(
		    in, off, to + done, n < len - done ? n : len - done);
		if (n == 0)
			break;
		if (done > 0 && has_fault(FAULT_SHORT) && world_once_in(100)) {
			covered("fault    a read is short");
			return (ssize_t)done;
		}
		if (off / PAGE % 16 == 0)
			world_point("read");
	}
	return (ssize_t)done;
}

static ssize_t
call_read_direct(struct fd *f, off_t off, char *to, size_t len)
{
	struct inode *in = f->fd_inode;

	disk_is_waited_for("a direct read");
	locks_check_io();
	world_sleep(disk_end(f->fd_disk, (unsigned)(len / PAGE)) - world_now);
	covered("fetch    a direct read");
	if (in->in_bad)
		return failed(EIO);
	if (has_fault(FAULT_SHORT) && world_once_in(8) && len > 65536)
		len = 65536;
	return (ssize_t)call_copy_out(in, off, to, len);
}

static ssize_t
call_read_text(const struct fd *f, off_t off, char *to, size_t len)
{
	const char *text = machine_text(f->fd_text);
	size_t n = strlen(text);

	if (off > 0)
		return 0;
	if (n > len)
		n = len;
	memcpy(to, text, n);
	return (ssize_t)n;
}

WRAP(ssize_t, pread, (int fd, void *to, size_t len, off_t off))
{
	struct fd *f = fd_of(fd);

	world_point("pread");
	if (f == NULL)
		return -1;
	if (f->fd_kind == FD_TEXT)
		return call_read_text(f, off, to, len);
	kernel_call("pread", f->fd_inode, off);
	return f->fd_direct ? call_read_direct(f, off, to, len)
			    : call_read_pages(f, off, to, len, false);
}

WRAP(ssize_t, preadv2,
    (int fd, const struct iovec *iov, int n, off_t off, int flags))
{
	struct fd *f = fd_of(fd);
	bool nowait = (flags & RWF_NOWAIT) != 0;

	(void)n;
	world_point("preadv2");
	if (f == NULL)
		return -1;
	kernel_call("preadv2", f->fd_inode, off);
	if (nowait && !f->fd_disk->di_nowait && f->fd_disk->di_kind != TMPFS)
		return failed(EOPNOTSUPP);
	return call_read_pages(f, off, iov->iov_base, iov->iov_len, nowait);
}

/* An advice to read ends at the disk's limit. */
WRAP(int, posix_fadvise, (int fd, off_t off, off_t len, int advice))
{
	struct fd *f = fd_of(fd);
	off_t most = (off_t)machine.ma_readahead << 10;

	world_point("fadvise");
	if (f == NULL)
		return EBADF;
	if (advice == POSIX_FADV_RANDOM || advice == POSIX_FADV_NORMAL) {
		f->fd_random = advice == POSIX_FADV_RANDOM;
		return 0;
	}
	disk_is_waited_for("posix_fadvise");
	if (advice == POSIX_FADV_DONTNEED)
		page_drop(f->fd_inode, off, off + len);
	else if (f->fd_inode->in_disk->di_kind != TMPFS)
		pages_read(
		    f->fd_inode, off, off + (len < most ? len : most), true);
	world_point("fadvise ends");
	return 0;
}

WRAP(off_t, lseek, (int fd, off_t off, int whence))
{
	struct fd *f = fd_of(fd);
	struct inode *in;
	bool hole;

	world_point("lseek");
	if (f == NULL)
		return -1;
	disk_is_waited_for("lseek");
	in = f->fd_inode;
	disk_wait(in->in_disk);
	if (off >= in->in_size)
		return failed(ENXIO);
	for (; off < in->in_size; off = (off / PAGE + 1) * PAGE) {
		hole = page_at(in, off)->pg_version == 0;
		if (hole == (whence == SEEK_HOLE))
			return off;
	}
	if (whence == SEEK_HOLE)
		return in->in_size;
	return failed(ENXIO);
}

/* ---------------------------------------------------------------- the others */

WRAP(long, syscall, (long number, ...))
{
	va_list ap;
	long a[5];
	unsigned i;

	va_start(ap, number);
	for (i = 0; i < COUNT(a); i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	world_point("syscall");
	if (number == SYS_openat2)
		return call_openat2((int)a[0], (const char *)a[1],
		    (const struct open_how *)a[2]);
	if (number == SYS_cachestat)
		return call_cachestat(
		    (int)a[0], (const uint64_t *)a[1], (uint64_t *)a[2]);
	if (number == SYS_sched_setattr)
		return 0;
	return failed(ENOSYS);
}

static int
call_dup(const struct fd *f)
{
	int fd = fd_new(f->fd_kind);

	if (fd != -1)
		fds[fd] = *f;
	if (fd != -1 && f->fd_kind == FD_FILE)
		f->fd_inode->in_opens++;
	return fd;
}

WRAP(int, fcntl, (int fd, int command, ...))
{
	struct fd *f = fd_of(fd);
	va_list ap;
	int arg;

	va_start(ap, command);
	arg = va_arg(ap, int);
	va_end(ap);
	world_point("fcntl");
	if (f == NULL)
		return -1;
	if (command == F_DUPFD_CLOEXEC)
		return call_dup(f);
	if (command == F_SETPIPE_SZ)
		return has_fault(FAULT_REFUSED) && world_once_in(6)
			   ? failed(EPERM)
			   : arg;
	return command == F_GETFL ? 0 : failed(EINVAL);
}

WRAP(int, eventfd, (unsigned count, int flags))
{
	(void)count, (void)flags;
	return fd_new(FD_EVENT);
}

WRAP(ssize_t, write, (int fd, const void *from, size_t len))
{
	struct fd *f = fd_of(fd);

	world_point("write");
	if (f == NULL || f->fd_kind != FD_EVENT)
		world_fail("write to descriptor %d, which is no eventfd", fd);
	f->fd_count += *(const uint64_t *)from;
	world_wake(f->fd_waiter, TASKS_MAX);
	net_changed(fd);
	world_point("write ends");
	return (ssize_t)len;
}

WRAP(ssize_t, read, (int fd, void *to, size_t len))
{
	struct fd *f = fd_of(fd);

	world_point("read");
	if (f == NULL)
		return -1;
	if (f->fd_kind == FD_PIPE_OUT)
		return pipe_take(f, to, len);
	if (f->fd_count == 0)
		return failed(EAGAIN);
	*(uint64_t *)to = f->fd_count;
	f->fd_count = 0;
	return (ssize_t)len;
}
