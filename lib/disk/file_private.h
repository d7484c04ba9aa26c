/*
 * file_private: what the library keeps of an open file beside what its callers see; every
 * struct pw_file is the first member of one.  The loop's thread only.
 */
#ifndef LIB_DISK_FILE_PRIVATE_H
#define LIB_DISK_FILE_PRIVATE_H

#include "lib/pagewise.h"

struct indirect;

struct file_private {
	struct pw_file fp_file;
	bool fp_attributed; /* fil_attribute was read */
	unsigned fp_refs;
	struct pw_loop *fp_loop;
	struct pw_device *fp_device;
	struct drop_lock *fp_drop_lock; /* the device's */
	int fp_ask;	       /* enum os_ask: how residency is asked */
	bool fp_remote;	       /* fstat(2) may wait for a server */
	uint64_t fp_iteration; /* lp_iteration of the last fstat(2) */
	off_t fp_refused;      /* byte that RWF_NOWAIT refused last, or -1 */
	bool fp_cachestat;     /* cachestat(2) is permitted for this file */
	bool fp_mincore;       /* no cachestat(2), but an honest mincore(2) */
	bool fp_drops;	       /* transmissions drop pages of this file */
	unsigned fp_dropped;   /* dl_drops at the last residency check */
	bool fp_each; /* a fetch may end before its pages arrive: check each */
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
