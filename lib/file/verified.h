/*
 * verified: remembers which pieces of files a recent check found resident, so that a
 * popular piece is not checked for each request.  Each loop has its own table of fixed
 * size, which covers 256 MiB of files.  A new piece replaces the piece in the same slot.
 */
#ifndef LIB_FILE_VERIFIED_H
#define LIB_FILE_VERIFIED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define VERIFIED_PIECE ((off_t)64 << 10)

struct verified;

struct verified *verified_create(void); /* returns NULL if memory is short */
void verified_destroy(struct verified **);

/* Returns a new number for a file.  A number repeats only after 2^32 - 1 calls. */
uint32_t verified_number(struct verified *);

/*
 * Removes from both ends of [*off, *end) the pieces that were noted at the time `since` or later, or are in use after
 * the time `used` (verified_is_used).  Sets *off equal to *end if nothing is left.
 */
void verified_trim(const struct verified *, uint32_t file, off_t *off,
    off_t *end, uint64_t since, uint64_t used);

/*
 * Notes that [off, end) is resident at the time `now`.  `size` is the size of the file, whose last piece
 * may be short.
 */
void verified_note(struct verified *, uint32_t file, off_t off, off_t end,
    off_t size, uint64_t now);

/*
 * verified_use notes that all bytes of [off, end) were sent at the time `now`, which proves that they were resident.
 * verified_is_used returns true if the piece at off was sent whole twice within VERIFIED_AGAIN, the last time after
 * `since`.  It lowers *end to the end of the pieces from off on of which the same is true.  verified_unuse forgets the
 * uses of all pieces of the range.
 */
#define VERIFIED_AGAIN 100000 /* microseconds */
void verified_use(struct verified *, uint32_t file, off_t off, off_t end,
    off_t size, uint64_t now);
void verified_unuse(struct verified *, uint32_t file, off_t off, off_t end);
bool verified_is_used(const struct verified *, uint32_t file, off_t off,
    off_t *end, uint64_t since);

#endif
