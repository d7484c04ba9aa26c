/*
 * tier: keeps windows of files on a fast disk in front of slow ones, in two files of a directory:
 * pagewise-tier.data is a ring of windows, pagewise-tier.index has a record for each of them
 * (tier_index.h).
 *
 * A record has the version of its file (pins.h), and checksums of the window's pieces and of itself, so
 * bytes that are torn, flipped, overwritten, or of an earlier version are never sent.  Writes are
 * not synchronised, so a power cut loses the windows whose bytes did not reach the disk.
 *
 * Only the process that has locked the index file uses the two files.  Other processes serve without
 * the tier until that process unlocks the index file or ends.
 *
 * An error switches the tier off for TIER_OFF_US.  So does a read that takes TIER_LATE_US, and the
 * tier stays off until that read has ended.  Only disk threads of the tier's queue read and write,
 * since both wait for the fast disk.
 */
#ifndef LIB_DISK_TIER_H
#define LIB_DISK_TIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TIER_PIECE ((size_t)64 << 10) /* bytes with a checksum of their own */

#define TIER_LATE_US 1000000  /* duration of a late read, microseconds */
#define TIER_OFF_US  10000000 /* off time after an error, microseconds */

struct os_version;
struct pins_key;
struct tier;

struct tier_conf {
	const char *tc_dir;
	uint64_t tc_size; /* maximum size of all windows, bytes */
	/* maximum bytes written in a day, or 0 without a limit */
	uint64_t tc_writes;
	unsigned tc_age; /* least age of a version that is written, seconds */
};

struct tier_stats {
	bool tu_on;
	bool tu_taken;	     /* true while another process holds the lock */
	uint64_t tu_windows; /* windows in the tier */
	uint64_t tu_hits;    /* reads from the tier, each within a window */
	uint64_t tu_hit_bytes;
	/* fetches of windows that are not in the tier, or while the tier was off */
	uint64_t tu_misses;
	uint64_t tu_corrupt; /* windows with a wrong checksum */
	uint64_t tu_errors;  /* reads and writes that failed */
	uint64_t tu_late;    /* reads that took TIER_LATE_US */
	uint64_t tu_written; /* bytes written, rounded up to TIER_BLOCK */
	/* windows not written, because of tc_writes or while the tier was off */
	uint64_t tu_skipped;
};

/*
 * Opens or creates the files, and locks them unless another process has locked them.  Returns 0 or
 * -errno; -EEXIST if a file has other content, several links or another owner than this process,
 * and then leaves that file unchanged.  May wait for the disk; call it before the loops run.
 */
int tier_open(const struct tier_conf *, struct tier **);
void tier_close(struct tier **);

/* Returns the st_dev of the directory's file system. */
dev_t tier_dev(const struct tier *);

/* Returns true if a process has locked the files of a tier in the directory.  May wait for the disk. */
bool tier_is_in_use(const char *dir);

/*
 * tier_is_due returns true if the caller must have a disk thread call tier_prepare: once a second until
 * tier_prepare has succeeded.  If no disk thread can do that, the caller calls tier_postpone.  tier_prepare
 * locks the files unless another process has locked them, and loads the index.  tier_leave stops the use of
 * the tier for good.  tier_is_left returns true once tier_leave was called and no tier_prepare runs; a disk
 * thread then calls tier_unlock, which unlocks the files.
 */
bool tier_is_due(struct tier *, uint64_t now_us);
void tier_prepare(struct tier *);
void tier_postpone(struct tier *);
void tier_leave(struct tier *);
bool tier_is_left(struct tier *);
void tier_unlock(struct tier *);

/* Returns true if the window that has the byte at `off` is in the tier, and the tier is on.  Any thread. */
bool tier_has(struct tier *, const struct pins_key *, off_t off);

/*
 * Counts a miss: a range, of one window, is fetched from the file's own disk.  Returns true if the tier
 * admits the window: if a part of the range was noted before, while the last bytes, twice the size of
 * the tier, were noted, and if the file has at most half the size of the tier.  Any thread.
 */
bool tier_missed(struct tier *, const struct pins_key *, off_t off, size_t len);

/*
 * Reads `len` bytes of a window into memory that is aligned to TIER_BLOCK, and as long as the next multiple
 * of it.  The range begins at a multiple of TIER_PIECE, and ends at one or with the window.  Returns 0 or
 * -errno: -ENOENT if the window is no longer in the tier, -EBADMSG if a checksum is wrong.
 */
int tier_read(
    struct tier *, const struct pins_key *, off_t off, size_t len, void *to);

/*
 * Returns true if windows of this version of a file may be written: the times of the file are known,
 * and the file did not change for tc_age.  Linux sets the times of a file at the start of write(2),
 * and copies the bytes afterwards, so a window that is read soon after that may have old bytes.  Any
 * thread.
 */
bool tier_is_old(const struct tier *, const struct os_version *);

/*
 * tier_may_write returns true if a window of `len` bytes may be written now, and subtracts `len`
 * from the bytes that tc_writes allows.  tier_write writes a window from memory such as tier_read
 * needs, in which it first clears the bytes from `len` to the next multiple of TIER_BLOCK.  Call
 * tier_write on one thread at a time.  It returns 0 or -errno.
 */
bool tier_may_write(struct tier *, size_t len);
int tier_write(
    struct tier *, const struct pins_key *, off_t off, void *from, size_t len);

/*
 * tier_is_late counts a read that takes TIER_LATE_US, and switches the tier off.  Call
 * tier_was_late when that read has ended; until then the tier stays off.
 */
void tier_is_late(struct tier *);
void tier_was_late(struct tier *);

void tier_stats(struct tier *, struct tier_stats *);

#endif
