/*
 * evict: has the kernel forget the indirect blocks of files whose beginning stays in memory; counts the
 * pages of files that are in memory.
 */
#ifndef TESTS_FREEBSD_EVICT_H
#define TESTS_FREEBSD_EVICT_H

#include <stdbool.h>

/*
 * Reads 1 MiB of both files, and takes memory until the kernel has evicted their indirect blocks and
 * the rest.  This MiB is locked meanwhile.  Returns false if the block of `other` is still in memory, which it reads to
 * know: then that of `file` probably is as well.
 */
bool evict_indirect(const char *file, const char *other);

/* Returns the number of the file's pages that are in memory, or -1. */
long evict_resident(const char *file);

#endif
