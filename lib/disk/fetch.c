/*
 * fetch: reads windows of files.  One job reads a window for all transmissions that wait
 * for it.
 */
#include <sys/stat.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/disk/completion.h"
#include "lib/disk/file_private.h"
#include "lib/disk/pins.h"
#include "lib/disk/pool_priv.h"
#include "lib/disk/reclaim.h"
#include "lib/os/meter.h"
#include "lib/os/place.h"
#include "lib/util/clock.h"
#include "lib/util/offset.h"

/* Minimum size of a window that is read direct, since its copy needs OS_FOLIO bytes. */
#define DIRECT_LEAST   ((size_t)512 << 10)
#define DIRECT_SETTLED 2 /* minimum age of a file's times, seconds */

#define FETCH_WIDE \
	UINT64_MAX /* piece of windows that cross a multiple of OS_FOLIO */

/* Returns the piece of OS_FOLIO bytes that contains the range, or FETCH_WIDE. */
static uint64_t
fetch_piece(off_t off, off_t end)
{
	uint64_t piece = (uint64_t)off / OS_FOLIO;

	return piece == (uint64_t)(end - 1) / OS_FOLIO ? piece : FETCH_WIDE;
}

/* Returns the chain of the file's windows in this piece.  One chain for each file would have thousands. */
static struct window **
fetch_window_chain(struct pw_device *dv, uint64_t ino, uint64_t piece)
{
	return &dv->dv_windows[((ino + piece) * 0x9e3779b97f4a7c15U) >> 56];
}

static struct window **
fetch_chain_of(const struct window *win)
{
	off_t end = win->win_off + (off_t)win->win_job.job_len;

	return fetch_window_chain(win->win_device, win->win_key.pk_ino,
	    fetch_piece(win->win_off, end));
}

/*
 * Reads a piece.  Threads of this processor take turns (gate.h), since a disk that completes many
 * reads at once wakes all their threads.  os_fetch_folio reads before the thread has its turn; the
 * turn then only makes the threads continue one after another.
 */
static int
fetch_read_piece(struct pw_device *dv, int fd, off_t off, size_t len,
    bool folio, int pagemap, struct os_folio *fo)
{
	bool large = len >= POOL_LARGE, mine;
	struct gate *tn;

	folio = folio && large &&
		os_fetch_folio(
		    fd, off, len, atomic_load(&dv->dv_readahead), pagemap, fo);
	tn = &dv->dv_gates[os_cpu() % POOL_GATES];
	mine = large && gate_take(tn);
	if (!folio)
		os_fetch_begin(fd, off, len, device_step(dv));
	if (mine)
		gate_give(tn);
	if (folio && fo != NULL && fo->fo_map != NULL)
		return 0;
	return folio ? os_fetch_end(dv->dv_pool->pl_sink, fd, off, len)
		     : os_fetch_wait(dv->dv_pool->pl_sink, fd, off, len);
}

/*
 * Returns the kind of mapping for a window's folios.  Where this process may not check residency,
 * sent windows are kept, since their mappings prove that the bytes are resident
 * (fetch_unmark_kept).
 */
static enum pins_mapping
fetch_mapping(const struct window *win)
{
	if (!device_marks(win->win_device))
		return PINS_UNMARKED;
	return os_cachestat(win->win_fd, win->win_off, 1) < 0 ? PINS_KEPT
							      : PINS_MARKED;
}

/* Reads a piece of at most OS_FOLIO, and pins it if that is possible. */
static int
fetch_pinned_piece(
    const struct window *win, enum pins_mapping mapping, off_t off, size_t len)
{
	struct pw_device *dv = win->win_device;
	struct pins *ps = dv->dv_pool->pl_pins;
	bool may = pins_reserve(ps, len);
	bool pipe = may && pins_reserve_pipe(ps);
	struct os_folio fo = {.fo_pipe = -1};
	int error = fetch_read_piece(dv, win->win_fd, off, len, true,
	    pipe ? dv->dv_pool->pl_pagemap : -1, may ? &fo : NULL);

	if (pipe && fo.fo_pipe == -1)
		pins_no_pipe(ps);
	if (fo.fo_map != NULL)
		pins_add(ps, &win->win_key, off, &fo, mapping);
	else if (may)
		pins_refuse(ps, len);
	return error;
}

/* Removes the read-ahead mark of a kept folio, if mappings prove that os_unmark starts no read. */
static void
fetch_unmark_kept(const struct window *win, off_t folio, size_t readahead)
{
	struct pins *ps = win->win_device->dv_pool->pl_pins;
	off_t end =
	    offset_add(folio, readahead + 1, win->win_key.pk_version.ov_size);

	if (!pins_cover(ps, &win->win_key, folio, end))
		return;
	os_unmark(win->win_fd, folio);
	pins_unkeep(ps, &win->win_key, folio);
}

/*
 * Removes the read-ahead marks of the folios that are followed by resident bytes, now that the piece at
 * off was read.
 */
static void
fetch_unmark(const struct window *win, enum pins_mapping mapping, off_t off)
{
	size_t readahead = atomic_load(&win->win_device->dv_readahead);
	off_t folio = off - off % (off_t)OS_FOLIO, from;

	from = folio - offset_round_up((off_t)readahead, OS_FOLIO, OFFSET_MAX);
	for (from = from > 0 ? from : 0; from <= folio; from += (off_t)OS_FOLIO)
		if (mapping == PINS_KEPT)
			fetch_unmark_kept(win, from, readahead);
		else if (os_can_unmark(win->win_fd, from, readahead))
			os_unmark(win->win_fd, from);
}

/*
 * Reads [off, off + len) into the page cache, and takes turns with other threads (gate.h).  If `folio` is
 * true, reads large folios where the device has them; if win is not NULL, too, pins these folios, and first
 * unmaps removed pins of the device.
 */
static int
fetch_read(struct pw_device *dv, int fd, off_t off, size_t len, bool folio,
    const struct window *win)
{
	off_t end = off + (off_t)len, next;
	enum pins_mapping mapping = PINS_UNMARKED;
	int error = 0;

	reclaim_read_begins(dv->dv_pool->pl_reclaim);
	device_step(dv);
	folio = folio && dv->dv_folios;
	if (folio && win != NULL) {
		pins_reap(dv->dv_pool->pl_pins, win->win_key.pk_dev);
		mapping = fetch_mapping(win);
	}
	for (; off < end && error == 0; off = next) {
		next = folio ? offset_next(off, OS_FOLIO, end) : end;
		len = (size_t)(next - off);
		error =
		    folio && win != NULL
			? fetch_pinned_piece(win, mapping, off, len)
			: fetch_read_piece(dv, fd, off, len, folio, -1, NULL);
		if (mapping != PINS_UNMARKED)
			fetch_unmark(win, mapping, off);
	}
	reclaim_read_ends(dv->dv_pool->pl_reclaim);
	return error;
}

int
pool_read(struct pw_device *dv, int fd, off_t off, size_t len, bool folio)
{
	return fetch_read(dv, fd, off, len, folio, NULL);
}

bool
pool_is_settled(const struct os_version *ov)
{
	return pins_version_is_older(ov, DIRECT_SETTLED);
}

/*
 * Returns true if the window may be read direct: it is large, does not cross a multiple of
 * OS_FOLIO, and its file is local and did not change in the last two seconds.
 */
static bool
fetch_may_be_direct(const struct window *win)
{
	size_t before = (size_t)(win->win_off % (off_t)OS_FOLIO);

	return win->win_how == FETCH_DIRECT &&
	       device_is_local(win->win_device) &&
	       win->win_job.job_len >= DIRECT_LEAST &&
	       before + win->win_job.job_len <= OS_FOLIO &&
	       pool_is_settled(&win->win_key.pk_version);
}

/* Reads the window direct, into a copy.  Returns false if that fails or the limit of pins is reached. */
static bool
fetch_copy(const struct window *win, int fd, size_t align)
{
	struct pins *ps = win->win_device->dv_pool->pl_pins;
	off_t from = win->win_off - win->win_off % (off_t)align;
	size_t len = win->win_job.job_len + (size_t)(win->win_off - from);
	struct pin *pn = pins_blank(ps, &win->win_key, OS_FOLIO);

	if (pn == NULL)
		return false;
	if (os_direct_read(fd, from, pins_memory(pn), len, align) < (long)len) {
		pins_blank_free(ps, pn);
		return false;
	}
	if (win->win_lent)
		pins_add_lent(ps, pn, from, len);
	else
		pins_add_copy(ps, pn, from, len);
	return true;
}

/*
 * Reads the window past the page cache.  Returns false if the window must be read into the page
 * cache instead.
 */
static bool
fetch_direct(const struct window *win)
{
	struct os_version ov;
	size_t align;
	bool read;
	int fd;

	if (!fetch_may_be_direct(win))
		return false;
	fd = os_direct_open(win->win_fd, &ov, &align);
	if (fd < 0)
		return false;
	read = OS_FOLIO % align == 0 &&
	       pins_same_version(&ov, &win->win_key.pk_version) &&
	       fetch_copy(win, fd, align);
	close(fd);
	return read;
}

/*
 * Returns true if the window is read as folios.  Where folios are marked, a window that could not
 * be read direct is read as pages, since its transmission may have a sink.
 */
static bool
fetch_folds(const struct window *win)
{
	return win->win_how == FETCH_FOLIO ||
	       (win->win_how == FETCH_DIRECT && !device_marks(win->win_device));
}

/*
 * Returns 0 if the file's size and time are those of the window's version, -ESTALE if they differ,
 * or another -errno.
 */
static int
fetch_check(const struct window *win)
{
	const struct os_version *ov = &win->win_key.pk_version;
	struct stat st;

	if (fstat(win->win_fd, &st) == -1)
		return -errno;
	return st.st_size == ov->ov_size &&
		       timespec_same(&st.st_mtim, &ov->ov_mtime)
		   ? 0
		   : -ESTALE;
}

/* Reads the window from the page cache into memory.  Returns 0 or -errno. */
static int
fetch_read_window(const struct window *win, char *to)
{
	size_t left = win->win_job.job_len;
	off_t off = win->win_off;
	long n;

	for (; left > 0; to += n, off += n, left -= (size_t)n) {
		n = os_read(win->win_fd, off, to, left, true);
		if (n == -EINTR)
			n = 0;
		else if (n <= 0)
			return n == 0 ? -ESTALE : (int)n;
	}
	return fetch_check(win);
}

/* Has the kernel begin to read a window, if it is not read as folios. */
static int
fetch_begin(const struct window *win)
{
	struct pw_device *dv = win->win_device;

	if (fetch_folds(win))
		return fetch_read(dv, win->win_fd, win->win_off,
		    win->win_job.job_len, true, NULL);
	os_fetch_begin(
	    win->win_fd, win->win_off, win->win_job.job_len, device_step(dv));
	return 0;
}

/*
 * Reads a window into a copy.  Above the limit of pins, reads it into the page cache only.
 */
static int
fetch_lend(const struct window *win)
{
	struct pins *ps = win->win_device->dv_pool->pl_pins;
	struct pin *pn = pins_blank(ps, &win->win_key, win->win_job.job_len);
	int error;

	if (pn == NULL)
		return fetch_read(win->win_device, win->win_fd, win->win_off,
		    win->win_job.job_len, fetch_folds(win), NULL);
	reclaim_read_begins(win->win_device->dv_pool->pl_reclaim);
	error = fetch_begin(win);
	if (error == 0)
		error = fetch_read_window(win, pins_memory(pn));
	reclaim_read_ends(win->win_device->dv_pool->pl_reclaim);
	if (error == 0)
		pins_add_lent(ps, pn, win->win_off, win->win_job.job_len);
	else
		pins_blank_free(ps, pn);
	return error;
}

/* Notes the place of the window for later windows of the file, if the disk seeks. */
static void
fetch_learn_place(const struct window *win)
{
	struct pw_device *dv = win->win_device;
	off_t end = win->win_off + (off_t)win->win_job.job_len;
	uint64_t place;

	device_find_sweep(dv);
	if (!device_seeks(dv) || end >= win->win_key.pk_version.ov_size ||
	    os_place(win->win_fd, win->win_off, &place) != 0)
		return;
	meter_lock(&dv->dv_lock);
	sweep_learn(dv->dv_sweep, win->win_key.pk_ino, win->win_off, place);
	pthread_mutex_unlock(&dv->dv_lock);
}

static int
fetch_window_run(struct job *job)
{
	struct window *win = (struct window *)job;
	struct pw_device *dv = win->win_device;
	int error;

	fetch_learn_place(win);
	if (win->win_how == FETCH_MAP)
		return os_native_map(
		    win->win_fd, win->win_off, device_block(win->win_device));
	if (fetch_direct(win)) {
		if (win->win_tier)
			dv->dv_pool->pl_offer(win, true);
		return FETCHED_DIRECT;
	}
	error = win->win_lent
		    ? fetch_lend(win)
		    : fetch_read(dv, win->win_fd, win->win_off,
			  win->win_job.job_len, fetch_folds(win), win);
	if (error == 0 && win->win_tier)
		dv->dv_pool->pl_offer(win, win->win_lent);
	if (error == 0 && win->win_how == FETCH_RELEASED)
		os_unbuffer(win->win_fd, win->win_off, win->win_job.job_len);
	/* The fetched pages may have evicted others. */
	reclaim_look(win->win_device->dv_pool->pl_reclaim);
	return error;
}

struct reap_job {
	struct job rj_job; /* first member, as free(job) frees this struct */
	struct pins *rj_pins;
	uint64_t rj_dev;
};

static int
fetch_reap_run(struct job *job)
{
	struct reap_job *rj = (struct reap_job *)job;

	pins_reap(rj->rj_pins, rj->rj_dev);
	return 0;
}

void
pool_tick_pins(struct pw_loop *lp, uint64_t now_us)
{
	struct pw_pool *pl = lp->lp_pool;
	struct reap_job *rj;
	uint64_t dev;

	if (!pins_tick(pl->pl_pins, now_us, &dev))
		return;
	rj = calloc(1, sizeof(*rj));
	if (rj == NULL)
		return;
	rj->rj_job.job_run = fetch_reap_run;
	rj->rj_job.job_kind = JOB_SHORT;
	rj->rj_pins = pl->pl_pins;
	rj->rj_dev = dev;
	if (pool_submit(pool_device(pl, (dev_t)dev, POOL_FILES), &rj->rj_job,
		ADMIT_HINT, lp, NULL) != 0)
		free(rj);
}

/* Removes the window from its hash chain.  The device's lock is held. */
static void
fetch_window_unlink(struct window *win)
{
	struct window **p;

	p = fetch_chain_of(win);
	while (*p != win)
		p = &(*p)->win_next;
	*p = win->win_next;
}

/* Unlinks the window, so that no transmission joins it, and updates the device's latency. */
static void
fetch_window_done(struct job *job, int error, uint64_t took)
{
	struct window *win = (struct window *)job;
	struct pw_device *dv = win->win_device;
	uint64_t before = dv->dv_latency;

	fetch_window_unlink(win);
	if (error >= 0)
		dv->dv_bytes += job->job_len;
	if (error != -ECANCELED)
		dv->dv_latency =
		    before == 0 ? took : before - before / 8 + took / 8;
}

enum fetch_match {
	MATCH_WHOLE, /* windows that cover the whole range */
	MATCH_MAP,   /* windows of FETCH_MAP that cover the whole range */
};

static bool
fetch_has_range(
    const struct window *win, off_t off, off_t end, enum fetch_match match)
{
	off_t win_end = win->win_off + (off_t)win->win_job.job_len;

	if ((win->win_how == FETCH_MAP) != (match == MATCH_MAP))
		return false;
	return win->win_off <= off && win_end >= end;
}

static struct window *
fetch_window_find_in(struct pw_device *dv, const struct pw_file *file,
    off_t off, off_t end, enum fetch_match match, uint64_t piece)
{
	const struct pins_key key = pins_key(file);
	struct window *win;

	win = *fetch_window_chain(dv, file->fil_ino, piece);
	for (; win != NULL; win = win->win_next)
		if (pins_same_key(&win->win_key, &key) &&
		    fetch_has_range(win, off, end, match))
			break;
	return win;
}

/* Returns a window that covers the range as `match` requires, or NULL.  The device's lock is held. */
static struct window *
fetch_window_find(struct pw_device *dv, const struct pw_file *file, off_t off,
    off_t end, enum fetch_match match)
{
	uint64_t piece = fetch_piece(off, end);
	struct window *win = NULL;

	if (piece != FETCH_WIDE)
		win = fetch_window_find_in(dv, file, off, end, match, piece);
	return win != NULL ? win
			   : fetch_window_find_in(
				 dv, file, off, end, match, FETCH_WIDE);
}

static bool
fetch_fetching(
    struct pw_file *file, off_t off, off_t end, enum fetch_match match)
{
	struct pw_device *dv = file_priv(file)->fp_device;
	bool yes;

	meter_lock(&dv->dv_lock);
	yes = fetch_window_find(dv, file, off, end, match) != NULL;
	pthread_mutex_unlock(&dv->dv_lock);
	return yes;
}

bool
pool_fetching(struct pw_file *file, off_t off, off_t end)
{
	return fetch_fetching(file, off, end, MATCH_WHOLE);
}

bool
pool_mapping(struct pw_file *file, off_t off)
{
	return fetch_fetching(file, off, off + 1, MATCH_MAP);
}

/* Queues a window as `like` describes it, for the client of the waiter.  The device's lock is held. */
static int
fetch_window_enqueue(const struct window *like, enum admit admit,
    const struct pw_waiter *w, struct window **out)
{
	struct window *win = calloc(1, sizeof(*win)), **chain;
	int error;

	if (win == NULL)
		return -ENOMEM;
	*win = *like;
	win->win_job.job_run = fetch_window_run;
	win->win_job.job_done = fetch_window_done;
	win->win_job.job_client = pool_client(w);
	if (win->win_device->dv_sweep != NULL)
		win->win_job.job_place = sweep_place(win->win_device->dv_sweep,
		    win->win_key.pk_ino, win->win_off);
	error = pool_enqueue(win->win_device, &win->win_job, admit);
	if (error != 0) {
		free(win);
		return error;
	}
	chain = fetch_chain_of(win);
	win->win_next = *chain;
	*chain = win;
	*out = win;
	return 0;
}

void
fetch_resume(const struct window *like, struct pw_waiter *list)
{
	struct pw_device *dv = like->win_device;
	struct pw_waiter *next;
	struct window *win;
	int error;

	meter_lock(&dv->dv_lock);
	error = fetch_window_enqueue(like, ADMIT_BEGUN, list, &win);
	if (error == 0)
		win->win_job.job_waiters = list;
	pthread_mutex_unlock(&dv->dv_lock);
	for (; error != 0 && list != NULL; list = next) {
		next = list->wt_next;
		completion_deliver(list, error);
	}
}

/*
 * Returns true if a fetch may join the window.  A transmission that cannot send a copy does not join a
 * direct fetch; a fetch that needs a copy joins only windows that make one.
 */
static bool
fetch_may_join(const struct window *win, const struct window *like)
{
	if (like->win_lent)
		return win->win_lent || win->win_how == FETCH_DIRECT;
	return win->win_how != FETCH_DIRECT || like->win_how == FETCH_DIRECT;
}

int
fetch_window(struct pw_file *file, const struct window *like, enum admit admit,
    struct pw_waiter *w)
{
	struct pw_device *dv = like->win_device;
	const off_t off = like->win_off,
		    end = off + (off_t)like->win_job.job_len;
	struct window *win;
	int error = 0;

	meter_lock(&dv->dv_lock);
	win = fetch_window_find(dv, file, off, end,
	    like->win_how == FETCH_MAP ? MATCH_MAP : MATCH_WHOLE);
	if (win == NULL || !fetch_may_join(win, like))
		error = fetch_window_enqueue(like, admit, w, &win);
	else
		shares_join(&dv->dv_shares, &win->win_job,
		    like->win_job.job_kind, w->wt_client, clock_now());
	if (error == 0)
		pool_await(&win->win_job, file_priv(file)->fp_loop, w);
	pthread_mutex_unlock(&dv->dv_lock);
	return error;
}

/* Returns the description of a window for fetch_window. */
static struct window
fetch_like(struct pw_file *file, off_t off, size_t len, enum fetch_how how,
    enum admit admit)
{
	return (struct window){
	    .win_job = {.job_kind = pool_window_kind(admit), .job_len = len},
	    .win_device = file_priv(file)->fp_device,
	    .win_fd = file->fil_fd,
	    .win_key = pins_key(file),
	    .win_off = off,
	    .win_how = how,
	};
}

int
pool_fetch(struct pw_file *file, off_t off, size_t len, enum fetch_how how,
    enum admit admit, struct pw_waiter *w)
{
	struct window like = fetch_like(file, off, len, how, admit);

	return fetch_window(file, &like, admit, w);
}

int
pool_fetch_copy(struct pw_file *file, off_t off, size_t len, enum fetch_how how,
    enum admit admit, struct pw_waiter *w)
{
	struct window like = fetch_like(file, off, len, how, admit);

	like.win_lent = true;
	return fetch_window(file, &like, admit, w);
}
