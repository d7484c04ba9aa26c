/*
 * tier_fetch: see tier_fetch.h.
 */
#include <sys/queue.h>

#include <errno.h>
#include <stdlib.h>

#include "lib/disk/completion.h"
#include "lib/disk/file_private.h"
#include "lib/disk/pins.h"
#include "lib/disk/pool_priv.h"
#include "lib/disk/tier_fetch.h"
#include "lib/disk/tier_fetch_priv.h"
#include "lib/os/meter.h"
#include "lib/util/clock.h"
#include "lib/util/offset.h"

#define TIER_WIDEN \
	4 /* a window for the tier is fetched whole if 1/TIER_WIDEN is needed */

/* A job that reads pieces of a window from the tier. */
struct tier_job {
	struct job tj_job; /* first member, as free(job) frees this struct */
	struct tiered *tj_tiered;
	off_t tj_from; /* start of the first piece; job_len is the length */
	struct pins_key tj_key;
	/*
	 * what the waiters need, as it is read from its own disk if the tier cannot read it; guarded by the
	 * lock of td_device, as the fields below
	 */
	struct window tj_window;
	/* time at which the read began, microseconds, or 0 */
	uint64_t tj_begun;
	bool tj_given_up; /* true if the window is read from its own disk */
	bool tj_late;	  /* true if tier_is_late was called */
	LIST_ENTRY(tier_job) tj_link; /* in td_chains, unless tj_given_up */
};

static void
tier_fetch_destroy(struct tiered **tdp)
{
	struct tiered *td = *tdp;

	*tdp = NULL;
	if (td == NULL)
		return;
	tier_offer_destroy(td);
	tier_close(&td->td_tier);
	pthread_mutex_destroy(&td->td_lock);
	free(td);
}

bool
tier_fetch_exists(const struct pw_pool *pl)
{
	return pl->pl_tiered != NULL;
}

bool
tier_fetch_needs_copy(const struct pw_file *file)
{
	return file_priv(file)->fp_ask == OS_ASK_FETCH;
}

bool
tier_fetch_stats(struct pw_pool *pl, struct tier_stats *tu)
{
	if (pl->pl_tiered == NULL)
		return false;
	tier_stats(pl->pl_tiered->td_tier, tu);
	return true;
}

/* ------------------------------------------------------------------- reads */

/* Returns the chain of a window's reads. */
static size_t
tier_fetch_chain(const struct window *win)
{
	return (size_t)(win->win_key.pk_ino +
			(uint64_t)win->win_off / OS_FOLIO) %
	       TIER_CHAINS;
}

/*
 * Gives up a read from the tier: returns its waiters, unlinks the job, so that no transmission
 * joins the job, and copies the description of what they need.  The device's lock is held.
 */
static struct pw_waiter *
tier_fetch_give_up_locked(struct tier_job *tj, struct window *like)
{
	struct pw_waiter *list = tj->tj_job.job_waiters;

	tj->tj_job.job_waiters = NULL;
	tj->tj_given_up = true;
	LIST_REMOVE(tj, tj_link);
	*like = tj->tj_window;
	return list;
}

/* Gives up a read that failed.  A window that the tier has lost is offered to the tier again. */
static void
tier_fetch_give_up(struct tier_job *tj, int error)
{
	struct pw_device *dv = tj->tj_tiered->td_device;
	struct pw_waiter *list = NULL;
	struct window like;

	meter_lock(&dv->dv_lock);
	if (!tj->tj_given_up)
		list = tier_fetch_give_up_locked(tj, &like);
	pthread_mutex_unlock(&dv->dv_lock);
	if (list == NULL)
		return;
	like.win_tier = error == -ENOENT || error == -EBADMSG;
	fetch_resume(&like, list);
}

/* Notes that the read begins.  Returns false if the read was given up. */
static bool
tier_fetch_begin(struct tier_job *tj)
{
	struct pw_device *dv = tj->tj_tiered->td_device;
	bool wanted;

	meter_lock(&dv->dv_lock);
	tj->tj_begun = clock_now();
	wanted = !tj->tj_given_up;
	pthread_mutex_unlock(&dv->dv_lock);
	return wanted;
}

/* Reads the pieces into a copy.  If that fails, gives the read up. */
static int
tier_fetch_run(struct job *job)
{
	struct tier_job *tj = (struct tier_job *)job;
	struct tiered *td = tj->tj_tiered;
	const size_t len = tj->tj_job.job_len;
	struct pin *pn;
	int error = -ENOMEM;

	if (!tier_fetch_begin(tj))
		return -ECANCELED;
	pn = pins_blank(td->td_pins, &tj->tj_window.win_key, len);
	if (pn != NULL)
		error = tier_read(td->td_tier, &tj->tj_key, tj->tj_from, len,
		    pins_memory(pn));
	if (error == 0) {
		pins_add_copy(td->td_pins, pn, tj->tj_from, len);
		return FETCHED_DIRECT;
	}
	if (pn != NULL)
		pins_blank_free(td->td_pins, pn);
	tier_fetch_give_up(tj, error);
	return -EAGAIN;
}

static void
tier_fetch_done(struct job *job, int error, uint64_t took)
{
	struct tier_job *tj = (struct tier_job *)job;
	struct tiered *td = tj->tj_tiered;

	(void)took;
	if (!tj->tj_given_up)
		LIST_REMOVE(tj, tj_link);
	if (tj->tj_late)
		tier_was_late(td->td_tier);
	if (error == FETCHED_DIRECT)
		td->td_device->dv_bytes += job->job_len;
	td->td_reading--;
}

/* Returns the end of the window of the tier that has the first byte of the range. */
static off_t
tier_fetch_window_end(const struct window *win)
{
	return offset_next(
	    win->win_off, OS_FOLIO, win->win_key.pk_version.ov_size);
}

/* Sets *from and *len to the pieces that a read of the range reads from the tier. */
static void
tier_fetch_pieces(const struct window *win, off_t *from, size_t *len)
{
	off_t end = win->win_off + (off_t)win->win_job.job_len;

	*from = win->win_off - win->win_off % (off_t)TIER_PIECE;
	*len = (size_t)(offset_round_up(
			    end, TIER_PIECE, tier_fetch_window_end(win)) -
			*from);
}

/* Returns a job that reads these pieces, or NULL.  The device's lock is held, as in tier_fetch_start. */
static struct tier_job *
tier_fetch_find(
    struct tiered *td, const struct window *like, off_t from, size_t len)
{
	struct tier_job *tj;

	LIST_FOREACH(tj, &td->td_chains[tier_fetch_chain(like)], tj_link)
	if (tj->tj_from <= from &&
	    tj->tj_from + (off_t)tj->tj_job.job_len >= from + (off_t)len &&
	    pins_same_key(&tj->tj_window.win_key, &like->win_key))
		break;
	return tj;
}

static int
tier_fetch_start(struct tiered *td, const struct window *like, off_t from,
    size_t len, unsigned client, struct tier_job **out)
{
	struct tier_job *tj = calloc(1, sizeof(*tj));
	int error;

	if (tj == NULL)
		return -ENOMEM;
	tj->tj_job.job_run = tier_fetch_run;
	tj->tj_job.job_done = tier_fetch_done;
	tj->tj_job.job_kind = like->win_job.job_kind;
	tj->tj_job.job_len = len;
	tj->tj_job.job_client = client;
	tj->tj_tiered = td;
	tj->tj_from = from;
	tj->tj_key = tier_fetch_key(like);
	tj->tj_window = *like;
	error = pool_enqueue(td->td_device, &tj->tj_job, ADMIT_HINT);
	if (error != 0) {
		free(tj);
		return error;
	}
	LIST_INSERT_HEAD(&td->td_chains[tier_fetch_chain(like)], tj, tj_link);
	td->td_reading++;
	*out = tj;
	return 0;
}

/* Extends a window to a range of the same window of the tier. */
static void
tier_fetch_extend(struct window *win, const struct window *like)
{
	off_t end = win->win_off + (off_t)win->win_job.job_len,
	      like_end = like->win_off + (off_t)like->win_job.job_len;

	if (like->win_off < win->win_off)
		win->win_off = like->win_off;
	if (like_end > end)
		end = like_end;
	win->win_job.job_len = (size_t)(end - win->win_off);
}

/*
 * Has a disk thread read the range from the tier.  Returns 0, -ENOENT if the tier does not have its window, or
 * another -errno if the tier's queue is full, or memory is short.
 */
static int
tier_fetch_from_tier(struct tiered *td, const struct window *like,
    struct pw_loop *lp, struct pw_waiter *w)
{
	const struct pins_key key = tier_fetch_key(like);
	struct pw_device *dv = td->td_device;
	struct tier_job *tj;
	int error = 0;
	size_t len;
	off_t from;

	if (!tier_has(td->td_tier, &key, like->win_off))
		return -ENOENT;
	tier_fetch_pieces(like, &from, &len);
	meter_lock(&dv->dv_lock);
	tj = tier_fetch_find(td, like, from, len);
	if (tj == NULL)
		error =
		    tier_fetch_start(td, like, from, len, pool_client(w), &tj);
	else
		shares_join(&dv->dv_shares, &tj->tj_job, like->win_job.job_kind,
		    pool_client(w), clock_now());
	if (error == 0) {
		tier_fetch_extend(&tj->tj_window, like);
		pool_await(&tj->tj_job, lp, w);
	}
	pthread_mutex_unlock(&dv->dv_lock);
	return error;
}

/*
 * Describes a range.  Sets win_lent if the residency of the file cannot be checked, since a loop sends such a
 * file only from copies.  Returns false if the range is not in one window, or no window of the file can be in
 * the tier.
 */
static bool
tier_fetch_describe(struct pw_file *file, off_t off, size_t len,
    enum fetch_how how, enum admit admit, struct window *like)
{
	struct pw_device *dv = file_priv(file)->fp_device;
	const bool copies = tier_fetch_needs_copy(file);

	*like = (struct window){
	    .win_job = {.job_kind = pool_window_kind(admit), .job_len = len},
	    .win_device = dv,
	    .win_fd = file->fil_fd,
	    .win_key = pins_key(file),
	    .win_off = off,
	    .win_how = copies ? FETCH_PAGES : how,
	    .win_lent = copies,
	};
	return off + (off_t)len <= tier_fetch_window_end(like) &&
	       file->fil_dev != dv->dv_pool->pl_tiered->td_device->dv_id &&
	       tier_place(file, &like->win_place);
}

/* Notes a miss of the range, and returns true if its window is to be written. */
static bool
tier_fetch_missed(
    struct tiered *td, const struct window *like, enum tier_use *use)
{
	const struct pins_key key = tier_fetch_key(like);
	bool again = tier_missed(
	    td->td_tier, &key, like->win_off, like->win_job.job_len);

	if (*use == TIER_UNDECIDED)
		*use = again ? TIER_WRITES : TIER_READS;
	return *use == TIER_WRITES;
}

/* Describes the whole window, which is written to the tier, if a large part of it is needed. */
static void
tier_fetch_widen(struct window *like)
{
	const off_t from = like->win_off - like->win_off % (off_t)OS_FOLIO;
	const size_t whole = (size_t)(tier_fetch_window_end(like) - from);

	if (whole > TIER_WIDEN * like->win_job.job_len)
		return;
	like->win_off = from;
	like->win_job.job_len = whole;
}

int
tier_fetch(struct pw_file *file, off_t off, size_t len, enum fetch_how how,
    enum tier_use *use, enum admit admit, struct pw_waiter *w)
{
	struct tiered *td = file_priv(file)->fp_device->dv_pool->pl_tiered;
	struct window like;
	int error;

	if (!tier_fetch_describe(file, off, len, how, admit, &like))
		return (tier_fetch_needs_copy(file)
			    ? pool_fetch_copy
			    : pool_fetch)(file, off, len, how, admit, w);
	error = tier_fetch_from_tier(td, &like, file_priv(file)->fp_loop, w);
	if (error == 0)
		return 0;
	like.win_tier = error == -ENOENT && tier_fetch_missed(td, &like, use);
	if (like.win_tier)
		tier_fetch_widen(&like);
	return fetch_window(file, &like, admit, w);
}

/* ------------------------------------------------------------------- ticks */

static int
tier_fetch_prepare_run(struct job *job)
{
	tier_prepare(((struct tier_call *)job)->tl_tiered->td_tier);
	return 0;
}

static int
tier_fetch_unlock_run(struct job *job)
{
	tier_unlock(((struct tier_call *)job)->tl_tiered->td_tier);
	return 0;
}

void
tier_fetch_leave(struct pw_pool *pl)
{
	if (pl->pl_tiered != NULL)
		tier_leave(pl->pl_tiered->td_tier);
}

/*
 * Returns true if the read has taken TIER_LATE_US, or, if `off` is true, has not begun.  The
 * device's lock is held, as in tier_fetch_find_stuck.
 */
static bool
tier_fetch_is_stuck(const struct tier_job *tj, uint64_t now_us, bool off)
{
	return tj->tj_begun == 0 ? off : tj->tj_begun + TIER_LATE_US < now_us;
}

/* Returns a stuck read, or NULL. */
static struct tier_job *
tier_fetch_find_stuck(struct tiered *td, uint64_t now_us, bool off)
{
	struct tier_job *tj;
	size_t i;

	for (i = 0; i < TIER_CHAINS; i++)
		LIST_FOREACH(tj, &td->td_chains[i], tj_link)
	if (tier_fetch_is_stuck(tj, now_us, off))
		return tj;
	return NULL;
}

/* Gives up a stuck read.  Returns false if there is none. */
static bool
tier_fetch_give_up_stuck(struct tiered *td, uint64_t now_us, bool off)
{
	struct pw_device *dv = td->td_device;
	struct pw_waiter *list = NULL;
	struct window like;
	struct tier_job *tj = NULL;

	meter_lock(&dv->dv_lock);
	if (td->td_reading > 0)
		tj = tier_fetch_find_stuck(td, now_us, off);
	if (tj != NULL) {
		tj->tj_late = tj->tj_begun != 0;
		if (tj->tj_late)
			tier_is_late(td->td_tier);
		list = tier_fetch_give_up_locked(tj, &like);
	}
	pthread_mutex_unlock(&dv->dv_lock);
	if (list != NULL)
		fetch_resume(&like, list);
	return tj != NULL;
}

/*
 * Has a disk thread unlock the files, once, when no thread uses the tier any more.  Call after
 * tier_leave.
 */
static void
tier_fetch_unlock(struct tiered *td)
{
	struct pw_device *dv = td->td_device;
	bool unlocks;

	meter_lock(&dv->dv_lock);
	unlocks = td->td_reading == 0;
	pthread_mutex_unlock(&dv->dv_lock);
	meter_lock(&td->td_lock);
	unlocks = unlocks && td->td_waiting == 0 && !td->td_unlocks;
	td->td_unlocks = td->td_unlocks || unlocks;
	pthread_mutex_unlock(&td->td_lock);
	if (!unlocks || tier_offer_call(td, JOB_SHORT, tier_fetch_unlock_run))
		return;
	meter_lock(&td->td_lock);
	td->td_unlocks = false; /* the next tick tries again */
	pthread_mutex_unlock(&td->td_lock);
}

void
tier_fetch_tick(struct pw_pool *pl, uint64_t now_us)
{
	struct tiered *td = pl->pl_tiered;
	bool off = false;

	if (td == NULL)
		return;
	if (tier_is_due(td->td_tier, now_us) &&
	    !tier_offer_call(td, JOB_SHORT, tier_fetch_prepare_run))
		tier_postpone(td->td_tier);
	if (tier_is_left(td->td_tier))
		tier_fetch_unlock(td);
	while (tier_fetch_give_up_stuck(td, now_us, off))
		off = true;
}

int
tier_fetch_create(struct pw_pool *pl, struct tier **ti)
{
	struct tiered *td = calloc(1, sizeof(*td));

	if (td == NULL)
		return -ENOMEM;
	td->td_tier = *ti;
	*ti = NULL;
	td->td_device = pool_device(pl, tier_dev(td->td_tier), POOL_TIER);
	td->td_pins = pl->pl_pins;
	pthread_mutex_init(&td->td_lock, NULL);
	STAILQ_INIT(&td->td_writes);
	pl->pl_tiered = td;
	pl->pl_offer = tier_offer;
	pl->pl_tier_destroy = tier_fetch_destroy;
	return 0;
}
