/*
 * huge: memory in pages of a known size, and hugetlb pages that are there only
 * while a ladder runs: /proc/sys/vm/nr_hugepages gets its old value back at
 * exit and on SIGINT, SIGTERM and SIGHUP.
 */
#ifndef BENCH_LADDERS_HUGE_H
#define BENCH_LADDERS_HUGE_H

#include <stdbool.h>
#include <stddef.h>

enum page_kind { PAGES_SMALL, PAGES_TRANSPARENT, PAGES_HUGETLB, PAGES_GIGANTIC };

#define HUGE_GIGANTIC ((size_t)1 << 30) /* bytes of a page of PAGES_GIGANTIC */

size_t huge_page(void);	  /* bytes */
size_t huge_memory(void); /* bytes that may be had without swapping */

/* False, and why, if the kernel never makes huge pages by itself. */
bool huge_transparent(char *why, size_t);

/*
 * Return true if bytes are free in hugetlb pages of the default size, or of
 * 1 GiB.  Make them now if root.  words: what was found.
 */
bool huge_reserve(size_t bytes, char *words, size_t);
bool huge_reserve_gigantic(size_t bytes, char *words, size_t);
void huge_release(void);

/* For a child: what the parent reserved is not its to give back. */
void huge_disown(void);

/*
 * Memory of at least size bytes on a huge page's boundary, or NULL and errno.
 * Huge pages that do not come by themselves show in huge_missing only after
 * they were touched.
 */
void *huge_map(enum page_kind, bool populate, size_t size);
void huge_unmap(void *, size_t size);

/* Returns the bytes that huge_map maps; huge_unmap needs them for PAGES_GIGANTIC. */
size_t huge_size(enum page_kind, size_t size);

/* Bytes of the mapping that are not in transparent huge pages. */
size_t huge_missing(const void *, size_t size);

#endif
