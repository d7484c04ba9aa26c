/*
 * file_private: the private state of an open file.  Every struct pw_file is the first member of
 * a struct file_private.  Loop's thread only.
 */
#ifndef LIB_DISK_FILE_PRIVATE_H
#define LIB_DISK_FILE_PRIVATE_H

#include "lib/pagewise.h"

struct indirect;

/* Least size of a hole whose zeros are sent from memory, bytes. */
#define FILE_HOLE ((off_t)512 << 10)

struct file_private {
	struct pw_file fp_file;
	bool fp_attributed; /* true if fil_attribute was read */
	unsigned fp_refs;
	struct pw_loop *fp_loop;
	struct pw_device *fp_device;
	/* drop lock of the device for this inode */
	struct drop_lock *fp_drop_lock;
	int fp_ask;	       /* method of residency checks, an enum os_ask */
	bool fp_remote;	       /* true if fstat(2) may wait for a server */
	uint64_t fp_iteration; /* lp_iteration of the last fstat(2) */
	bool fp_quiet;	       /* result of quiet_ask at the last check */
	/* true if splice(2) or a sink sends the file, which no copy replaces */
	bool fp_each;
	off_t fp_refused;  /* offset that RWF_NOWAIT refused last, or -1 */
	bool fp_cachestat; /* true if cachestat(2) is permitted */
	/* true if mincore(2) is used, since cachestat(2) is not permitted */
	bool fp_mincore;
	unsigned fp_drops;   /* pending drops of pages of the file */
	uint64_t fp_dropped; /* dl_drops at the last residency check */
	/* true if the file may have a hole of FILE_HOLE bytes, and is local */
	bool fp_sparse;
	bool fp_random;	    /* true if kernel read-ahead is off for fil_fd */
	uint32_t fp_number; /* key of the file in verified.h */
	/* sent bytes that admission.h has not counted yet */
	uint64_t fp_sent;
	struct pw_file *fp_next; /* next file of lp_noted */
	bool fp_noted;		 /* true if the file is in lp_noted */
	void *fp_map; /* mapping of the whole file for mincore(2), or NULL */
	uint8_t *fp_mapped;	      /* bit for each fetched 64 KiB, or NULL */
	struct indirect *fp_indirect; /* indirect blocks of UFS, or NULL */
};

static inline struct file_private *
file_priv(const struct pw_file *file)
{
	return (struct file_private *)(uintptr_t)file;
}

#endif
