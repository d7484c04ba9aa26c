/*
 * residency: checks whether a range of a file is resident.  Loop's thread.
 */
#ifndef LIB_FILE_RESIDENCY_H
#define LIB_FILE_RESIDENCY_H

#include "lib/pagewise.h"

/*
 * Microseconds for which a successful check holds: while the kernel reclaims pages of files, and while it
 * does not (reclaim.h), when only an explicit drop can invalidate it.
 */
#define RESIDENCY_HOLDS	      1000
#define RESIDENCY_HOLDS_QUIET 100000

/*
 * Returns true if a sendfile(2) of the range will not wait for the disk, as far as can be known.  Does not
 * wait.  A successful check of whole pieces of 64 KiB holds for RESIDENCY_HOLDS.
 */
bool residency_ask(struct pw_file *, off_t off, off_t len);

/*
 * Widens a range to whole 64 KiB pieces before it is fetched, where a later check can only cover pieces that
 * were fetched as a whole.
 */
void residency_round(const struct pw_file *, off_t *off, off_t *end);

/* Call after the pool has fetched the range without an error. */
void residency_fetched(struct pw_file *, off_t off, off_t len);

/* Call when pages of the file will be dropped: residency checks then hold for one step only. */
void residency_drops(struct pw_file *);

/* Forgets earlier checks of the file if a drop was announced since.  Call with the drop lock held. */
void residency_dropped(struct pw_file *);

/* Returns false if residency cannot be checked, so that residency_ask is always false. */
bool residency_can_ask(const struct pw_file *);

/* Returns true if sendfile(2) does not wait for pages of the file (os_native_send). */
bool residency_native(const struct pw_file *);

#endif
