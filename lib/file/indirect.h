/*
 * indirect: remembers which indirect blocks of a file on UFS are in memory.  Pure functions.
 *
 * The inode locates the first 12 blocks of a file, and indirect blocks locate the others.
 * FreeBSD's sendfile(2) waits for indirect blocks, although it does not wait for data.  So a disk
 * thread reads all indirect blocks that lead to a byte (os_native_map).  An indirect block of UFS2 has
 * 8 bytes for each block of the file.  UFS1 and ext2fs have 4, so one of their indirect blocks covers
 * exactly two of the ranges assumed here.
 */
#ifndef LIB_FILE_INDIRECT_H
#define LIB_FILE_INDIRECT_H

#include <stdint.h>
#include <sys/types.h>

#define INDIRECT_FIRST 12	/* number of blocks that the inode locates */
#define INDIRECT_HOLDS 10000000 /* lifetime of in_known, microseconds */

/* Indirect blocks that are known to be resident.  Initially all zeros except in_block. */
struct indirect {
	off_t in_block;	   /* block size, bytes */
	uint64_t in_first; /* number of the indirect block of bit 0 */
	uint64_t in_known; /* bit i is set if block in_first + i is resident */
	/* time of the first read of a block in in_known, microseconds */
	uint64_t in_since;
};

/*
 * Returns the first byte of [off, end) whose indirect block is not known to be resident, or end if
 * there is none.  Before that byte is sent, the caller must have a disk thread read its indirect blocks.
 */
off_t indirect_missing(
    const struct indirect *, off_t off, off_t end, uint64_t now_us);

/* Notes that the indirect block of the byte at off is resident.  Call it after os_native_map. */
void indirect_note(struct indirect *, off_t off, uint64_t now_us);

#endif
