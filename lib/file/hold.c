/*
 * hold: see hold.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/disk/completion.h"
#include "lib/disk/file_private.h"
#include "lib/disk/pins.h"
#include "lib/disk/pool.h"
#include "lib/file/hold.h"
#include "lib/os/os.h"
#include "lib/util/clock.h"
#include "lib/util/offset.h"

#define HOLD_PAUSE  20000   /* time between two holds of a file, microseconds */
#define HOLD_FAILED 1000000 /* the same after a failure */

/* The reference to the file keeps the descriptor open until the waiter is delivered. */
struct hold {
	struct pw_waiter ho_waiter; /* first member, for hold_done */
	struct pw_file *ho_file;
};

struct hold_job {
	struct job hj_job; /* first member, as free(job) frees this struct */
	struct pins *hj_pins;
	struct pins_key hj_key;
	int hj_fd;
	off_t hj_off;
	size_t hj_len;
};

static int
hold_run(struct job *job)
{
	struct hold_job *hj = (struct hold_job *)job;
	struct os_folio fo;

	pins_reap(hj->hj_pins, hj->hj_key.pk_dev);
	if (!pins_reserve_free(hj->hj_pins, hj->hj_len))
		return -ENOMEM;
	/* A read-ahead of OS_FOLIO: fails unless it can be kept, and leaves marks alone. */
	if (!os_fetch_folio(
		hj->hj_fd, hj->hj_off, hj->hj_len, OS_FOLIO, -1, &fo)) {
		pins_refuse(hj->hj_pins, hj->hj_len);
		return -ENOMEM;
	}
	pins_add(hj->hj_pins, &hj->hj_key, hj->hj_off, &fo, PINS_HELD);
	return 0;
}

static void
hold_done(struct pw_waiter *w)
{
	struct hold *ho = (struct hold *)w;

	file_priv(ho->ho_file)->fp_hold_at =
	    clock_now() + (w->wt_error == 0 ? HOLD_PAUSE : HOLD_FAILED);
	pw_file_unref(&ho->ho_file);
	free(ho);
}

static struct hold_job *
hold_job(struct pw_file *file, off_t off, size_t len)
{
	struct hold_job *hj = calloc(1, sizeof(*hj));

	if (hj == NULL)
		return NULL;
	hj->hj_job.job_run = hold_run;
	hj->hj_job.job_kind = JOB_SHORT;
	hj->hj_pins = pool_pins(file_priv(file)->fp_loop->lp_pool);
	hj->hj_key = pins_key(file);
	hj->hj_fd = file->fil_fd;
	hj->hj_off = off;
	hj->hj_len = len;
	return hj;
}

void
hold_window(struct pw_file *file, off_t off, uint64_t now)
{
	off_t from = off - off % (off_t)OS_FOLIO;
	size_t len =
	    (size_t)(offset_next(from, OS_FOLIO, file->fil_size) - from);
	struct hold_job *hj;
	struct hold *ho;

	if (len < HOLD_LEAST || now < file_priv(file)->fp_hold_at)
		return;
	ho = calloc(1, sizeof(*ho));
	hj = hold_job(file, from, len);
	if (ho == NULL || hj == NULL)
		goto fail;
	ho->ho_waiter.wt_done = hold_done;
	ho->ho_file = file;
	if (pool_submit(file_priv(file)->fp_device, &hj->hj_job, ADMIT_HINT,
		file_priv(file)->fp_loop, &ho->ho_waiter) != 0)
		goto fail;
	pw_file_ref(file);
	file_priv(file)->fp_hold_at = UINT64_MAX;
	return;

fail:
	free(hj);
	free(ho);
	file_priv(file)->fp_hold_at = now + HOLD_FAILED;
}
