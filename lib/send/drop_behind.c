/*
 * drop_behind: see drop_behind.h.  Disk threads call os_drop, since it walks pages and
 * may wait for other processors.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "lib/disk/completion.h"
#include "lib/disk/drop_lock.h"
#include "lib/disk/file_private.h"
#include "lib/disk/pins.h"
#include "lib/disk/pool.h"
#include "lib/file/residency.h"
#include "lib/os/os.h"
#include "lib/send/drop_behind.h"
#include "lib/util/clock.h"

#define TICK_BATCH \
	64 /* maximum number of drops of a list in one tick, 2 us each */

struct drop {
	struct pw_waiter dr_waiter;
	struct pw_file *dr_file;
	off_t dr_off;
	off_t dr_len;
	uint64_t dr_due;
	unsigned dr_tries;
	STAILQ_ENTRY(drop) dr_link;
};

struct drop_job {
	struct job dj_job;
	int dj_fd;
	struct drop_lock *dj_lock;
	struct pins *dj_pins;
	uint64_t dj_dev;
	uint64_t dj_ino;
	off_t dj_off;
	off_t dj_len;
};

STAILQ_HEAD(drop_list, drop);

/* All drops of a list have the same delay, so each list is in order of time. */
struct drops {
	struct drop_list drs_soon;
	struct drop_list drs_later;
};

struct drops *
drop_behind_create(void)
{
	struct drops *drs = calloc(1, sizeof(*drs));

	if (drs == NULL)
		return NULL;
	STAILQ_INIT(&drs->drs_soon);
	STAILQ_INIT(&drs->drs_later);
	return drs;
}

static void
drop_behind_drop_free(struct drop *dr)
{
	residency_drops_end(dr->dr_file);
	pw_file_unref(&dr->dr_file);
	free(dr);
}

static void
drop_behind_list_destroy(struct drop_list *list)
{
	struct drop *dr;

	while ((dr = STAILQ_FIRST(list)) != NULL) {
		STAILQ_REMOVE_HEAD(list, dr_link);
		drop_behind_drop_free(dr);
	}
}

void
drop_behind_destroy(struct drops **drsp)
{
	struct drops *drs = *drsp;

	if (drs == NULL)
		return;
	*drsp = NULL;
	drop_behind_list_destroy(&drs->drs_soon);
	drop_behind_list_destroy(&drs->drs_later);
	free(drs);
}

static int
drop_behind_drop_run(struct job *job)
{
	struct drop_job *dj = (struct drop_job *)job;

	if (!drop_lock_enter_drop(dj->dj_lock))
		return -EAGAIN;
	/* The kernel does not evict mapped pages. */
	pins_forget(dj->dj_pins, dj->dj_dev, dj->dj_ino, dj->dj_off,
	    dj->dj_off + dj->dj_len);
	pins_reap(dj->dj_pins, dj->dj_dev);
	os_drop(dj->dj_fd, dj->dj_off, (size_t)dj->dj_len);
	/* Another loop may have checked these pages since the drop was announced. */
	drop_lock_announce(dj->dj_lock);
	drop_lock_leave(dj->dj_lock);
	return 0;
}

static void
drop_behind_put_off(struct drop *dr)
{
	dr->dr_due = clock_now() + DROP_SOON;
	STAILQ_INSERT_TAIL(
	    &file_priv(dr->dr_file)->fp_loop->lp_drops->drs_soon, dr, dr_link);
}

static void
drop_behind_drop_done(struct pw_waiter *w)
{
	struct drop *dr = (struct drop *)w;

	if (w->wt_error == -EAGAIN && ++dr->dr_tries < DROP_TRIES)
		drop_behind_put_off(dr);
	else
		drop_behind_drop_free(dr);
}

static void
drop_behind_drop_submit(struct drop *dr)
{
	struct drop_job *dj = calloc(1, sizeof(*dj));

	if (dj == NULL) {
		drop_behind_drop_free(dr);
		return;
	}
	dj->dj_job.job_run = drop_behind_drop_run;
	dj->dj_job.job_kind = JOB_SHORT;
	dj->dj_fd = dr->dr_file->fil_fd;
	dj->dj_lock = file_priv(dr->dr_file)->fp_drop_lock;
	dj->dj_pins = pool_pins(file_priv(dr->dr_file)->fp_loop->lp_pool);
	dj->dj_dev = dr->dr_file->fil_dev;
	dj->dj_ino = dr->dr_file->fil_ino;
	dj->dj_off = dr->dr_off;
	dj->dj_len = dr->dr_len;
	dr->dr_waiter.wt_done = drop_behind_drop_done;
	drop_lock_announce(dj->dj_lock);
	if (pool_submit(file_priv(dr->dr_file)->fp_device, &dj->dj_job,
		ADMIT_HINT, file_priv(dr->dr_file)->fp_loop,
		&dr->dr_waiter) != 0) {
		free(dj);
		drop_behind_drop_free(dr);
	}
}

/* Creates a drop.  Returns NULL if memory is short; then the pages are not dropped. */
static struct drop *
drop_behind_drop_create(
    struct pw_file *file, off_t off, off_t len, uint64_t due_us)
{
	struct drop *dr = calloc(1, sizeof(*dr));

	if (dr == NULL)
		return NULL;
	residency_drops(file);
	pw_file_ref(file);
	dr->dr_file = file;
	dr->dr_off = off;
	dr->dr_len = len;
	dr->dr_due = due_us;
	return dr;
}

void
drop_behind_add(struct pw_file *file, off_t off, off_t len, uint64_t due_us)
{
	struct drop *dr = drop_behind_drop_create(file, off, len, due_us);

	if (dr == NULL)
		return;
	if (due_us == 0)
		drop_behind_drop_submit(dr);
	else
		STAILQ_INSERT_TAIL(
		    &file_priv(file)->fp_loop->lp_drops->drs_later, dr,
		    dr_link);
}

void
drop_behind_add_soon(struct pw_file *file, off_t off, off_t len)
{
	struct drop *dr =
	    drop_behind_drop_create(file, off, len, clock_now() + DROP_SOON);

	if (dr != NULL)
		STAILQ_INSERT_TAIL(
		    &file_priv(file)->fp_loop->lp_drops->drs_soon, dr, dr_link);
}

static void
drop_behind_list_tick(struct drop_list *list, uint64_t now_us)
{
	struct drop *dr;
	int n;

	for (n = 0; n < TICK_BATCH; n++) {
		dr = STAILQ_FIRST(list);
		if (dr == NULL || dr->dr_due > now_us)
			return;
		STAILQ_REMOVE_HEAD(list, dr_link);
		drop_behind_drop_submit(dr);
	}
}

void
drop_behind_tick(struct pw_loop *lp, uint64_t now_us)
{
	drop_behind_list_tick(&lp->lp_drops->drs_soon, now_us);
	drop_behind_list_tick(&lp->lp_drops->drs_later, now_us);
}
