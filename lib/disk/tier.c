/*
 * tier: see tier.h.
 */
#include <sys/file.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/disk/pins.h"
#include "lib/disk/tier_priv.h"
#include "lib/os/meter.h"
#include "lib/os/os.h"
#include "lib/util/clock.h"

#define TIER_AVERAGE ((uint64_t)64 << 10) /* bytes of the ring per record */
#define TIER_LEAST   1024		  /* least number of records */
#define TIER_MOST \
	((uint64_t)1 << 20) /* most records, 156 bytes of memory each */
#define TIER_REACH \
	2 /* a miss counts until TIER_REACH times the tier were missed */
#define TIER_LARGE  2 /* a file above 1/TIER_LARGE of the tier is not written */
#define TIER_DAY_US 86400000000U
#define TIER_BURST \
	24 /* the burst is 1/TIER_BURST of a day's bytes, at least a window */
#define TIER_RETRY \
	1000000 /* time between two calls of tier_prepare, microseconds */

static uint64_t
tier_records_of(uint64_t size)
{
	uint64_t most = size / TIER_AVERAGE;

	return most < TIER_LEAST  ? TIER_LEAST
	       : most > TIER_MOST ? TIER_MOST
				  : most;
}

/* Returns the most bytes that may be written at once. */
static uint64_t
tier_most_tokens(const struct tier *ti)
{
	uint64_t most = ti->ti_writes / TIER_BURST;

	return most < OS_FOLIO ? OS_FOLIO : most;
}

/* Locks the files.  Returns 0 or -errno; -EWOULDBLOCK if another process has locked them. */
static int
tier_lock(struct tier *ti)
{
	return flock(ti->ti_file, LOCK_EX | LOCK_NB) == 0 ? 0 : -errno;
}

/*
 * Locks the files at the start.  Also returns 0 if another process has locked them, since tier_prepare
 * tries again later.  Returns -errno if the file system has no locks.
 */
static int
tier_lock_first(struct tier *ti)
{
	int error = tier_lock(ti);

	ti->ti_locked = error == 0;
	ti->ti_taken = error == -EWOULDBLOCK;
	return ti->ti_taken ? 0 : error;
}

int
tier_open(const struct tier_conf *tc, struct tier **out)
{
	struct tier *ti = calloc(1, sizeof(*ti));
	int error;

	if (ti == NULL)
		return -ENOMEM;
	ti->ti_size = tc->tc_size / OS_FOLIO * OS_FOLIO;
	ti->ti_most = tier_records_of(ti->ti_size);
	ti->ti_writes = tc->tc_writes;
	ti->ti_age = tc->tc_age;
	ti->ti_tokens = tier_most_tokens(ti);
	ti->ti_filled = clock_now();
	ti->ti_data = ti->ti_file = -1;
	pthread_mutex_init(&ti->ti_lock, NULL);
	ti->ti_seen =
	    tier_seen_create((uint32_t)ti->ti_most, TIER_REACH * ti->ti_size);
	error = ti->ti_size == 0      ? -EINVAL
		: ti->ti_seen == NULL ? -ENOMEM
				      : tier_store_open(ti, tc->tc_dir);
	if (error == 0)
		error = tier_lock_first(ti);
	if (error != 0)
		tier_close(&ti);
	*out = ti;
	return error;
}

void
tier_close(struct tier **tip)
{
	struct tier *ti = *tip;

	*tip = NULL;
	if (ti == NULL)
		return;
	if (ti->ti_data >= 0)
		close(ti->ti_data);
	if (ti->ti_file >= 0)
		close(ti->ti_file);
	tier_index_destroy(&ti->ti_index);
	tier_seen_destroy(&ti->ti_seen);
	pthread_mutex_destroy(&ti->ti_lock);
	free(ti);
}

dev_t
tier_dev(const struct tier *ti)
{
	return ti->ti_dev;
}

/* ----------------------------------------------------------------- loading */

bool
tier_is_due(struct tier *ti, uint64_t now_us)
{
	bool due;

	meter_lock(&ti->ti_lock);
	due = ti->ti_state == TIER_WAITS && !ti->ti_preparing &&
	      now_us >= ti->ti_due;
	if (due)
		ti->ti_preparing = true;
	pthread_mutex_unlock(&ti->ti_lock);
	return due;
}

/* Ends a preparation that tier_is_due began, and sets the time of the next one.  The lock is held. */
static void
tier_retry_later(struct tier *ti)
{
	ti->ti_preparing = false;
	ti->ti_due = clock_now() + TIER_RETRY;
}

void
tier_postpone(struct tier *ti)
{
	meter_lock(&ti->ti_lock);
	tier_retry_later(ti);
	pthread_mutex_unlock(&ti->ti_lock);
}

void
tier_prepare(struct tier *ti)
{
	struct tier_index *tx = NULL;
	int error = tier_lock(ti);

	if (error == 0 && tier_store_load_header(ti) == 0)
		tx = tier_store_load(ti);
	meter_lock(&ti->ti_lock);
	ti->ti_locked = error == 0;
	ti->ti_taken = error == -EWOULDBLOCK;
	tier_retry_later(ti);
	if (tx != NULL && ti->ti_state == TIER_WAITS) {
		ti->ti_index = tx;
		ti->ti_state = TIER_ON;
		tx = NULL;
	}
	pthread_mutex_unlock(&ti->ti_lock);
	tier_index_destroy(&tx);
}

void
tier_leave(struct tier *ti)
{
	meter_lock(&ti->ti_lock);
	ti->ti_state = TIER_LEFT;
	pthread_mutex_unlock(&ti->ti_lock);
}

bool
tier_is_left(struct tier *ti)
{
	bool left;

	meter_lock(&ti->ti_lock);
	left = ti->ti_state == TIER_LEFT && !ti->ti_preparing;
	pthread_mutex_unlock(&ti->ti_lock);
	return left;
}

void
tier_unlock(struct tier *ti)
{
	bool locked;

	meter_lock(&ti->ti_lock);
	locked = ti->ti_locked;
	ti->ti_locked = false;
	pthread_mutex_unlock(&ti->ti_lock);
	if (locked)
		flock(ti->ti_file, LOCK_UN);
}

/* ------------------------------------------------------- errors and limits */

/* Returns true if the tier may be used now.  The lock is held. */
static bool
tier_is_on(const struct tier *ti, uint64_t now_us)
{
	return ti->ti_state == TIER_ON && ti->ti_late == 0 &&
	       now_us >= ti->ti_off_until;
}

static void
tier_failed(struct tier *ti)
{
	meter_lock(&ti->ti_lock);
	ti->ti_stats.tu_errors++;
	ti->ti_off_until = clock_now() + TIER_OFF_US;
	pthread_mutex_unlock(&ti->ti_lock);
}

void
tier_is_late(struct tier *ti)
{
	meter_lock(&ti->ti_lock);
	ti->ti_stats.tu_late++;
	ti->ti_late++;
	ti->ti_off_until = clock_now() + TIER_OFF_US;
	pthread_mutex_unlock(&ti->ti_lock);
}

void
tier_was_late(struct tier *ti)
{
	meter_lock(&ti->ti_lock);
	ti->ti_late--;
	pthread_mutex_unlock(&ti->ti_lock);
}

/* Adds the tokens for the time since the last call.  The lock is held, as in tier_take_tokens. */
static void
tier_fill_tokens(struct tier *ti)
{
	const uint64_t now_us = clock_now();
	const uint64_t most = tier_most_tokens(ti);
	double more = (double)ti->ti_writes * (double)(now_us - ti->ti_filled) /
		      (double)TIER_DAY_US;

	if (more < 1)
		return;
	ti->ti_filled = now_us;
	ti->ti_tokens = more + (double)ti->ti_tokens > (double)most
			    ? most
			    : ti->ti_tokens + (uint64_t)more;
}

static bool
tier_take_tokens(struct tier *ti, uint64_t len)
{
	if (ti->ti_writes == 0)
		return true;
	tier_fill_tokens(ti);
	if (ti->ti_tokens < len)
		return false;
	ti->ti_tokens -= len;
	return true;
}

/*
 * Refuses a ctime of 0 or 1 s: FUSE file systems that store neither ctime nor mtime return 0, which does not
 * tell versions apart.  Those without ctime return mtime instead.
 */
bool
tier_is_old(const struct tier *ti, const struct os_version *ov)
{
	return ov->ov_ctime.tv_sec > 1 && pins_version_is_older(ov, ti->ti_age);
}

bool
tier_may_write(struct tier *ti, size_t len)
{
	bool may;

	meter_lock(&ti->ti_lock);
	may = tier_is_on(ti, clock_now()) && tier_take_tokens(ti, len);
	if (!may)
		ti->ti_stats.tu_skipped++;
	pthread_mutex_unlock(&ti->ti_lock);
	return may;
}

void
tier_stats(struct tier *ti, struct tier_stats *tu)
{
	meter_lock(&ti->ti_lock);
	*tu = ti->ti_stats;
	tu->tu_on = tier_is_on(ti, clock_now());
	tu->tu_taken = ti->ti_taken;
	tu->tu_windows =
	    ti->ti_index == NULL ? 0 : tier_index_count(ti->ti_index);
	pthread_mutex_unlock(&ti->ti_lock);
}

/* ----------------------------------------------------------------- windows */

static struct tier_id
tier_id(const struct pins_key *key, off_t off)
{
	const struct os_version *ov = &key->pk_version;

	return (struct tier_id){.id_dev = key->pk_dev,
	    .id_ino = key->pk_ino,
	    .id_size = (uint64_t)ov->ov_size,
	    .id_mtime = (uint64_t)ov->ov_mtime.tv_sec,
	    .id_mtime_ns = (uint64_t)ov->ov_mtime.tv_nsec,
	    .id_ctime = (uint64_t)ov->ov_ctime.tv_sec,
	    .id_ctime_ns = (uint64_t)ov->ov_ctime.tv_nsec,
	    .id_off = (uint64_t)off};
}

/* Copies the record of the window that has the byte at off.  Returns false if there is none, or the tier is off. */
static bool
tier_find(struct tier *ti, const struct pins_key *key, off_t off,
    struct tier_record *record)
{
	const struct tier_id id = tier_id(key, off - off % (off_t)OS_FOLIO);
	const struct tier_record *tr = NULL;
	uint64_t now = clock_now();

	meter_lock(&ti->ti_lock);
	if (tier_is_on(ti, now))
		tr = tier_index_find(ti->ti_index, &id);
	if (tr != NULL)
		*record = *tr;
	pthread_mutex_unlock(&ti->ti_lock);
	return tr != NULL;
}

bool
tier_has(struct tier *ti, const struct pins_key *key, off_t off)
{
	struct tier_record record;

	return tier_find(ti, key, off, &record);
}

bool
tier_missed(struct tier *ti, const struct pins_key *key, off_t off, size_t len)
{
	const struct tier_id id = tier_id(key, off);
	bool again;

	meter_lock(&ti->ti_lock);
	ti->ti_stats.tu_misses++;
	again = id.id_size <= ti->ti_size / TIER_LARGE &&
		tier_seen_note(ti->ti_seen, tier_index_hash(&id),
		    (size_t)off % OS_FOLIO, len);
	pthread_mutex_unlock(&ti->ti_lock);
	return again;
}

/*
 * Counts the result of a read of `len` bytes, and removes the record if the read failed.  Returns `error`, or
 * -ENOENT if the record was evicted during the read, which does not count as corruption.
 */
static int
tier_count_read(
    struct tier *ti, const struct tier_record *tr, size_t len, int error)
{
	if (error == -EIO)
		tier_failed(ti);
	meter_lock(&ti->ti_lock);
	if (error == 0) {
		ti->ti_stats.tu_hits++;
		ti->ti_stats.tu_hit_bytes += len;
	} else if (!tier_index_has(ti->ti_index, tr->tr_number))
		error = -ENOENT;
	else {
		ti->ti_stats.tu_corrupt += error == -EBADMSG;
		tier_index_remove(ti->ti_index, tr->tr_number);
	}
	pthread_mutex_unlock(&ti->ti_lock);
	return error;
}

int
tier_read(struct tier *ti, const struct pins_key *key, off_t off, size_t len,
    void *to)
{
	const size_t from = (size_t)off % OS_FOLIO;
	struct tier_record record;

	if (!tier_find(ti, key, off, &record) || from + len > record.tr_len)
		return -ENOENT;
	return tier_count_read(
	    ti, &record, len, tier_store_read(ti, &record, from, len, to));
}

int
tier_write(struct tier *ti, const struct pins_key *key, off_t off, void *from,
    size_t len)
{
	struct tier_record record = {.tr_id = tier_id(key, off)};
	uint64_t padded = tier_index_padded(len);
	int error;

	memset((char *)from + len, 0, padded - len);
	meter_lock(&ti->ti_lock);
	tier_index_reserve(ti->ti_index, len, &record);
	ti->ti_stats.tu_written += padded;
	pthread_mutex_unlock(&ti->ti_lock);
	error = tier_store_write(ti, &record, from);
	if (error != 0) {
		tier_failed(ti);
		return error;
	}
	meter_lock(&ti->ti_lock);
	tier_index_add(ti->ti_index, &record);
	pthread_mutex_unlock(&ti->ti_lock);
	return 0;
}
