/*
 * lend: makes a window of a file resident for the caller, and lends it until pw_unpin: the pages, locked
 * if possible, or a copy.  Fetches, pins and budget are those of transmissions.
 */
#include <assert.h>
#include <errno.h>

#include "lib/disk/admission.h"
#include "lib/disk/completion.h"
#include "lib/disk/file_private.h"
#include "lib/disk/pins.h"
#include "lib/disk/pool.h"
#include "lib/file/file.h"
#include "lib/file/residency.h"
#include "lib/os/os.h"
#include "lib/send/drop_behind.h"
#include "lib/util/check.h"
#include "lib/util/clock.h"
#include "lib/util/offset.h"

/* maximum number of fetches of a copy, since the first may join a fetch that makes no copy */
#define TRIES 2

struct lend_private {
	/* first member, as lend_of_waiter converts its address */
	struct pw_waiter ld_waiter;
	struct pin *ld_pin;	 /* pin that ft_mem points into, or NULL */
	struct pw_file *ld_file; /* referenced file; NULL if nothing is lent */
	size_t ld_budget;	 /* bytes taken from the budget */
	off_t ld_from;		 /* start of the window */
	off_t ld_end;		 /* end of the window */
	unsigned char ld_how;	 /* method of reading, an enum fetch_how */
	unsigned char ld_tries;	 /* number of fetches that were started */
	bool ld_pending;      /* true until wt_done of the caller is called */
	bool ld_drops;	      /* true if pw_unpin drops fetched pages */
	bool ld_missed;	      /* true if a page was not resident */
	bool ld_fetched;      /* true if missing pages entered the page cache */
} __attribute__((may_alias)); /* ft_private is an array of characters */

static_assert(sizeof(struct lend_private) <= PW_FETCH_ROOM,
    "struct lend_private must fit into PW_FETCH_ROOM, which is part of the "
    "ABI");

static struct lend_private *
lend_priv(struct pw_fetch *ft)
{
	return (struct lend_private *)(void *)&ft->ft_private;
}

static struct pw_fetch *
lend_of_waiter(struct pw_waiter *w)
{
	return (struct pw_fetch *)(void *)((char *)w - offsetof(struct pw_fetch,
							   ft_private));
}

static struct pw_device *
lend_device(struct pw_fetch *ft)
{
	return file_priv(lend_priv(ft)->ld_file)->fp_device;
}

static struct pins *
lend_pins(struct pw_fetch *ft)
{
	return pool_pins(file_priv(lend_priv(ft)->ld_file)->fp_loop->lp_pool);
}

/* Returns true if the caller's fields are valid, and no window is lent yet. */
static bool
lend_is_right(struct pw_fetch *ft)
{
	const struct pw_file *file = ft->ft_file;

	return lend_priv(ft)->ld_file == NULL &&
	       ft->ft_waiter.wt_done != NULL && file != NULL &&
	       file->fil_fd != -1 && ft->ft_off >= 0 && ft->ft_len > 0 &&
	       ft->ft_off < file->fil_size &&
	       ft->ft_len <= (uint64_t)(file->fil_size - ft->ft_off);
}

static bool
lend_wants_memory(const struct pw_fetch *ft)
{
	return ft->ft_want == PW_FETCH_MEMORY;
}

/*
 * Returns true if the window can be locked as one folio.  The window must begin at a multiple of OS_FOLIO,
 * and have OS_FOLIO bytes, or at least POOL_LARGE bytes if the file ends there.  The device must not mark
 * folios (device_marks).
 */
static bool
lend_can_lock(struct pw_fetch *ft)
{
	return ft->ft_off % (off_t)OS_FOLIO == 0 && ft->ft_have >= POOL_LARGE &&
	       (ft->ft_have == OS_FOLIO ||
		   ft->ft_off + (off_t)ft->ft_have == ft->ft_file->fil_size) &&
	       !device_marks(lend_device(ft));
}

/* Decides whether the pages are dropped, and how the window is read (send_fetch_how). */
static void
lend_choose(struct pw_fetch *ft)
{
	struct lend_private *ld = lend_priv(ft);
	struct pw_loop *lp = file_priv(ft->ft_file)->fp_loop;
	enum admission_verdict verdict = ADMISSION_STAYS;

	/* device_marks and device_folds need this call first. */
	device_step(lend_device(ft));
	if (ft->ft_cache == PW_CACHE_AUTO) {
		admission_sent(pool_admission(lp->lp_pool), &lp->lp_noted,
		    ft->ft_file, (off_t)ft->ft_have);
		verdict = admission_judge(
		    pool_admission(lp->lp_pool), ft->ft_file, 0);
	} else if (ft->ft_cache == PW_CACHE_DROP)
		verdict = ADMISSION_GOES;
	ld->ld_drops = verdict == ADMISSION_GOES;
	if (verdict == ADMISSION_TRIAL || !residency_can_ask(ft->ft_file))
		ld->ld_how = FETCH_PAGES;
	else if (lend_wants_memory(ft))
		ld->ld_how = ld->ld_drops ? FETCH_DIRECT : FETCH_FOLIO;
	else
		ld->ld_how = lend_can_lock(ft) ? FETCH_FOLIO : FETCH_PAGES;
}

/* References the pin that has the whole window, a copy or a locked mapping.  Returns false if there is none. */
static bool
lend_take_pin(struct pw_fetch *ft)
{
	struct lend_private *ld = lend_priv(ft);
	struct pins_key key = pins_key(ft->ft_file);
	off_t off = ft->ft_off;

	ld->ld_pin = lend_wants_memory(ft)
			 ? pins_take_copy(lend_pins(ft), &key, off)
			 : pins_take(lend_pins(ft), &key, off);
	ft->ft_mem = lend_wants_memory(ft) ? pins_copy(ld->ld_pin, off)
					   : pins_mapping(ld->ld_pin, off);
	if (ft->ft_mem != NULL && !pins_marked(ld->ld_pin) &&
	    pins_end(ld->ld_pin, off) >= off + (off_t)ft->ft_have)
		return true;
	ft->ft_mem = NULL;
	pins_release(lend_pins(ft), &ld->ld_pin);
	return false;
}

/*
 * Returns 0, -ESTALE if the file has changed, or another -errno.  Skips files whose fstat(2) may
 * wait: a disk thread has checked their copies.
 */
static int
lend_check(const struct pw_fetch *ft)
{
	return file_priv(ft->ft_file)->fp_remote
		   ? 0
		   : file_check(ft->ft_file, false);
}

/*
 * Has a disk thread drop the fetched pages after DROP_SOON, and again after DROP_LATER, since a socket may
 * still hold some at first.
 */
static void
lend_drop(struct lend_private *ld)
{
	struct pw_file *file = ld->ld_file;
	off_t len = ld->ld_end - ld->ld_from;

	if (!ld->ld_drops || !ld->ld_fetched)
		return;
	drop_behind_add_soon(file, ld->ld_from, len);
	drop_behind_add(file, ld->ld_from, len, clock_now() + DROP_LATER);
	pool_dropped(file_priv(file)->fp_loop->lp_pool, (size_t)len);
}

void
pw_unpin(struct pw_fetch *ft)
{
	struct lend_private *ld = lend_priv(ft);

	PW_MUST(!ld->ld_pending, "the fetch is pending: wait for wt_done");
	if (ld->ld_file == NULL)
		return;
	ft->ft_mem = NULL;
	pins_release(lend_pins(ft), &ld->ld_pin);
	lend_drop(ld);
	if (ld->ld_budget > 0)
		pool_room_give(lend_device(ft), ld->ld_budget);
	ld->ld_budget = 0;
	pw_file_unref(&ld->ld_file);
}

/* Completes the caller's wait.  After an error, first releases the window.  wt_done may free the struct. */
static void
lend_deliver(struct pw_fetch *ft, int error)
{
	lend_priv(ft)->ld_pending = false;
	if (error != 0)
		pw_unpin(ft);
	ft->ft_waiter.wt_error = error;
	ft->ft_waiter.wt_done(&ft->ft_waiter);
}

static int lend_fetch(struct pw_fetch *);

/*
 * Lends a window that was fetched.  Returns 0, -EINPROGRESS if the window is fetched again, or
 * -errno.
 */
static int
lend_arrived(struct pw_fetch *ft, bool direct)
{
	struct lend_private *ld = lend_priv(ft);
	int error = lend_check(ft);

	ld->ld_fetched = ld->ld_missed && !direct;
	if (!direct)
		residency_fetched(
		    ft->ft_file, ld->ld_from, ld->ld_end - ld->ld_from);
	if (error != 0 || lend_take_pin(ft) || !lend_wants_memory(ft))
		return error;
	if (ld->ld_tries >= TRIES)
		return -ENOBUFS;
	error = lend_fetch(ft);
	return error == 0 ? -EINPROGRESS : error;
}

static void
lend_fetched(struct pw_waiter *w)
{
	struct pw_fetch *ft = lend_of_waiter(w);
	int error = w->wt_error;

	if (error >= 0)
		error = lend_arrived(ft, error == FETCHED_DIRECT);
	if (error != -EINPROGRESS)
		lend_deliver(ft, error);
}

/* Starts a fetch of the window.  Returns 0 if lend_fetched will be called, else -errno. */
static int
lend_fetch(struct pw_fetch *ft)
{
	struct lend_private *ld = lend_priv(ft);
	size_t len = (size_t)(ld->ld_end - ld->ld_from);
	enum admit admit =
	    ft->ft_begun || ld->ld_tries > 0 ? ADMIT_BEGUN : ADMIT_NEW;

	ld->ld_tries++;
	ld->ld_waiter.wt_done = lend_fetched;
	ld->ld_waiter.wt_client = ft->ft_waiter.wt_client;
	return (lend_wants_memory(ft) ? pool_fetch_copy : pool_fetch)(
	    ft->ft_file, ld->ld_from, len, (enum fetch_how)ld->ld_how, admit,
	    &ld->ld_waiter);
}

static void
lend_has_budget(struct pw_waiter *w)
{
	struct pw_fetch *ft = lend_of_waiter(w);
	int error;

	lend_priv(ft)->ld_budget = ft->ft_have;
	error = lend_fetch(ft);
	if (error != 0)
		lend_deliver(ft, error);
}

/* Takes budget, now or later, and then starts a fetch of the window.  Returns -EINPROGRESS or -errno. */
static int
lend_start(struct pw_fetch *ft)
{
	struct lend_private *ld = lend_priv(ft);
	int error;

	ld->ld_from = ft->ft_off;
	ld->ld_end = ft->ft_off + (off_t)ft->ft_have;
	if (!lend_wants_memory(ft))
		residency_round(ft->ft_file, &ld->ld_from, &ld->ld_end);
	ld->ld_waiter.wt_done = lend_has_budget;
	error = pool_room_take(lend_device(ft), ft->ft_have, false,
	    file_priv(ft->ft_file)->fp_loop, &ld->ld_waiter);
	if (error == 0) {
		ld->ld_budget = ft->ft_have;
		error = lend_fetch(ft);
	}
	if (error != 0 && error != -EINPROGRESS)
		return error;
	ld->ld_pending = true;
	return -EINPROGRESS;
}

/*
 * Lends the window if the window is pinned or resident.  Returns 0, -EAGAIN if the window must be
 * fetched, or another -errno.
 */
static int
lend_at_once(struct pw_fetch *ft)
{
	struct lend_private *ld = lend_priv(ft);
	bool resident;

	if (lend_take_pin(ft))
		return lend_check(ft);
	resident = pw_resident(ft->ft_file, ft->ft_off, ft->ft_have) == 1;
	ld->ld_missed = !resident;
	if (!resident || lend_wants_memory(ft))
		return -EAGAIN;
	/* Only a disk thread locks pages. */
	return ld->ld_how == FETCH_FOLIO && device_folds(lend_device(ft))
		   ? -EAGAIN
		   : lend_check(ft);
}

int
pw_fetch(struct pw_fetch *ft)
{
	struct lend_private *ld = lend_priv(ft);
	int error;

	if (!lend_is_right(ft))
		return -EINVAL;
	*ld = (struct lend_private){.ld_file = ft->ft_file};
	pw_file_ref(ft->ft_file);
	ft->ft_mem = NULL;
	ft->ft_have = (size_t)(offset_next(ft->ft_off, (off_t)OS_FOLIO,
				   ft->ft_off + (off_t)ft->ft_len) -
			       ft->ft_off);
	residency_no_readahead(ft->ft_file);
	lend_choose(ft);
	error = lend_at_once(ft);
	if (error == -EAGAIN)
		error = lend_start(ft);
	if (error != 0 && error != -EINPROGRESS)
		pw_unpin(ft);
	return error;
}
