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
	bool fp_attributed; /* fil_attribute was asked for */
	unsigned fp_refs;
	struct pw_loop *fp_loop;
	struct pw_device *fp_device;
	struct drop_lock *fp_drop_lock; /* the device's */
	int fp_ask;	       /* enum os_ask: how residency is asked */
	bool fp_remote;	       /* fstat(2) may wait for a server */
	uint64_t fp_iteration; /* of the loop, when it was last compared */
	off_t fp_refused;  /* the last no: RWF_NOWAIT's, of this byte; or -1 */
	bool fp_cachestat; /* the kernel answers us cachestat(2) for it */
	bool fp_mincore;   /* no cachestat, but mincore(2) tells us the truth */
	bool fp_drops;	   /* its pages are given back now and then */
	unsigned fp_dropped; /* drops of its lock that it knows of */
	bool fp_each;	    /* pages may come after the fetch's end: ask each */
	bool fp_random;	    /* kernel read-ahead is off for this descriptor */
	uint32_t fp_number; /* in what is known to be in memory: verified.h */
	uint64_t fp_asked;  /* bytes, not counted yet: admission.h */
	struct pw_file *fp_next;      /* of the loop's that are noted ... */
	bool fp_noted;		      /* ... if it is one */
	void *fp_map;		      /* for mincore(2), whole file */
	uint8_t *fp_mapped;	      /* a bit per 64 KiB: see residency.c */
	struct indirect *fp_indirect; /* of UFS, if it has such blocks */
};

static inline struct file_private *
file_priv(const struct pw_file *file)
{
	return (struct file_private *)(uintptr_t)file;
}

#endif
