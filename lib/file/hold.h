/*
 * hold: keeps popular windows of large files in memory (PINS_HELD), so that the loop need not check
 * their residency for as long as they are requested.  While the kernel reclaims pages, such a check is
 * valid for 1 ms only, and costs up to a system call for each page (residency.h).
 */
#ifndef LIB_FILE_HOLD_H
#define LIB_FILE_HOLD_H

#include "lib/pagewise.h"

#define HOLD_LEAST ((size_t)256 << 10) /* minimum size of a window, bytes */

/*
 * Has a disk thread map and lock the OS_FOLIO that has the byte at off, which was found resident.  Does
 * nothing if the file has a hold in progress or had one in the last 20 ms, or one failed in the last
 * second: the limit of pins is reached, or RLIMIT_MEMLOCK forbids it.  Loop's thread.
 */
void hold_window(struct pw_file *, off_t off, uint64_t now_us);

#endif
