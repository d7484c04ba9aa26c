/*
 * tier_priv: the tier (tier.h), and its two files, for tier.c and tier_store.c.
 */
#ifndef LIB_DISK_TIER_PRIV_H
#define LIB_DISK_TIER_PRIV_H

#include <sys/types.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/disk/tier.h"
#include "lib/disk/tier_index.h"
#include "lib/disk/tier_seen.h"

enum tier_state {
	TIER_WAITS, /* the index is not loaded yet */
	TIER_ON,
	TIER_LEFT,
};

struct tier {
	int ti_data;
	int ti_file; /* descriptor of the index file */
	dev_t ti_dev;
	uint64_t ti_size;
	uint64_t ti_most;
	uint64_t ti_seed;
	uint64_t ti_writes; /* most bytes written per day, or 0 */
	unsigned ti_age;    /* least age of a version to be written, seconds */

	pthread_mutex_t ti_lock; /* guards the fields below */
	enum tier_state ti_state;
	struct tier_index *ti_index; /* NULL before TIER_ON */
	struct tier_seen *ti_seen;
	bool ti_locked; /* true if this process has the lock of ti_file */
	/* true if another process had locked ti_file at the last tier_lock */
	bool ti_taken;
	bool
	    ti_preparing; /* true from tier_is_due to the end of tier_prepare */
	uint64_t ti_due;  /* time of the next tier_prepare, microseconds */
	uint64_t ti_off_until; /* end of the off time, microseconds */
	unsigned ti_late;      /* late reads that have not ended */
	uint64_t ti_tokens;    /* bytes that may be written now */
	uint64_t ti_filled;    /* time of the last refill, microseconds */
	struct tier_stats ti_stats;
};

/* Opens or creates the files in a directory, and sets ti_data, ti_file and ti_dev.  Fails as tier_open does. */
int tier_store_open(struct tier *, const char *path);

/*
 * Reads the header.  Writes a new header, with a new seed, if the files are empty, of another size or of
 * another version.  Returns 0 or -errno.
 */
int tier_store_load_header(struct tier *);

/*
 * Reads the index, and leaves out the parts that cannot be read.  Returns NULL if memory is short.
 */
struct tier_index *tier_store_load(struct tier *);

/* Reads [off, off + len) of the window of a record, as tier_read does.  Returns 0, -EIO or -EBADMSG. */
int tier_store_read(struct tier *, const struct tier_record *, size_t off,
    size_t len, void *to);

/* Sets tr_sum and tr_check, and writes a window, its checksums, and its record.  Returns 0 or -errno. */
int tier_store_write(struct tier *, struct tier_record *, const void *from);

#endif
