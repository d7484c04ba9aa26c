/*
 * verified: remembers which pieces of files a recent check found resident, so that a
 * popular piece is not checked for each request.  Each loop has its own table of fixed
 * size, which covers 256 MiB of files.  A new piece replaces the piece in the same slot.
 */
#ifndef LIB_FILE_VERIFIED_H
#define LIB_FILE_VERIFIED_H

#include <stdint.h>
#include <sys/types.h>

#define VERIFIED_PIECE ((off_t)64 << 10)

struct verified;

struct verified *verified_create(void); /* returns NULL if memory is short */
void verified_destroy(struct verified **);

/* Returns a new number for a file.  A number repeats only after 2^32 - 1 calls. */
uint32_t verified_number(struct verified *);

/*
 * Removes from both ends of [*off, *end) the pieces that were noted at the time `since` or
 * later.  Sets *off equal to *end if nothing is left.
 */
void verified_trim(const struct verified *, uint32_t file, off_t *off,
    off_t *end, uint64_t since);

/*
 * Notes that [off, end) is resident at the time `now`.  `size` is the size of the file, whose last piece
 * may be short.
 */
void verified_note(struct verified *, uint32_t file, off_t off, off_t end,
    off_t size, uint64_t now);

#endif
