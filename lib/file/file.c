/*
 * file: lookup, open, and the life of a struct pw_file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/disk/admission.h"
#include "lib/disk/completion.h"
#include "lib/disk/pool.h"
#include "lib/file/file.h"
#include "lib/file/indirect.h"
#include "lib/file/verified.h"
#include "lib/os/meter.h"
#include "lib/util/check.h"
#include "lib/util/timespec.h"

/* Converts PW_ROOT_* flags to OS_* flags.  Returns -1 for an unknown flag or more than one flag. */
static int
file_links_of(unsigned flags)
{
	switch (flags) {
	case 0:
		return 0;
	case PW_ROOT_NO_LINKS:
		return OS_NO_LINKS;
	case PW_ROOT_AS_SLASH:
		return OS_AS_SLASH;
	case PW_ROOT_ALL_LINKS:
		return OS_ALL_LINKS;
	default:
		return -1;
	}
}

int
pw_root_open(const char *path, struct pw_root **out)
{
	return pw_root_open_with(path, 0, out);
}

int
pw_root_open_with(const char *path, unsigned flags, struct pw_root **out)
{
	struct pw_root *rt;
	struct stat st;
	int fd, error;

	if (file_links_of(flags) == -1)
		return -EINVAL;
	rt = calloc(1, sizeof(*rt));
	if (rt == NULL)
		return -ENOMEM;
	rt->rt_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (rt->rt_fd == -1 || fstat(rt->rt_fd, &st) == -1) {
		error = -errno;
		goto fail;
	}
	/*
	 * Tries openat2(2) now, so that a program on a kernel without openat2(2) fails at the
	 * start, not at each request.
	 */
	rt->rt_links = file_links_of(flags);
	fd = os_lookup(rt->rt_fd, ".", OS_ANY_MOUNT | rt->rt_links);
	if (fd < 0) {
		error = fd;
		goto fail;
	}
	close(fd);
	atomic_init(&rt->rt_refs, 1);
	rt->rt_dev = st.st_dev;
	rt->rt_ino = st.st_ino;
	rt->rt_cached = os_cached_works(rt->rt_fd);
	*out = rt;
	return 0;

fail:
	if (rt->rt_fd != -1)
		close(rt->rt_fd);
	free(rt);
	return error;
}

/* Releases a reference.  Returns true if that was the last reference. */
static bool
file_root_release(struct pw_root *rt)
{
	return atomic_fetch_sub(&rt->rt_refs, 1) == 1;
}

void
pw_root_close(struct pw_root **rtp)
{
	struct pw_root *rt = *rtp;

	*rtp = NULL;
	if (rt == NULL || !file_root_release(rt))
		return;
	close(rt->rt_fd);
	free(rt);
}

void
file_root_ref(struct pw_root *rt)
{
	atomic_fetch_add(&rt->rt_refs, 1);
}

uint64_t
pw_root_dev(const struct pw_root *rt)
{
	return rt->rt_dev;
}

int
pw_root_fd(const struct pw_root *rt)
{
	return rt->rt_fd;
}

int
pw_root_open_dir(const struct pw_root *rt, const char *path)
{
	return os_open_dir(rt->rt_fd, path, rt->rt_links);
}

int
pw_stat_name(int dirfd, const char *name, struct stat *st)
{
	return os_stat_name(dirfd, name, st);
}

int
pw_root_stat(const struct pw_root *rt, const char *path, struct stat *st)
{
	int fd, error;

	fd = os_lookup(rt->rt_fd, path, OS_ONE_MOUNT | rt->rt_links);
	if (fd < 0)
		return fd;
	error = fstat(fd, st) == -1 ? -errno : 0;
	close(fd);
	return error;
}

long
pw_name_attribute(
    int dirfd, const char *name, const char *attribute, void *to, size_t size)
{
	int fd = os_open(dirfd, name, OS_ONE_MOUNT);
	long n;

	if (fd < 0)
		return fd;
	n = os_attribute(fd, attribute, to, size);
	close(fd);
	return n;
}

bool
file_unchanged(const struct pw_file *file, const struct stat *st)
{
	return file->fil_ino == st->st_ino && file->fil_dev == st->st_dev &&
	       file->fil_size == st->st_size &&
	       timespec_same(&file->fil_mtime, &st->st_mtim) &&
	       timespec_same(&file->fil_ctime, &st->st_ctim);
}

int
file_check(const struct pw_file *file, bool may_grow)
{
	struct stat st;

	meter_call(METER_FSTAT);
	if (fstat(file->fil_fd, &st) == -1)
		return -errno;
	if (may_grow && st.st_size > file->fil_size)
		return 0;
	if (file->fil_size != st.st_size ||
	    !timespec_same(&file->fil_mtime, &st.st_mtim))
		return -ESTALE;
	return st.st_mtim.tv_sec > 1 ||
		       timespec_same(&file->fil_ctime, &st.st_ctim)
		   ? 0
		   : -ESTALE;
}

/* Does not call the meter, since this fstat(2) only reads memory, and the meter would double its time. */
bool
file_is_fresh(struct pw_file *file)
{
	struct file_private *fp = file_priv(file);
	uint64_t turn = fp->fp_loop->lp_iteration;
	struct stat st;

	if (file->fil_fd == -1 || fp->fp_remote ||
	    (turn != 0 && fp->fp_iteration == turn))
		return !file->fil_stale;
	fp->fp_iteration = turn;
	if (fstat(file->fil_fd, &st) == -1 || !file_unchanged(file, &st))
		file->fil_stale = true;
	return !file->fil_stale;
}

/* Opens the path, and checks again that the path leads to a regular file: returns -EACCES if not. */
static int
file_open_regular(const struct pw_root *rt, const char *path,
    enum os_resolve resolve, struct found *fnd)
{
	int fd, error;

	fd = os_open(rt->rt_fd, path, (int)resolve | rt->rt_links);
	if (fd < 0)
		return fd;
	meter_call(METER_FSTAT);
	if (fstat(fd, &fnd->fnd_stat) == -1)
		error = -errno;
	else
		error = S_ISREG(fnd->fnd_stat.st_mode) ? 0 : -EACCES;
	if (error != 0) {
		close(fd);
		return error;
	}
	fnd->fnd_fd = fd;
	return 0;
}

void
file_read_attribute(struct found *fnd, const char *attribute)
{
	char text[PW_ATTRIBUTE_MAX];
	long n = os_attribute(fnd->fnd_fd, attribute, text, sizeof(text));

	fnd->fnd_attributed = true;
	if (n <= 0)
		return;
	fnd->fnd_attribute = malloc((size_t)n);
	if (fnd->fnd_attribute == NULL)
		return;
	memcpy(fnd->fnd_attribute, text, (size_t)n);
	fnd->fnd_attribute_len = (size_t)n;
}

void
file_found_drop(struct found *fnd)
{
	if (fnd->fnd_fd != -1)
		close(fnd->fnd_fd);
	free(fnd->fnd_attribute);
}

int
file_find(const struct pw_root *rt, const char *path, enum os_resolve resolve,
    const struct pw_file *old, const char *attribute, struct found *fnd)
{
	int fd, error;

	fnd->fnd_fd = -1;
	fnd->fnd_same = false;
	fnd->fnd_attributed = false;
	fnd->fnd_attribute = NULL;
	fd = os_lookup(rt->rt_fd, path, (int)resolve | rt->rt_links);
	if (fd < 0)
		return fd;
	meter_call(METER_FSTAT);
	error = fstat(fd, &fnd->fnd_stat) == -1 ? -errno : 0;
	close(fd);
	if (error != 0)
		return error;
	fnd->fnd_same = old != NULL && file_unchanged(old, &fnd->fnd_stat);
	if (fnd->fnd_same || !S_ISREG(fnd->fnd_stat.st_mode))
		return 0;
	if (attribute != NULL && resolve == OS_CACHED)
		return -EAGAIN;
	error = file_open_regular(rt, path, resolve, fnd);
	if (error == 0 && attribute != NULL)
		file_read_attribute(fnd, attribute);
	return error;
}

int
pw_root_open_file(const struct pw_root *rt, const char *path)
{
	struct found fnd;
	int error;

	error = file_find(rt, path, OS_ANY_MOUNT, NULL, NULL, &fnd);
	if (error != 0)
		return error;
	return fnd.fnd_fd >= 0 ? fnd.fnd_fd : -EACCES;
}

void
file_announce(const struct pw_file *file)
{
	const struct pw_loop_conf *conf = &file_priv(file)->fp_loop->lp_conf;
	struct pw_device *dv = file_priv(file)->fp_device;
	char text[256];

	while (device_has_news(dv) && device_announce(dv, text, sizeof(text)))
		if (conf->plc_device != NULL)
			conf->plc_device(conf->plc_arg, text);
}

/*
 * Allocates fp_indirect if the file has indirect blocks.  If memory is short, copies are sent.
 */
static void
file_learn_blocks(struct pw_file *file)
{
	off_t block;

	if (file_priv(file)->fp_ask != OS_ASK_NATIVE)
		return;
	block = (off_t)device_block(file_priv(file)->fp_device);
	if (block == 0 || file->fil_size <= INDIRECT_FIRST * block)
		return;
	file_priv(file)->fp_indirect =
	    calloc(1, sizeof(*file_priv(file)->fp_indirect));
	if (file_priv(file)->fp_indirect == NULL)
		file_priv(file)->fp_ask = OS_ASK_FETCH;
	else
		file_priv(file)->fp_indirect->in_block = block;
}

static void
file_learn_device(struct pw_file *file)
{
	bool nowait, owner;

	file_priv(file)->fp_ask =
	    (int)device_ask(file_priv(file)->fp_device, file->fil_fd);
	file_priv(file)->fp_remote =
	    !device_is_local(file_priv(file)->fp_device);
	file_announce(file);
	file_learn_blocks(file);
	if (file_priv(file)->fp_ask != OS_ASK_NOWAIT &&
	    file_priv(file)->fp_ask != OS_ASK_MINCORE)
		return;
	nowait = file_priv(file)->fp_ask == OS_ASK_NOWAIT;
	file_priv(file)->fp_cachestat =
	    nowait && os_cachestat(file->fil_fd, 0, 1) >= 0;
	if (file_priv(file)->fp_cachestat)
		return;
	owner = os_owner(file->fil_fd);
	file_priv(file)->fp_mincore = nowait && owner;
	if (!nowait && !owner)
		file_priv(file)->fp_ask = OS_ASK_FETCH;
}

/* Returns true if blocks for FILE_HOLE bytes or more are missing (st_blocks counts 512 bytes). */
static bool
file_is_sparse(const struct stat *st)
{
	return st->st_size >= FILE_HOLE &&
	       (off_t)st->st_blocks <= (st->st_size - FILE_HOLE) / 512;
}

int
file_create(struct pw_loop *lp, struct found *fnd, struct pw_file **out)
{
	const struct stat *st = &fnd->fnd_stat;
	struct file_private *fp = calloc(1, sizeof(*fp));
	struct pw_file *file;

	if (fp == NULL) {
		file_found_drop(fnd);
		return -ENOMEM;
	}
	file = &fp->fp_file;
	file->fil_fd = fnd->fnd_fd;
	file->fil_type = S_ISREG(st->st_mode)	? PW_FILE_REGULAR
			 : S_ISDIR(st->st_mode) ? PW_FILE_DIRECTORY
						: PW_FILE_OTHER;
	file->fil_size = st->st_size;
	file->fil_mtime = st->st_mtim;
	file->fil_ctime = st->st_ctim;
	file->fil_ino = st->st_ino;
	file->fil_dev = st->st_dev;
	fp->fp_attributed = fnd->fnd_attributed;
	file->fil_attribute = fnd->fnd_attribute;
	file->fil_attribute_len = fnd->fnd_attribute_len;
	fp->fp_refs = 1;
	fp->fp_loop = lp;
	fp->fp_number = verified_number(lp->lp_verified);
	fp->fp_device = pool_device(lp->lp_pool, st->st_dev, POOL_FILES);
	fp->fp_drop_lock = device_drop_lock(fp->fp_device, file->fil_ino);
	if (file->fil_fd != -1) {
		file_learn_device(file);
		fp->fp_sparse = !fp->fp_remote && file_is_sparse(st);
	}
	*out = file;
	return 0;
}

void
pw_file_ref(struct pw_file *file)
{
	file_priv(file)->fp_refs++;
}

struct close_job {
	struct job cj_job;
	int cj_fd;
	void *cj_map;
	size_t cj_size;
};

static int
file_close_run(struct job *job)
{
	struct close_job *cj = (struct close_job *)job;

	if (cj->cj_map != NULL)
		os_unmap(cj->cj_map, cj->cj_size);
	close(cj->cj_fd);
	return 0;
}

/*
 * Returns true if close(2) may wait.  The last close of a removed file frees its blocks on
 * the disk; on a network file system close(2) may send a request to the server.
 */
static bool
file_close_waits(const struct pw_file *file)
{
	struct stat st;

	meter_call(METER_FSTAT);
	return file_priv(file)->fp_ask == OS_ASK_FETCH ||
	       fstat(file->fil_fd, &st) == -1 || st.st_nlink == 0;
}

/*
 * Has a disk thread close the file, or closes it on the loop if memory is short or no thread can be
 * started.
 */
static void
file_close_later(struct pw_device *dv, struct close_job what)
{
	struct close_job *cj = malloc(sizeof(*cj));

	if (cj != NULL)
		*cj = what;
	if (cj == NULL ||
	    pool_submit(dv, &cj->cj_job, ADMIT_BEGUN, NULL, NULL) != 0) {
		free(cj);
		file_close_run(&what.cj_job);
	}
}

static void
file_close(struct pw_file *file)
{
	struct close_job cj = {{.job_run = file_close_run}, file->fil_fd,
	    file_priv(file)->fp_map, (size_t)file->fil_size};

	if (file_close_waits(file))
		file_close_later(file_priv(file)->fp_device, cj);
	else
		file_close_run(&cj.cj_job);
}

/*
 * Has a disk thread close the descriptor, since close(2) may wait if the directory was removed or is on a
 * network file system.
 */
void
file_root_unref(struct pw_loop *lp, struct pw_root **rtp)
{
	struct pw_root *rt = *rtp;
	struct close_job cj = {{.job_run = file_close_run}, -1, NULL, 0};

	*rtp = NULL;
	if (rt == NULL || !file_root_release(rt))
		return;
	cj.cj_fd = rt->rt_fd;
	file_close_later(pool_device(lp->lp_pool, rt->rt_dev, POOL_FILES), cj);
	free(rt);
}

void
pw_file_unref(struct pw_file **filep)
{
	struct pw_file *file = *filep;

	if (file == NULL)
		return;
	*filep = NULL;
	PW_MUST(file_priv(file)->fp_refs > 0, "the caller released more "
					      "references than it holds");
	if (--file_priv(file)->fp_refs > 0)
		return;
	if (file_priv(file)->fp_noted)
		admission_tell(
		    pool_admission(file_priv(file)->fp_loop->lp_pool),
		    &file_priv(file)->fp_loop->lp_noted);
	if (file->fil_user_free != NULL)
		file->fil_user_free(file->fil_user);
	free((void *)(uintptr_t)file->fil_attribute);
	free(file_priv(file)->fp_mapped);
	free(file_priv(file)->fp_indirect);
	if (file->fil_fd != -1)
		file_close(file);
	free(file);
}
