/*
 * tier_offer: queues writes to the tier of windows that disk threads read from slow disks, and other jobs
 * of the tier's threads for which no request waits.
 */
#include <sys/stat.h>

#include <errno.h>
#include <stdlib.h>

#include "lib/disk/pins.h"
#include "lib/disk/pool_priv.h"
#include "lib/disk/tier_fetch_priv.h"
#include "lib/os/meter.h"
#include "lib/util/offset.h"

#define TIER_QUEUE 8 /* maximum number of windows that wait to be written */

/* A window that waits to be written. */
struct tier_write {
	struct pins_key tw_key;
	off_t tw_off;
	size_t tw_len;
	struct pin *tw_pin; /* a reference to a copy, or a blank */
	bool tw_blank;
	STAILQ_ENTRY(tier_write) tw_next;
};

bool
tier_offer_call(struct tiered *td, enum job_kind kind, int (*run)(struct job *))
{
	struct tier_call *tl = calloc(1, sizeof(*tl));

	if (tl == NULL)
		return false;
	tl->tl_job.job_run = run;
	tl->tl_job.job_kind = kind;
	tl->tl_tiered = td;
	if (pool_submit(td->td_device, &tl->tl_job, ADMIT_HINT, NULL, NULL) ==
	    0)
		return true;
	free(tl);
	return false;
}

static void
tier_offer_free(struct tiered *td, struct tier_write *tw)
{
	if (tw->tw_blank)
		pins_blank_free(td->td_pins, tw->tw_pin);
	else
		pins_release(td->td_pins, &tw->tw_pin);
	free(tw);
}

void
tier_offer_destroy(struct tiered *td)
{
	struct tier_write *tw;

	while ((tw = STAILQ_FIRST(&td->td_writes)) != NULL) {
		STAILQ_REMOVE_HEAD(&td->td_writes, tw_next);
		tier_offer_free(td, tw);
	}
}

static struct tier_write *
tier_offer_next(struct tiered *td)
{
	struct tier_write *tw;

	meter_lock(&td->td_lock);
	tw = STAILQ_FIRST(&td->td_writes);
	if (tw == NULL)
		td->td_writing = false;
	else
		STAILQ_REMOVE_HEAD(&td->td_writes, tw_next);
	pthread_mutex_unlock(&td->td_lock);
	return tw;
}

/* Frees a window that tier_offer_next returned. */
static void
tier_offer_end(struct tiered *td, struct tier_write *tw)
{
	tier_offer_free(td, tw);
	meter_lock(&td->td_lock);
	td->td_waiting--;
	pthread_mutex_unlock(&td->td_lock);
}

/* Writes windows one after another, until none is left. */
static int
tier_offer_run(struct job *job)
{
	struct tiered *td = ((struct tier_call *)job)->tl_tiered;
	struct tier_write *tw;

	while ((tw = tier_offer_next(td)) != NULL) {
		tier_write(td->td_tier, &tw->tw_key, tw->tw_off,
		    pins_memory(tw->tw_pin), tw->tw_len);
		tier_offer_end(td, tw);
	}
	return 0;
}

/* Frees the windows that wait, since no thread will write them. */
static void
tier_offer_give_up(struct tiered *td)
{
	struct tier_write *tw;

	while ((tw = tier_offer_next(td)) != NULL)
		tier_offer_end(td, tw);
}

static void
tier_offer_enqueue(struct tiered *td, struct tier_write *tw)
{
	bool begins;

	meter_lock(&td->td_lock);
	STAILQ_INSERT_TAIL(&td->td_writes, tw, tw_next);
	begins = !td->td_writing;
	td->td_writing = true;
	pthread_mutex_unlock(&td->td_lock);
	if (begins && !tier_offer_call(td, JOB_LONG, tier_offer_run))
		tier_offer_give_up(td);
}

/*
 * Reserves one of the TIER_QUEUE writes, and `len` bytes by tier_may_write.  Returns false if either limit
 * is reached.
 */
static bool
tier_offer_reserve(struct tiered *td, size_t len)
{
	bool may;

	meter_lock(&td->td_lock);
	may = td->td_waiting < TIER_QUEUE && tier_may_write(td->td_tier, len);
	td->td_waiting += may;
	pthread_mutex_unlock(&td->td_lock);
	return may;
}

/* Reads a window from the page cache into a blank.  Returns NULL if that fails, or memory is short. */
static struct pin *
tier_offer_copy(struct tiered *td, const struct window *win)
{
	size_t have = 0, len = win->win_job.job_len;
	struct pin *pn = pins_blank(td->td_pins, &win->win_key, len);
	long n = 1;

	while (pn != NULL && have < len && n > 0) {
		n = os_read(win->win_fd, win->win_off + (off_t)have,
		    (char *)pins_memory(pn) + have, len - have, true);
		have += n > 0 ? (size_t)n : 0;
		if (n == -EINTR)
			n = 1;
	}
	if (pn == NULL || have == len)
		return pn;
	pins_blank_free(td->td_pins, pn);
	return NULL;
}

/* Returns a reference to a copy of the window, or NULL. */
static struct pin *
tier_offer_take_copy(struct tiered *td, const struct window *win)
{
	struct pin *pn =
	    pins_take_copy(td->td_pins, &win->win_key, win->win_off);
	const off_t end = win->win_off + (off_t)win->win_job.job_len;

	if (pn != NULL && (pins_end(pn, win->win_off) < end ||
			      pins_copy(pn, win->win_off) != pins_memory(pn)))
		pins_release(td->td_pins, &pn);
	return pn;
}

/* Returns true if the window's version is old enough, and fstat(2) reports no other version. */
static bool
tier_offer_may(const struct tiered *td, const struct window *win)
{
	struct stat st;

	if (!tier_is_old(td->td_tier, &win->win_key.pk_version) ||
	    fstat(win->win_fd, &st) == -1)
		return false;
	return pins_same_version(&win->win_key.pk_version,
	    &(struct os_version){.ov_size = st.st_size,
		.ov_mtime = st.st_mtim,
		.ov_ctime = st.st_ctim});
}

/*
 * Returns true if the file still has the window's version.  A kernel whose attributes of a remote file are old
 * may have read bytes of a newer version.
 */
static bool
tier_offer_is_same(const struct window *win)
{
	struct os_version ov;

	return os_fresh_version(win->win_fd, &ov) == 0 &&
	       pins_same_version(&win->win_key.pk_version, &ov);
}

/* Returns true if the window is whole: an OS_FOLIO of the file, or the rest at its end. */
static bool
tier_offer_is_whole(const struct window *win)
{
	off_t end =
	    offset_add(win->win_off, OS_FOLIO, win->win_key.pk_version.ov_size);

	return win->win_off % (off_t)OS_FOLIO == 0 &&
	       win->win_off + (off_t)win->win_job.job_len == end;
}

void
tier_offer(const struct window *win, bool copied)
{
	struct tiered *td = win->win_device->dv_pool->pl_tiered;
	struct tier_write *tw;

	/*
	 * Checks the file before the reservation, too, since a reservation uses up bytes of the
	 * limit.
	 */
	if (!tier_offer_is_whole(win) || !tier_offer_may(td, win) ||
	    !tier_offer_reserve(td, win->win_job.job_len))
		return;
	tw = calloc(1, sizeof(*tw));
	if (tw != NULL) {
		*tw = (struct tier_write){.tw_key = tier_fetch_key(win),
		    .tw_off = win->win_off,
		    .tw_len = win->win_job.job_len,
		    .tw_blank = !copied};
		tw->tw_pin = copied ? tier_offer_take_copy(td, win)
				    : tier_offer_copy(td, win);
	}
	if (tw != NULL && tw->tw_pin != NULL && tier_offer_is_same(win)) {
		tier_offer_enqueue(td, tw);
		return;
	}
	if (tw != NULL && tw->tw_pin != NULL)
		tier_offer_free(td, tw);
	else
		free(tw);
	meter_lock(&td->td_lock);
	td->td_waiting--;
	pthread_mutex_unlock(&td->td_lock);
}
