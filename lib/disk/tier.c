/*
 * tier: see tier.h.
 */
#include <sys/file.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/disk/pins.h"
#include "lib/disk/tier.h"
#include "lib/disk/tier_index.h"
#include "lib/os/meter.h"
#include "lib/os/os.h"
#include "lib/os/seed.h"
#include "lib/util/clock.h"

#define TIER_DATA    "pagewise-tier.data"
#define TIER_INDEX   "pagewise-tier.index"
#define TIER_MAGIC   0x7061676577697365U /* "pagewise" */
#define TIER_VERSION 1
#define TIER_AVERAGE ((uint64_t)64 << 10) /* bytes of data for each record */
#define TIER_LEAST   1024		  /* least number of records */
#define TIER_MOST \
	((uint64_t)1 << 20) /* most records, 140 bytes of memory each */
#define TIER_RESCUES 2 /* most old windows that are appended again per write */
#define TIER_DAY_US  86400000000U
#define TIER_BURST \
	24 /* 1/TIER_BURST of a day's bytes, or a window, may be written at once */
#define TIER_RETRY \
	1000000 /* time between two calls of tier_prepare, microseconds */
#define TIER_BATCH 8192 /* records that are loaded at once: 1 MiB */

_Static_assert(sizeof(struct tier_record) == 128, "the index file");

enum tier_state {
	TIER_WAITS, /* not loaded */
	TIER_ON,
	TIER_LEFT,
};

/* Header in the first block of TIER_INDEX.  The first block of TIER_DATA has only th_magic. */
struct tier_header {
	uint64_t th_magic;
	uint64_t th_version;
	uint64_t th_size; /* bytes of the ring */
	uint64_t th_most; /* records of the index */
	/* seed of the records' checksums; a new store has a new seed, so old records are invalid */
	uint64_t th_seed;
};

struct tier {
	int ti_data;
	int ti_file; /* descriptor of TIER_INDEX */
	dev_t ti_dev;
	uint64_t ti_size;
	uint64_t ti_most;
	uint64_t ti_seed;
	uint64_t ti_writes; /* most bytes written per day, or 0 */
	unsigned ti_age;    /* seconds */
	void *ti_spare;	    /* OS_FOLIO bytes, for the thread that writes */
	bool ti_locked;	    /* true if this process has the lock of ti_file */

	pthread_mutex_t ti_lock; /* guards the fields below */
	enum tier_state ti_state;
	struct tier_index *ti_index; /* NULL before TIER_ON */
	uint64_t ti_due;       /* time of the next tier_prepare, microseconds */
	uint64_t ti_off_until; /* end of TIER_OFF_US */
	unsigned ti_late;      /* late reads that have not ended */
	uint64_t ti_tokens;    /* bytes that may be written now */
	uint64_t ti_filled;    /* time up to which ti_tokens counts */
	struct tier_stats ti_stats;
};

/* ---------------------------------------------------------------- the files */

static uint64_t
tier_check(const struct tier *ti, const struct tier_record *tr)
{
	return XXH3_64bits_withSeed(
	    tr, offsetof(struct tier_record, tr_check), ti->ti_seed);
}

/* Reads all of [off, off + len).  Returns false if that fails. */
static bool
tier_read_all(int fd, void *to, size_t len, off_t off)
{
	char *next = to;
	ssize_t n;

	for (; len > 0; next += n, off += n, len -= (size_t)n) {
		n = pread(fd, next, len, off);
		if (n == -1 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			return false;
	}
	return true;
}

/* Returns 0 or -errno. */
static int
tier_write_all(int fd, const void *from, size_t len, off_t off)
{
	const char *next = from;
	ssize_t n;

	for (; len > 0; next += n, off += n, len -= (size_t)n) {
		n = pwrite(fd, next, len, off);
		if (n == -1 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			return n == 0 ? -EIO : -errno;
	}
	return 0;
}

static off_t
tier_record_offset(const struct tier *ti, uint64_t number)
{
	return (off_t)(TIER_BLOCK +
		       number % ti->ti_most * sizeof(struct tier_record));
}

/* Returns the offset of a record's window in TIER_DATA. */
static off_t
tier_data_offset(const struct tier *ti, const struct tier_record *tr)
{
	return (off_t)(TIER_BLOCK + tr->tr_at % ti->ti_size);
}

/*
 * Writes TIER_MAGIC to the first block of an empty file, and waits until the disk has it, before
 * the file gets further blocks.  Returns -EEXIST if a file that is not empty begins otherwise.
 */
static int
tier_check_magic(struct tier *ti, int fd, off_t size)
{
	uint64_t *block = ti->ti_spare;
	int error;

	if (size > 0) {
		if (pread(fd, block, TIER_BLOCK, 0) == -1)
			return -errno;
		return size >= (off_t)TIER_BLOCK && *block == TIER_MAGIC
			   ? 0
			   : -EEXIST;
	}
	memset(block, 0, TIER_BLOCK);
	*block = TIER_MAGIC;
	error = tier_write_all(fd, block, TIER_BLOCK, 0);
	if (error == 0 && fdatasync(fd) == -1)
		error = -errno;
	return error;
}

/* Opens a file of the tier, and sets *fd to its descriptor, or to -errno.  Returns 0 or -errno. */
static int
tier_open_file(struct tier *ti, int dir, const char *name, bool direct, int *fd)
{
	off_t size;

	*fd = os_store_open(dir, name, direct, &size);
	return *fd < 0 ? *fd : tier_check_magic(ti, *fd, size);
}

/* Opens both files.  Extends them only after both have passed tier_check_magic. */
static int
tier_open_files(struct tier *ti, int dir)
{
	int error = tier_open_file(ti, dir, TIER_DATA, true, &ti->ti_data);

	if (error == 0)
		error =
		    tier_open_file(ti, dir, TIER_INDEX, false, &ti->ti_file);
	if (error == 0)
		error = os_store_extend(
		    ti->ti_file, tier_record_offset(ti, ti->ti_most - 1) +
				     (off_t)sizeof(struct tier_record));
	if (error == 0)
		error = os_store_extend(
		    ti->ti_data, (off_t)(TIER_BLOCK + ti->ti_size));
	return error;
}

static int
tier_open_dir(struct tier *ti, const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int error;

	if (dir == -1)
		return -errno;
	error = tier_open_files(ti, dir);
	if (error == 0 && fstat(dir, &st) == -1)
		error = -errno;
	else if (error == 0)
		ti->ti_dev = st.st_dev;
	close(dir);
	return error;
}

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
	ti->ti_spare = os_huge_page(OS_FOLIO);
	error = ti->ti_size == 0       ? -EINVAL
		: ti->ti_spare == NULL ? -ENOMEM
				       : tier_open_dir(ti, tc->tc_dir);
	if (error != 0)
		tier_close(&ti);
	else
		ti->ti_locked = flock(ti->ti_file, LOCK_EX | LOCK_NB) == 0;
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
	if (ti->ti_spare != NULL)
		os_unmap(ti->ti_spare, OS_FOLIO);
	tier_index_destroy(&ti->ti_index);
	pthread_mutex_destroy(&ti->ti_lock);
	free(ti);
}

dev_t
tier_dev(const struct tier *ti)
{
	return ti->ti_dev;
}

/* ----------------------------------------------------------------- loading */

/* Reads the header.  Writes a new one, with a new seed, if the files are empty or of another size. */
static int
tier_load_header(struct tier *ti)
{
	struct tier_header th;
	struct seed seed;

	if (tier_read_all(ti->ti_file, &th, sizeof(th), 0) &&
	    th.th_magic == TIER_MAGIC && th.th_version == TIER_VERSION &&
	    th.th_size == ti->ti_size && th.th_most == ti->ti_most) {
		ti->ti_seed = th.th_seed;
		return 0;
	}
	th = (struct tier_header){.th_magic = TIER_MAGIC,
	    .th_version = TIER_VERSION,
	    .th_size = ti->ti_size,
	    .th_most = ti->ti_most};
	seed_draw(&seed);
	th.th_seed = ti->ti_seed = seed.se_0;
	return tier_write_all(ti->ti_file, &th, sizeof(th), 0);
}

/* Returns true if the record belongs to this store, and to this slot. */
static bool
tier_is_valid(
    const struct tier *ti, const struct tier_record *tr, uint64_t slot)
{
	return tr->tr_number > 0 && tr->tr_number % ti->ti_most == slot &&
	       tr->tr_len > 0 && tr->tr_len <= OS_FOLIO &&
	       tr->tr_at % ti->ti_size + tr->tr_len <= ti->ti_size &&
	       tr->tr_check == tier_check(ti, tr);
}

/*
 * Reads the index, and leaves out the parts that cannot be read.  Returns NULL if memory is short.
 */
static struct tier_index *
tier_load(struct tier *ti)
{
	struct tier_index *tx =
	    tier_index_create(ti->ti_size, (uint32_t)ti->ti_most);
	struct tier_record *batch = malloc(TIER_BATCH * sizeof(*batch));
	uint64_t slot, i, n;

	for (slot = 0; tx != NULL && batch != NULL && slot < ti->ti_most;
	     slot += n) {
		n = ti->ti_most - slot < TIER_BATCH ? ti->ti_most - slot
						    : TIER_BATCH;
		if (!tier_read_all(ti->ti_file, batch, n * sizeof(*batch),
			tier_record_offset(ti, slot)))
			continue;
		for (i = 0; i < n; i++)
			if (tier_is_valid(ti, &batch[i], slot + i))
				tier_index_load(tx, &batch[i]);
	}
	if (tx != NULL && batch == NULL)
		tier_index_destroy(&tx);
	if (tx != NULL)
		tier_index_loaded(tx);
	free(batch);
	return tx;
}

bool
tier_is_due(struct tier *ti, uint64_t now_us)
{
	bool due;

	meter_lock(&ti->ti_lock);
	due = ti->ti_state == TIER_WAITS && now_us >= ti->ti_due;
	if (due)
		ti->ti_due = UINT64_MAX;
	pthread_mutex_unlock(&ti->ti_lock);
	return due;
}

void
tier_prepare(struct tier *ti)
{
	struct tier_index *tx = NULL;

	if (!ti->ti_locked)
		ti->ti_locked = flock(ti->ti_file, LOCK_EX | LOCK_NB) == 0;
	if (ti->ti_locked && tier_load_header(ti) == 0)
		tx = tier_load(ti);
	meter_lock(&ti->ti_lock);
	ti->ti_due = clock_now() + TIER_RETRY;
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
	left = ti->ti_state == TIER_LEFT;
	pthread_mutex_unlock(&ti->ti_lock);
	return left;
}

void
tier_unlock(struct tier *ti)
{
	if (ti->ti_locked)
		flock(ti->ti_file, LOCK_UN);
	ti->ti_locked = false;
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

bool
tier_is_old(const struct tier *ti, const struct os_version *ov)
{
	return pins_version_is_older(ov, ti->ti_age);
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

/* Copies the record of a window.  Returns false if there is none, or the tier is off. */
static bool
tier_find(struct tier *ti, const struct pins_key *key, off_t off,
    struct tier_record *record)
{
	const struct tier_id id = tier_id(key, off);
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
	bool has = tier_find(ti, key, off, &record);

	if (!has) {
		meter_lock(&ti->ti_lock);
		ti->ti_stats.tu_misses++;
		pthread_mutex_unlock(&ti->ti_lock);
	}
	return has;
}

/* Reads the bytes of a record.  Returns 0, -EIO or -EBADMSG. */
static int
tier_read_record(struct tier *ti, const struct tier_record *tr, void *to)
{
	if (!tier_read_all(ti->ti_data, to,
		(size_t)tier_index_padded(tr->tr_len),
		tier_data_offset(ti, tr)))
		return -EIO;
	return XXH3_64bits(to, (size_t)tr->tr_len) == tr->tr_sum ? 0 : -EBADMSG;
}

/* Counts the result of a read.  A record that was overwritten meanwhile is not corrupt. */
static int
tier_count_read(struct tier *ti, const struct tier_record *tr, int error)
{
	if (error == -EIO)
		tier_failed(ti);
	meter_lock(&ti->ti_lock);
	if (error == 0) {
		ti->ti_stats.tu_hits++;
		ti->ti_stats.tu_hit_bytes += tr->tr_len;
	} else if (!tier_index_has(ti->ti_index, tr->tr_number))
		error = -ENOENT;
	else {
		ti->ti_stats.tu_corrupt += error == -EBADMSG;
		tier_index_remove(ti->ti_index, tr->tr_number);
	}
	pthread_mutex_unlock(&ti->ti_lock);
	return error;
}

long
tier_read(struct tier *ti, const struct pins_key *key, off_t off, void *to)
{
	struct tier_record record;
	int error;

	if (!tier_find(ti, key, off, &record))
		return -ENOENT;
	error = tier_count_read(ti, &record, tier_read_record(ti, &record, to));
	return error == 0 ? (long)record.tr_len : error;
}

/* Appends a window whose tr_id and tr_sum are set. */
static int
tier_append(struct tier *ti, struct tier_record *tr, char *from, uint64_t len)
{
	uint64_t padded = tier_index_padded(len);
	int error;

	memset(from + len, 0, padded - len);
	meter_lock(&ti->ti_lock);
	tier_index_reserve(ti->ti_index, len, tr);
	ti->ti_stats.tu_written += padded;
	pthread_mutex_unlock(&ti->ti_lock);
	tr->tr_check = tier_check(ti, tr);
	error =
	    tier_write_all(ti->ti_data, from, padded, tier_data_offset(ti, tr));
	if (error == 0)
		error = tier_write_all(ti->ti_file, tr, sizeof(*tr),
		    tier_record_offset(ti, tr->tr_number));
	if (error != 0) {
		tier_failed(ti);
		return error;
	}
	meter_lock(&ti->ti_lock);
	tier_index_add(ti->ti_index, tr);
	pthread_mutex_unlock(&ti->ti_lock);
	return 0;
}

/*
 * Finds a used window that a new window of `len` bytes would evict, and takes the tokens to append
 * it again.
 */
static bool
tier_find_rescue(struct tier *ti, size_t len, struct tier_record *record)
{
	bool found;

	meter_lock(&ti->ti_lock);
	found = tier_index_rescue(ti->ti_index, len, record) &&
		tier_take_tokens(ti, record->tr_len);
	pthread_mutex_unlock(&ti->ti_lock);
	return found;
}

/* Appends again up to TIER_RESCUES used windows that a new window of `len` bytes would evict. */
static void
tier_rescue(struct tier *ti, size_t len)
{
	struct tier_record old, record;
	int i;

	for (i = 0; i < TIER_RESCUES && tier_find_rescue(ti, len, &old); i++) {
		if (tier_read_record(ti, &old, ti->ti_spare) != 0)
			continue;
		record = (struct tier_record){
		    .tr_id = old.tr_id, .tr_sum = old.tr_sum};
		if (tier_append(ti, &record, ti->ti_spare, old.tr_len) != 0)
			return;
	}
}

int
tier_write(struct tier *ti, const struct pins_key *key, off_t off, void *from,
    size_t len)
{
	struct tier_record record = {
	    .tr_id = tier_id(key, off), .tr_sum = XXH3_64bits(from, len)};

	tier_rescue(ti, len);
	return tier_append(ti, &record, from, len);
}
