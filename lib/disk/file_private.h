/*
 * file_private: the private state of an open file.  Every struct pw_file is the first member of
 * a struct file_private.  Loop's thread only.
 */
#ifndef LIB_DISK_FILE_PRIVATE_H
#define LIB_DISK_FILE_PRIVATE_H

#include "lib/pagewise.h"

struct indirect;

struct file_private {
	struct pw_file fp_file;
	bool fp_attributed; /* true if fil_attribute was read */
	unsigned fp_refs;
	struct pw_loop *fp_loop;
	struct pw_device *fp_device;
	/* drop lock of the device for this inode */
	struct drop_lock *fp_drop_lock;
	int fp_ask;	       /* enum os_ask: how residency is checked */
	bool fp_remote;	       /* true if fstat(2) may wait for a server */
	uint64_t fp_iteration; /* lp_iteration of the last fstat(2) */
	off_t fp_refused;      /* byte that RWF_NOWAIT refused last, or -1 */
	bool fp_cachestat;     /* cachestat(2) is permitted for this file */
	/* mincore(2) is used, as cachestat(2) is not permitted */
	bool fp_mincore;
	bool fp_drops;	     /* transmissions drop pages of this file */
	unsigned fp_dropped; /* dl_drops at the last residency check */
	/* every page is checked, as a fetch may end before its pages arrive */
	bool fp_each;
	bool fp_random;	    /* kernel read-ahead is off for this descriptor */
	uint32_t fp_number; /* key of the file in verified.h */
	uint64_t fp_asked;  /* bytes that admission.h has not counted */
	struct pw_file *fp_next; /* next file of lp_noted */
	bool fp_noted;		 /* the file is in lp_noted */
	void *fp_map; /* mapping of the whole file for mincore(2), or NULL */
	uint8_t *fp_mapped;	      /* a bit for each 64 KiB: residency.c */
	struct indirect *fp_indirect; /* indirect blocks of UFS, or NULL */
};

static inline struct file_private *
file_priv(const struct pw_file *file)
{
	return (struct file_private *)(uintptr_t)file;
}

#endif
