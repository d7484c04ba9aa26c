/*
 * watched: maps popular windows of large files for as long as they are requested, so that one call checks all
 * pages of a chunk (lib/os/watch.h).  While the kernel reclaims pages, another check is valid for 1 ms only, and
 * takes a system call for each page of a file of another owner (residency.h).
 */
#ifndef LIB_FILE_WATCHED_H
#define LIB_FILE_WATCHED_H

#include "lib/pagewise.h"

#define WATCHED_LEAST ((size_t)256 << 10) /* minimum size of a window, bytes */

/*
 * Has a disk thread map the OS_FOLIO that has the byte at off, which was found resident, as a pin
 * (PINS_WATCHED).  Does nothing while the loop has another window mapped, for a second after a failure, such
 * as the limit of pins_reserve_watched, and where the system cannot watch mappings.  Loop's thread.
 */
void watched_map(struct pw_file *, off_t off, uint64_t now_us);

#endif
