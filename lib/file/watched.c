/*
 * watched: see watched.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/disk/completion.h"
#include "lib/disk/file_private.h"
#include "lib/disk/pins.h"
#include "lib/disk/pool.h"
#include "lib/file/watched.h"
#include "lib/os/os.h"
#include "lib/os/watch.h"
#include "lib/util/clock.h"
#include "lib/util/offset.h"

#define WATCHED_FAILED 1000000 /* time without an attempt, microseconds */

/* The reference to the file keeps the descriptor open until the waiter is delivered. */
struct watched {
	struct pw_waiter wa_waiter; /* first member, for watched_done */
	struct pw_file *wa_file;
};

struct watched_job {
	struct job wj_job; /* first member, as free(job) frees this struct */
	struct pins *wj_pins;
	struct pins_key wj_key;
	int wj_fd;
	off_t wj_off;
	size_t wj_len;
};

static int
watched_run(struct job *job)
{
	struct watched_job *wj = (struct watched_job *)job;
	struct os_folio fo = {.fo_len = wj->wj_len, .fo_pipe = -1};

	pins_reap(wj->wj_pins, wj->wj_key.pk_dev);
	if (!pins_reserve_watched(wj->wj_pins, wj->wj_len))
		return -ENOMEM;
	fo.fo_map = os_watch_map(wj->wj_fd, wj->wj_off, wj->wj_len);
	if (fo.fo_map == NULL) {
		pins_refuse_watched(wj->wj_pins, wj->wj_len);
		return -ENOMEM;
	}
	pins_add(wj->wj_pins, &wj->wj_key, wj->wj_off, &fo, PINS_WATCHED);
	return 0;
}

static void
watched_done(struct pw_waiter *w)
{
	struct watched *wa = (struct watched *)w;

	w->wt_loop->lp_watched_at =
	    w->wt_error == 0 ? 0 : clock_now() + WATCHED_FAILED;
	pw_file_unref(&wa->wa_file);
	free(wa);
}

static struct watched_job *
watched_job(struct pw_file *file, off_t off, size_t len)
{
	struct watched_job *wj = calloc(1, sizeof(*wj));

	if (wj == NULL)
		return NULL;
	wj->wj_job.job_run = watched_run;
	wj->wj_job.job_kind = JOB_SHORT;
	wj->wj_pins = pool_pins(file_priv(file)->fp_loop->lp_pool);
	wj->wj_key = pins_key(file);
	wj->wj_fd = file->fil_fd;
	wj->wj_off = off;
	wj->wj_len = len;
	return wj;
}

void
watched_map(struct pw_file *file, off_t off, uint64_t now)
{
	struct pw_loop *lp = file_priv(file)->fp_loop;
	off_t from = off - off % (off_t)OS_FOLIO;
	size_t len =
	    (size_t)(offset_next(from, OS_FOLIO, file->fil_size) - from);
	struct watched_job *wj;
	struct watched *wa;

	if (len < WATCHED_LEAST || now < lp->lp_watched_at ||
	    pool_pagemap(lp->lp_pool) < 0)
		return;
	wa = calloc(1, sizeof(*wa));
	wj = watched_job(file, from, len);
	if (wa == NULL || wj == NULL)
		goto fail;
	wa->wa_waiter.wt_done = watched_done;
	wa->wa_file = file;
	if (pool_submit(file_priv(file)->fp_device, &wj->wj_job, ADMIT_HINT, lp,
		&wa->wa_waiter) != 0)
		goto fail;
	pw_file_ref(file);
	lp->lp_watched_at = UINT64_MAX;
	return;

fail:
	free(wj);
	free(wa);
	lp->lp_watched_at = now + WATCHED_FAILED;
}
