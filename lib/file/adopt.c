/*
 * adopt: makes files from descriptors that the caller opened.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/disk/completion.h"
#include "lib/disk/pool.h"
#include "lib/file/file.h"
#include "lib/os/meter.h"
#include "lib/os/os.h"
#include "lib/util/clock.h"
#include "lib/util/timespec.h"

/* A descriptor that a disk thread examines.  The loop owns this struct again after the completion. */
struct adoption {
	/* first member, as adopt_done casts its address */
	struct pw_waiter ad_waiter;
	struct pw_loop *ad_loop;
	struct pw_device *ad_device;
	int ad_fd;	     /* duplicate of the caller's descriptor */
	bool ad_expects;     /* true if ad_stat is set */
	struct stat ad_stat; /* the caller's stat of the file */
	const char *ad_attribute;
	struct found ad_found;
	struct awaited
	    ad_opens; /* the caller's open, unless it was cancelled */
};

struct adopt_job {
	struct job aj_job; /* first member, as free(job) frees this struct */
	struct adoption *aj_adoption;
};

/* Returns 0 if the caller's stat is of this file and version, else -EINVAL or -ESTALE. */
static int
adopt_compare(const struct stat *expected, const struct stat *st)
{
	if (expected->st_ino != st->st_ino || expected->st_dev != st->st_dev)
		return -EINVAL;
	return expected->st_size == st->st_size &&
		       timespec_same(&expected->st_mtim, &st->st_mtim) &&
		       timespec_same(&expected->st_ctim, &st->st_ctim)
		   ? 0
		   : -ESTALE;
}

/* Examines the descriptor, and opens its file again.  `expected` may be NULL.  Returns 0 or -errno. */
static int
adopt_find(int fd, const struct stat *expected, struct found *fnd)
{
	struct stat *st = &fnd->fnd_stat;
	int error = 0;

	*fnd = (struct found){.fnd_fd = -1};
	meter_call(METER_FSTAT);
	if (fstat(fd, st) == -1)
		return -errno;
	if (!S_ISREG(st->st_mode))
		return -EINVAL;
	if (expected != NULL)
		error = adopt_compare(expected, st);
	if (error != 0)
		return error;
	fnd->fnd_fd = os_own(fd);
	return fnd->fnd_fd < 0 ? fnd->fnd_fd : 0;
}

/* Creates a file from the result, and sets fil_checked.  Returns 0 or -errno. */
static int
adopt_create(struct pw_loop *lp, struct found *fnd, struct pw_file **file)
{
	int error = file_create(lp, fnd, file);

	if (error == 0)
		(*file)->fil_checked = clock_now();
	return error;
}

static int
adopt_run(struct job *job)
{
	struct adoption *ad = ((struct adopt_job *)job)->aj_adoption;
	int error;

	error = adopt_find(
	    ad->ad_fd, ad->ad_expects ? &ad->ad_stat : NULL, &ad->ad_found);
	if (error == 0 && ad->ad_attribute != NULL)
		file_read_attribute(&ad->ad_found, ad->ad_attribute);
	/* Determines the file system on this disk thread, since that may wait. */
	if (error == 0)
		device_ask(ad->ad_device, ad->ad_found.fnd_fd);
	close(ad->ad_fd);
	return error;
}

static void
adopt_done(struct pw_waiter *w)
{
	struct adoption *ad = (struct adoption *)w;
	struct pw_open *op = TAILQ_FIRST(&ad->ad_opens.aw_opens);
	struct pw_file *file = NULL;
	int error = w->wt_error;

	if (error == 0)
		error = adopt_create(ad->ad_loop, &ad->ad_found, &file);
	free(ad);
	if (op == NULL) {
		/* pw_file_unref uses the pool if close(2) may wait. */
		pw_file_unref(&file);
		return;
	}
	op->op_others = NULL;
	op->op_file = file;
	op->op_waiter.wt_error = error;
	op->op_waiter.wt_done(&op->op_waiter);
}

static int
adopt_submit(struct adoption *ad)
{
	struct adopt_job *aj = calloc(1, sizeof(*aj));
	int error;

	if (aj == NULL)
		return -ENOMEM;
	aj->aj_job.job_run = adopt_run;
	aj->aj_job.job_kind = JOB_SHORT;
	aj->aj_adoption = ad;
	error = pool_submit(
	    ad->ad_device, &aj->aj_job, ADMIT_NEW, ad->ad_loop, &ad->ad_waiter);
	if (error != 0)
		free(aj);
	return error;
}

/* Has a disk thread of the device examine a duplicate, so that the caller may close its descriptor. */
static int
adopt_later(struct pw_loop *lp, struct pw_device *dv, int fd,
    const struct stat *st, struct pw_open *op)
{
	struct adoption *ad = calloc(1, sizeof(*ad));
	int error;

	if (ad == NULL)
		return -ENOMEM;
	ad->ad_waiter.wt_done = adopt_done;
	ad->ad_waiter.wt_client = op->op_waiter.wt_client;
	ad->ad_loop = lp;
	ad->ad_device = dv;
	ad->ad_expects = st != NULL;
	if (st != NULL)
		ad->ad_stat = *st;
	if (op->op_attribute)
		ad->ad_attribute = lp->lp_conf.plc_attribute;
	TAILQ_INIT(&ad->ad_opens.aw_opens);
	ad->ad_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	error = ad->ad_fd == -1 ? -errno : adopt_submit(ad);
	if (error == 0) {
		TAILQ_INSERT_TAIL(&ad->ad_opens.aw_opens, op, op_link);
		op->op_others = &ad->ad_opens;
		return -EINPROGRESS;
	}
	if (ad->ad_fd != -1)
		close(ad->ad_fd);
	free(ad);
	return error;
}

static int
adopt_now(
    struct pw_loop *lp, int fd, const struct stat *st, struct pw_file **file)
{
	struct found fnd;
	int error = adopt_find(fd, st, &fnd);

	return error == 0 ? adopt_create(lp, &fnd, file) : error;
}

int
pw_file_from_fd(
    struct pw_loop *lp, int fd, const struct stat *st, struct pw_open *op)
{
	struct pw_device *dv;
	bool reads;
	dev_t dev;
	int error;

	op->op_file = NULL;
	op->op_others = NULL;
	if (op->op_waiter.wt_done == NULL)
		return -EINVAL;
	error = os_device_of(fd, &dev);
	if (error != 0)
		return error;
	dv = pool_device(lp->lp_pool, dev, POOL_FILES);
	reads = op->op_attribute && lp->lp_conf.plc_attribute != NULL;
	return reads || device_open_waits(dv)
		   ? adopt_later(lp, dv, fd, st, op)
		   : adopt_now(lp, fd, st, &op->op_file);
}
