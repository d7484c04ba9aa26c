/*
 * indirect: which indirect blocks of a file on UFS are in memory.  Pure.
 *
 * The inode knows the first 12 blocks.  Where the others are is in indirect blocks, and
 * FreeBSD's sendfile(2) waits for those although it does not wait for data.  Reading a byte
 * reads all indirect blocks that lead to it.  An indirect block has 8 bytes for each block of the file
 * (UFS2); UFS1 and ext2fs have 4, so theirs end where one of these ends.
 */
#ifndef LIB_FILE_INDIRECT_H
#define LIB_FILE_INDIRECT_H

#include <stdint.h>
#include <sys/types.h>

#define INDIRECT_FIRST 12	/* blocks of the file before the first one */
#define INDIRECT_HOLDS 10000000 /* microseconds that a block is known */

/* Known indirect blocks.  All zeros but in_block at first. */
struct indirect {
	off_t in_block;	   /* block size, bytes */
	uint64_t in_first; /* number of the block of bit 0 of in_known */
	uint64_t in_known; /* a bit for each resident block */
	uint64_t
	    in_since; /* time of the first read of a block in in_known, microseconds */
};

/*
 * The first byte of [off, end) of which the indirect block is not known to be in memory:
 * it has to be read before it is sent.  end: there is none.
 */
off_t indirect_missing(
    const struct indirect *, off_t off, off_t end, uint64_t now_us);

/* Call after the byte at off was read. */
void indirect_note(struct indirect *, off_t off, uint64_t now_us);

#endif
