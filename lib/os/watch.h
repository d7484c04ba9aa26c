/*
 * watch: mappings of resident pages.  When the kernel evicts a page, it removes the page from all mappings.  So
 * one call tells whether all pages of a mapping are still resident, to any user of the file.
 */
#ifndef LIB_OS_WATCH_H
#define LIB_OS_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Opens /proc/self/pagemap, by which os_watch_is_whole checks a mapping, and os_fetch_folio that
 * it is one folio (PAGEMAP_SCAN, Linux 6.7).  Returns a descriptor, or -errno where that is not possible.  Call it
 * before the process changes its user, which removes the right to read that file.
 */
int os_pagemap_open(void);

/*
 * Maps [off, off + len) of a file with all pages, and reads pages that are missing.  off is a multiple of the
 * page size.  Returns NULL on failure.  os_unmap unmaps.  Disk threads.
 */
void *os_watch_map(int fd, off_t off, size_t len);

/*
 * Returns true if all pages of [map, map + len), a part of such a mapping, are resident.  Takes 4 us for 512
 * KiB.  `pagemap` is a result of os_pagemap_open.
 */
bool os_watch_is_whole(int pagemap, const char *map, size_t len);

#endif
