/*
 * device: the properties, the part of the budget, and the statistics of a device and its file system.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/disk/completion.h"
#include "lib/disk/pins.h"
#include "lib/disk/pool_priv.h"
#include "lib/os/meter.h"
#include "lib/os/place.h"

#define POOL_PLENTY 8 /* 1/POOL_PLENTY of the free budget is plenty */

uint64_t
device_latency(const struct pw_device *dv)
{
	return atomic_load(&dv->dv_latency);
}

struct drop_lock *
device_drop_lock(struct pw_device *dv, uint64_t ino)
{
	return &dv->dv_drops[ino % DROP_LOCKS];
}

unsigned long
device_ended(const struct pw_device *dv)
{
	return atomic_load(&dv->dv_ended);
}

enum os_ask
device_ask(struct pw_device *dv, int fd)
{
	enum os_ask ask;
	struct os_fs fs = {0};

	/* Several devices share this slot, so no residency check is right for all of them. */
	if (dv == dv->dv_pool->pl_devices[0])
		return OS_ASK_FETCH;
	meter_lock(&dv->dv_lock);
	ask = dv->dv_ask;
	pthread_mutex_unlock(&dv->dv_lock);
	if (ask != OS_ASK_UNKNOWN)
		return ask;
	ask = os_ask_means(fd, &fs);
	meter_lock(&dv->dv_lock);
	if (dv->dv_ask == OS_ASK_UNKNOWN) {
		dv->dv_fs = fs;
		dv->dv_ask = ask;
		atomic_fetch_or(&dv->dv_untold, UNTOLD_RESIDENCY);
	}
	ask = dv->dv_ask;
	pthread_mutex_unlock(&dv->dv_lock);
	return ask;
}

bool
device_open_waits(struct pw_device *dv)
{
	enum os_ask ask;

	if (dv == dv->dv_pool->pl_devices[0])
		return true;
	meter_lock(&dv->dv_lock);
	ask = dv->dv_ask;
	pthread_mutex_unlock(&dv->dv_lock);
	return ask == OS_ASK_UNKNOWN || ask == OS_ASK_FETCH;
}

bool
device_is_local(const struct pw_device *dv)
{
	return dv->dv_fs.fs_local;
}

size_t
device_block(struct pw_device *dv)
{
	size_t block;

	meter_lock(&dv->dv_lock);
	block = dv->dv_fs.fs_block;
	pthread_mutex_unlock(&dv->dv_lock);
	return block;
}

/*
 * Describes a residency check.  cachestat(2) of a bad descriptor fails with ENOSYS only on kernels that
 * lack the call.
 */
static const char *
device_means(enum os_ask ask)
{
	static const char *const means[] = {
	    [OS_ASK_UNKNOWN] = "unknown",
	    [OS_ASK_NOWAIT] =
		"cachestat where permitted, else RWF_NOWAIT for each page",
	    [OS_ASK_MINCORE] =
		"mincore where permitted, else the file is sent from copies",
	    [OS_ASK_NEVER_COLD] = "always resident",
	    [OS_ASK_FETCH] =
		"no check is available, so the file is sent from copies",
	    [OS_ASK_NATIVE] =
		"no check is needed, since the kernel waits for the disk",
	};

	if (ask == OS_ASK_NOWAIT && os_cachestat(-1, 0, 1) == -ENOSYS)
		return "mincore where permitted, else RWF_NOWAIT for each page";
	return means[ask];
}

bool
device_copies(const struct pw_device *dv)
{
	return atomic_load_explicit(&dv->dv_copies, memory_order_relaxed) != 0;
}

void
device_refuses(struct pw_device *dv, int error)
{
	int none = 0;

	if (atomic_compare_exchange_strong(&dv->dv_copies, &none, -error))
		atomic_fetch_or(&dv->dv_untold, UNTOLD_REFUSAL);
}

bool
device_has_news(const struct pw_device *dv)
{
	return atomic_load_explicit(&dv->dv_untold, memory_order_relaxed) != 0;
}

/* Removes one of the device's messages from dv_untold and returns it, or 0 if there is none. */
static unsigned
device_take_news(struct pw_device *dv)
{
	unsigned news = atomic_load(&dv->dv_untold);

	news &= ~news + 1; /* the least bit */
	atomic_fetch_and(&dv->dv_untold, ~news);
	return news;
}

bool
device_announce(struct pw_device *dv, char *text, size_t size)
{
	const char *name = dv->dv_fs.fs_mount;
	char id[32];
	unsigned news;

	os_dev_name(dv->dv_id, id, sizeof(id));
	meter_lock(&dv->dv_lock);
	news = device_take_news(dv);
	if (*name == '\0')
		name = id;
	if (news == UNTOLD_RESIDENCY)
		snprintf(text, size, "device %s (%s): residency: %s", name,
		    dv->dv_fs.fs_name, device_means(dv->dv_ask));
	else if (news == UNTOLD_REFUSAL)
		snprintf(text, size,
		    "device %s (%s) does not support sendfile (%s): the server "
		    "copies files of this device instead",
		    name, dv->dv_fs.fs_name,
		    strerror(atomic_load(&dv->dv_copies)));
	else if (news == UNTOLD_SEEKS)
		snprintf(text, size,
		    "device %s (%s) is as slow as one disk that rotates "
		    "(%u MB/s with seeks): windows are read in the order of "
		    "their places",
		    name, dv->dv_fs.fs_name,
		    (unsigned)(dv->dv_sweep->sw_rate / 1000000));
	pthread_mutex_unlock(&dv->dv_lock);
	return news != 0;
}

size_t
device_step(struct pw_device *dv)
{
	size_t step = atomic_load(&dv->dv_step), readahead = 0;

	if (step == 0) {
		step = os_advice_limit(dv->dv_id);
		atomic_store(&dv->dv_folios, os_folios(dv->dv_id, &readahead));
		atomic_store(&dv->dv_readahead, readahead);
		atomic_store(&dv->dv_step, step);
	}
	return step;
}

void
device_find_sweep(struct pw_device *dv)
{
	struct sweep *sw;

	if (device_seeks(dv) && !atomic_load(&dv->dv_told_seeks) &&
	    !atomic_exchange(&dv->dv_told_seeks, true))
		atomic_fetch_or(&dv->dv_untold, UNTOLD_SEEKS);
	if (atomic_load(&dv->dv_asked_sweep) ||
	    atomic_exchange(&dv->dv_asked_sweep, true))
		return;
	sw = os_rotates(dv->dv_id) ? sweep_create() : NULL;
	meter_lock(&dv->dv_lock);
	dv->dv_sweep = sw;
	pthread_mutex_unlock(&dv->dv_lock);
}

bool
device_marks(struct pw_device *dv)
{
	return atomic_load(&dv->dv_readahead) >= OS_FOLIO;
}

bool
device_seeks(const struct pw_device *dv)
{
	const struct sweep *sw = dv->dv_sweep;

	return sw != NULL && atomic_load(&sw->sw_slow);
}

bool
device_folds(struct pw_device *dv)
{
	return atomic_load(&dv->dv_folios);
}

bool
pool_room_plenty(struct pw_device *dv)
{
	return budget_plenty(dv->dv_pool->pl_room, &dv->dv_room,
	    device_seeks(dv) ? 1 : POOL_PLENTY);
}

bool
pool_room_half(struct pw_device *dv)
{
	return budget_plenty(dv->dv_pool->pl_room, &dv->dv_room, 1);
}

int
pool_room_take(struct pw_device *dv, size_t len, bool slow, struct pw_loop *lp,
    struct pw_waiter *w)
{
	int error;

	if (w != NULL)
		w->wt_loop = lp;
	error = budget_take(dv->dv_pool->pl_room, &dv->dv_room, len, slow, w);
	if (error == -EINPROGRESS)
		lp->lp_pending++;
	return error;
}

void
pool_room_give(struct pw_device *dv, size_t len)
{
	budget_give(dv->dv_pool->pl_room, &dv->dv_room, len);
}

struct budget *
pool_room(struct pw_pool *pl)
{
	return pl->pl_room;
}

/* ---------------------------------------------------------------- statistics */

void
pw_pool_stats(struct pw_pool *pl, struct pw_pool_stats *ps)
{
	ps->ps_refused = atomic_load(&pl->pl_refused);
	ps->ps_dropped = atomic_load(&pl->pl_dropped);
	ps->ps_unsent = budget_used(pl->pl_room);
	ps->ps_unsent_max = budget_max(pl->pl_room);
}

uint64_t
pw_pool_pinned(struct pw_pool *pl)
{
	return pins_bytes(pl->pl_pins);
}

/* Returns `text`, or NULL if it is empty.  The text stays valid, since device_ask writes it only once. */
static const char *
device_text_or_null(const char *text)
{
	return *text == '\0' ? NULL : text;
}

static void
device_stats(struct pw_device *dv, struct pw_device_stats *ds)
{
	static const char *const queues[] = {[POOL_FILES] = "files",
	    [POOL_TASKS] = "tasks",
	    [POOL_MOUNTS] = "mounts",
	    [POOL_TIER] = "tier"};

	meter_lock(&dv->dv_lock);
	ds->ds_dev = dv->dv_id;
	ds->ds_queue = queues[dv->dv_kind];
	ds->ds_fsname = device_text_or_null(dv->dv_fs.fs_name);
	ds->ds_mount = device_text_or_null(dv->dv_fs.fs_mount);
	ds->ds_threads = dv->dv_threads;
	ds->ds_busy = dv->dv_threads - dv->dv_idle;
	ds->ds_queued = dv->dv_queued;
	ds->ds_jobs = dv->dv_ended;
	ds->ds_bytes = dv->dv_bytes;
	ds->ds_refused = dv->dv_refused;
	pw_histogram_copy(&ds->ds_wait, &dv->dv_wait);
	pthread_mutex_unlock(&dv->dv_lock);
}

size_t
device_count(struct pw_pool *pl)
{
	size_t n;

	meter_lock(&pl->pl_lock);
	n = pl->pl_ndevices;
	pthread_mutex_unlock(&pl->pl_lock);
	return n;
}

size_t
pw_pool_devices(struct pw_pool *pl, struct pw_device_stats *ds, size_t max)
{
	size_t i, known = device_count(pl), n = 0;

	for (i = 0; i < known && n < max; i++)
		if (pl->pl_devices[i]->dv_kind != POOL_NO_DISK)
			device_stats(pl->pl_devices[i], &ds[n++]);
	return n;
}

static void
device_head(struct pw_device *dv, struct pool_head *ph)
{
	meter_lock(&dv->dv_lock);
	ph->ph_dev = dv->dv_id;
	ph->ph_seeks = device_seeks(dv);
	ph->ph_rate = dv->dv_sweep == NULL ? 0 : dv->dv_sweep->sw_rate;
	pthread_mutex_unlock(&dv->dv_lock);
}

size_t
pool_heads(struct pw_pool *pl, struct pool_head *ph, size_t max)
{
	size_t i, known = device_count(pl), n = 0;

	/* Slot 0 has no device of its own. */
	for (i = 1; i < known && n < max; i++)
		if (pl->pl_devices[i]->dv_kind == POOL_FILES)
			device_head(pl->pl_devices[i], &ph[n++]);
	return n;
}
