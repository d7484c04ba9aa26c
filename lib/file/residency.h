/*
 * residency: is a range of a file in memory now, and fetching it if it is not.
 * Loop's thread.
 */
#ifndef LIB_FILE_RESIDENCY_H
#define LIB_FILE_RESIDENCY_H

#include "lib/pagewise.h"

/*
 * Microseconds that a yes holds: while the kernel takes pages from files, and while it
 * does not (reclaim.h), when only who gives pages back could make it wrong.
 */
#define RESIDENT_HOLDS	     1000
#define RESIDENT_HOLDS_QUIET 100000

/*
 * True if a sendfile of the range will not wait for the disk, as far as one can
 * know.  Never waits itself.  A yes, for whole pieces of 64 KiB, holds for RESIDENT_HOLDS.
 */
bool resident_ask(struct pw_file *, off_t off, off_t len);

/*
 * Widens a range that is to be fetched to whole 64 KiB pieces where only pieces
 * that were fetched as a whole can be asked about afterwards.
 */
void resident_round(const struct pw_file *, off_t *off, off_t *end);

/* A fetch of the range by the pool has ended well. */
void resident_fetched(struct pw_file *, off_t off, off_t len);

/* Pages of this file are given back now and then: its answers do not hold. */
void resident_drops(struct pw_file *);

/* Forgets what it knows of the file if a drop was announced since.  In the drop lock. */
void resident_dropped(struct pw_file *);

/* False: the answer of resident_ask is always no, a fetch has to do. */
bool resident_can_ask(const struct pw_file *);

/* The kernel's sendfile does not wait for its pages: os_native_send. */
bool resident_native(const struct pw_file *);

#endif
