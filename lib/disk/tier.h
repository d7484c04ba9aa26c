/*
 * tier: keeps windows of files on a fast disk in front of slow ones, in two files of a directory:
 * pagewise-tier.data is a ring of windows, pagewise-tier.index has a record for each of them (tier_index.h).
 *
 * A record has the version of its file (pins.h), and checksums of the window and of itself, so bytes that
 * are torn, flipped, overwritten, or of an earlier version are never sent.  Nothing is synchronised: after a
 * power cut the windows are lost whose bytes did not reach the disk.
 *
 * The files belong to the process that has locked the index.  Another process goes without the tier until that
 * one calls tier_leave or ends.
 *
 * Errors, and reads that take TIER_LATE_US, switch the tier off for TIER_OFF_US, and until the late reads
 * have ended.  Reads and writes wait for the fast disk; only disk threads of the tier's queue make them.
 */
#ifndef LIB_DISK_TIER_H
#define LIB_DISK_TIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TIER_LATE_US 1000000  /* longest time of a read, microseconds */
#define TIER_OFF_US  10000000 /* time that the tier is off after an error */

struct os_version;
struct pins_key;
struct tier;

struct tier_conf {
	const char *tc_dir;
	uint64_t tc_size; /* bytes of windows */
	uint64_t
	    tc_writes;	 /* most bytes written in a day, or 0 without a limit */
	unsigned tc_age; /* least age of a version that is written, seconds */
};

struct tier_stats {
	bool tu_on;
	uint64_t tu_windows; /* windows in the tier */
	uint64_t tu_hits;    /* windows that were read */
	uint64_t tu_hit_bytes;
	uint64_t tu_misses;  /* windows that were not there */
	uint64_t tu_corrupt; /* windows whose checksum was wrong */
	uint64_t tu_errors;  /* reads and writes that failed */
	uint64_t tu_late;    /* reads that took TIER_LATE_US */
	uint64_t tu_written; /* bytes */
	uint64_t
	    tu_skipped; /* windows not written, for the limits of writing */
};

/*
 * Opens or creates the files, and locks them if no other process has.  Returns 0 or -errno; -EEXIST,
 * and changes neither, if a file has other content, another link, or another owner than this process.  May wait
 * for the disk; call it before the loops run.
 */
int tier_open(const struct tier_conf *, struct tier **);
void tier_close(struct tier **);

/* st_dev of the directory's file system */
dev_t tier_dev(const struct tier *);

/*
 * tier_prepare locks the files if no other process has, and loads the index.  tier_is_due returns true if it
 * should be called: once a second until it has succeeded.  tier_leave stops the use of the tier, for good;
 * tier_is_left returns true from then on; tier_unlock then unlocks the files.
 */
bool tier_is_due(struct tier *, uint64_t now_us);
void tier_prepare(struct tier *);
void tier_leave(struct tier *);
bool tier_is_left(struct tier *);
void tier_unlock(struct tier *);

/* Returns true if the window at `off` is in the tier, and marks it as used.  Counts a miss.  Any thread. */
bool tier_has(struct tier *, const struct pins_key *, off_t off);

/*
 * Reads a window into memory of OS_FOLIO bytes, aligned to TIER_BLOCK.  Returns its length, or -errno: -ENOENT
 * if it is no longer there, -EBADMSG if its checksum is wrong.
 */
long tier_read(struct tier *, const struct pins_key *, off_t off, void *to);

/*
 * Returns true if windows of this version of a file may be written: the file did not change for tc_age.  Linux
 * sets the times of a file at the start of write(2), and copies the bytes afterwards, so a window that is read
 * soon may have some of the old bytes.  Any thread.
 */
bool tier_is_old(const struct tier *, const struct os_version *);

/*
 * Returns true if a window of `len` bytes may be written now, and takes the bytes from the limit.  tier_write
 * writes it from memory as in tier_read, whose bytes after the window it clears.  One thread at a time.
 */
bool tier_may_write(struct tier *, size_t len);
int tier_write(
    struct tier *, const struct pins_key *, off_t off, void *from, size_t len);

/*
 * tier_is_late counts a read that takes too long, and switches the tier off until tier_was_late is called for
 * it, when it has ended.
 */
void tier_is_late(struct tier *);
void tier_was_late(struct tier *);

void tier_stats(struct tier *, struct tier_stats *);

#endif
