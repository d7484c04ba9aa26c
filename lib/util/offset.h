/*
 * offset: adds to file offsets without overflow, also in a file of 2^63-1 bytes.
 */
#ifndef LIB_UTIL_OFFSET_H
#define LIB_UTIL_OFFSET_H

#include <stdint.h>
#include <sys/types.h>

#define OFFSET_MAX ((off_t)INT64_MAX)

/* Returns off + len, or end if that is less.  Requires 0 <= off <= end. */
static inline off_t
offset_add(off_t off, uint64_t len, off_t end)
{
	return len < (uint64_t)(end - off) ? off + (off_t)len : end;
}

/* Returns the first multiple of step after off, or end if that is less.  Requires step > 0. */
static inline off_t
offset_next(off_t off, off_t step, off_t end)
{
	return offset_add(off, (uint64_t)(step - off % step), end);
}

/* Returns the first multiple of step at or after off, or end if that is less. */
static inline off_t
offset_round_up(off_t off, off_t step, off_t end)
{
	return off % step == 0 ? off : offset_next(off, step, end);
}

#endif
