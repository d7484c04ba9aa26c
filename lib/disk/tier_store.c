/*
 * tier_store: opens, reads and writes the two files of a tier (tier.h).
 */
#include <sys/stat.h>

#include <sys/file.h>

#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/disk/tier_priv.h"
#include "lib/os/os.h"
#include "lib/os/store.h"
#include "lib/os/seed.h"
#include "lib/os/store.h"

#define TIER_DATA    "pagewise-tier.data"
#define TIER_INDEX   "pagewise-tier.index"
#define TIER_MAGIC   0x7061676577697365U /* "pagewise" */
#define TIER_VERSION 2
#define TIER_BATCH   8192 /* records that are loaded at once: 1 MiB */
#define TIER_PIECES  (OS_FOLIO / TIER_PIECE)

_Static_assert(sizeof(struct tier_record) == 128, "the index file");

/*
 * Checksums of a window's pieces.  They are read with the window, from TIER_INDEX, where they follow the
 * records.
 */
struct tier_sums {
	uint64_t ts_sums[TIER_PIECES];
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

static uint64_t
tier_store_check(const struct tier *ti, const struct tier_record *tr)
{
	return XXH3_64bits_withSeed(
	    tr, offsetof(struct tier_record, tr_check), ti->ti_seed);
}

/* Reads all of [off, off + len).  Returns false if that fails. */
static bool
tier_store_read_all(int fd, void *to, size_t len, off_t off)
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

/* Writes all of [off, off + len).  Returns 0 or -errno. */
static int
tier_store_write_all(int fd, const void *from, size_t len, off_t off)
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
tier_store_record_offset(const struct tier *ti, uint64_t number)
{
	return (off_t)(TIER_BLOCK +
		       number % ti->ti_most * sizeof(struct tier_record));
}

/* Returns the offset of the checksums of a slot in TIER_INDEX. */
static off_t
tier_store_sums_offset(const struct tier *ti, uint64_t slot)
{
	return tier_store_record_offset(ti, ti->ti_most - 1) +
	       (off_t)(sizeof(struct tier_record) +
		       slot * sizeof(struct tier_sums));
}

/* Returns the offset of a record's window in TIER_DATA. */
static off_t
tier_store_data_offset(const struct tier *ti, const struct tier_record *tr)
{
	return (off_t)(TIER_BLOCK + tr->tr_at % ti->ti_size);
}

/*
 * Writes TIER_MAGIC to the first block of an empty file, and waits until the disk has it, before
 * the file gets further blocks.  Returns -EEXIST if a file that is not empty begins otherwise.
 */
static int
tier_store_check_magic(int fd, off_t size)
{
	/* O_DIRECT requires alignment. */
	alignas(TIER_BLOCK) uint64_t block[TIER_BLOCK / sizeof(uint64_t)] = {0};
	int error;

	if (size > 0) {
		if (pread(fd, block, TIER_BLOCK, 0) == -1)
			return -errno;
		return size >= (off_t)TIER_BLOCK && block[0] == TIER_MAGIC
			   ? 0
			   : -EEXIST;
	}
	block[0] = TIER_MAGIC;
	error = tier_store_write_all(fd, block, TIER_BLOCK, 0);
	if (error == 0 && fdatasync(fd) == -1)
		error = -errno;
	return error;
}

/* Opens a file of the tier, and sets *fd to its descriptor, or to -errno.  Returns 0 or -errno. */
static int
tier_store_open_file(int dir, const char *name, bool direct, int *fd)
{
	off_t size;

	*fd = os_store_open(dir, name, direct, &size);
	return *fd < 0 ? *fd : tier_store_check_magic(*fd, size);
}

/* Opens both files.  Extends them only after both have passed tier_store_check_magic. */
static int
tier_store_open_files(struct tier *ti, int dir)
{
	int error = tier_store_open_file(dir, TIER_DATA, true, &ti->ti_data);

	if (error == 0)
		error =
		    tier_store_open_file(dir, TIER_INDEX, false, &ti->ti_file);
	if (error == 0)
		error = os_store_extend(
		    ti->ti_file, tier_store_sums_offset(ti, ti->ti_most));
	if (error == 0)
		error = os_store_extend(
		    ti->ti_data, (off_t)(TIER_BLOCK + ti->ti_size));
	return error;
}

int
tier_store_open(struct tier *ti, const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int error;

	if (dir == -1)
		return -errno;
	error = tier_store_open_files(ti, dir);
	if (error == 0 && fstat(dir, &st) == -1)
		error = -errno;
	else if (error == 0)
		ti->ti_dev = st.st_dev;
	close(dir);
	return error;
}

int
tier_store_load_header(struct tier *ti)
{
	struct tier_header th;
	struct seed seed;

	if (tier_store_read_all(ti->ti_file, &th, sizeof(th), 0) &&
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
	return tier_store_write_all(ti->ti_file, &th, sizeof(th), 0);
}

/* Returns true if the record belongs to this store, and to this slot. */
static bool
tier_store_is_valid(
    const struct tier *ti, const struct tier_record *tr, uint64_t slot)
{
	return tr->tr_number > 0 && tr->tr_number % ti->ti_most == slot &&
	       tr->tr_len > 0 && tr->tr_len <= OS_FOLIO &&
	       tr->tr_at % ti->ti_size + tr->tr_len <= ti->ti_size &&
	       tr->tr_check == tier_store_check(ti, tr);
}

struct tier_index *
tier_store_load(struct tier *ti)
{
	struct tier_index *tx =
	    tier_index_create(ti->ti_size, (uint32_t)ti->ti_most);
	struct tier_record *batch = malloc(TIER_BATCH * sizeof(*batch));
	uint64_t slot, i, n;

	for (slot = 0; tx != NULL && batch != NULL && slot < ti->ti_most;
	     slot += n) {
		n = ti->ti_most - slot < TIER_BATCH ? ti->ti_most - slot
						    : TIER_BATCH;
		if (!tier_store_read_all(ti->ti_file, batch, n * sizeof(*batch),
			tier_store_record_offset(ti, slot)))
			continue;
		for (i = 0; i < n; i++)
			if (tier_store_is_valid(ti, &batch[i], slot + i))
				tier_index_load(tx, &batch[i]);
	}
	if (tx != NULL && batch == NULL)
		tier_index_destroy(&tx);
	if (tx != NULL)
		tier_index_loaded(tx);
	free(batch);
	return tx;
}

/* Returns the bytes of checksums that a window has. */
static size_t
tier_store_sums_len(const struct tier_record *tr)
{
	return (size_t)(tr->tr_len + TIER_PIECE - 1) / TIER_PIECE *
	       sizeof(uint64_t);
}

/* Returns the checksum of the piece at off, of the `len` bytes in memory. */
static uint64_t
tier_store_sum(const void *from, size_t off, size_t len)
{
	return XXH3_64bits((const char *)from + off,
	    len - off < TIER_PIECE ? len - off : TIER_PIECE);
}

/* Reads the checksums of a window.  Returns 0, -EIO or -EBADMSG. */
static int
tier_store_read_sums(
    struct tier *ti, const struct tier_record *tr, struct tier_sums *ts)
{
	const size_t len = tier_store_sums_len(tr);

	if (!tier_store_read_all(ti->ti_file, ts, len,
		tier_store_sums_offset(ti, tr->tr_number % ti->ti_most)))
		return -EIO;
	return XXH3_64bits(ts, len) == tr->tr_sum ? 0 : -EBADMSG;
}

int
tier_store_read(struct tier *ti, const struct tier_record *tr, size_t off,
    size_t len, void *to)
{
	struct tier_sums ts;
	int error = tier_store_read_sums(ti, tr, &ts);
	size_t i;

	if (error == 0 && !tier_store_read_all(ti->ti_data, to,
			      (size_t)tier_index_padded(len),
			      tier_store_data_offset(ti, tr) + (off_t)off))
		error = -EIO;
	for (i = 0; error == 0 && i < len; i += TIER_PIECE)
		if (tier_store_sum(to, i, len) !=
		    ts.ts_sums[(off + i) / TIER_PIECE])
			error = -EBADMSG;
	return error;
}

int
tier_store_write(struct tier *ti, struct tier_record *tr, const void *from)
{
	const size_t len = tier_store_sums_len(tr);
	struct tier_sums ts = {0};
	size_t i;
	int error;

	for (i = 0; i < tr->tr_len; i += TIER_PIECE)
		ts.ts_sums[i / TIER_PIECE] =
		    tier_store_sum(from, i, (size_t)tr->tr_len);
	tr->tr_sum = XXH3_64bits(&ts, len);
	tr->tr_check = tier_store_check(ti, tr);
	error = tier_store_write_all(ti->ti_data, from,
	    (size_t)tier_index_padded(tr->tr_len),
	    tier_store_data_offset(ti, tr));
	if (error == 0)
		error = tier_store_write_all(ti->ti_file, &ts, len,
		    tier_store_sums_offset(ti, tr->tr_number % ti->ti_most));
	if (error == 0)
		error = tier_store_write_all(ti->ti_file, tr, sizeof(*tr),
		    tier_store_record_offset(ti, tr->tr_number));
	return error;
}

bool
tier_is_in_use(const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	bool used;

	if (dir != -1)
		fd = openat(dir, TIER_INDEX,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	used = fd != -1 && flock(fd, LOCK_SH | LOCK_NB) == -1 &&
	       errno == EWOULDBLOCK;
	if (fd != -1)
		close(fd);
	if (dir != -1)
		close(dir);
	return used;
}
