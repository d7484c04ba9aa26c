/*
 * verified: the pieces of files that a loop has found in memory a moment ago, so that a
 * popular piece needs no query for each request.  One thread's.
 *
 * A table of a fixed size, in which a piece takes the place of another one: 256 MiB of
 * files are remembered.
 */
#ifndef LIB_FILE_VERIFIED_H
#define LIB_FILE_VERIFIED_H

#include <stdint.h>
#include <sys/types.h>

#define VERIFIED_PIECE ((off_t)64 << 10)

struct verified;

struct verified *verified_create(void); /* returns NULL if memory is short */
void verified_destroy(struct verified **);

/* Returns a number that no other file of the loop had lately. */
uint32_t verified_number(struct verified *);

/*
 * Takes from both ends of [*off, *end) what was found since then, by piece.  *off == *end:
 * that was all of it.
 */
void verified_trim(const struct verified *, uint32_t file, off_t *off,
    off_t *end, uint64_t since);

/* Notes that the range is resident now.  size is the file's, whose last piece may be short. */
void verified_note(struct verified *, uint32_t file, off_t off, off_t end,
    off_t size, uint64_t now);

#endif
