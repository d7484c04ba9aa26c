/*
 * residency: checks whether a range of a file is resident.  The functions run on the loop's
 * thread.
 */
#ifndef LIB_FILE_RESIDENCY_H
#define LIB_FILE_RESIDENCY_H

#include "lib/pagewise.h"

/*
 * Time for which a successful check stays valid, microseconds.  RESIDENCY_HOLDS_QUIET applies while the
 * kernel reclaims no pages of files (reclaim.h); then only an explicit drop can invalidate a check.
 */
#define RESIDENCY_HOLDS	      1000
#define RESIDENCY_HOLDS_QUIET 100000

/*
 * Returns true if a sendfile(2) of the range will not wait for the disk, as far as the system can report
 * that.  Does not wait.  A successful check of whole pieces of 64 KiB holds for RESIDENCY_HOLDS, or
 * RESIDENCY_HOLDS_QUIET; pieces in use need none.
 */
bool residency_ask(struct pw_file *, off_t off, off_t len);

/*
 * residency_in_use returns true if the loop sent all pages of [off, *end) twice a moment ago, so that the kernel evicts
 * others first.  residency_stays returns true if pages that residency_ask found resident just now will also be resident
 * when sendfile(2) reaches them: they are in use, or the kernel evicts none and no read is in flight.  Otherwise only
 * a copy (RWF_NOWAIT) never waits.  Both lower *end to the end of the pages of which the same is true.
 * residency_used notes which bytes were sent.  residency_unused forgets that, since a page of them is missing: call it before a
 * fetch; a check that fails does.
 */
bool residency_in_use(const struct pw_file *, off_t off, off_t *end);
bool residency_stays(const struct pw_file *, off_t off, off_t *end);
void residency_used(const struct pw_file *, off_t off, off_t end);
void residency_unused(const struct pw_file *, off_t off, off_t end);

/*
 * Returns the end of the 64 KiB piece that ends at `end` or contains it, at most the file's size: checks are
 * noted for whole pieces.
 */
off_t residency_piece_end(const struct pw_file *, off_t end);

/*
 * Widens a range to whole 64 KiB pieces before it is fetched, if later checks of the file cover
 * only pieces that were fetched as a whole.
 */
void residency_round(const struct pw_file *, off_t *off, off_t *end);

/* Notes that a fetch has read the range, for later checks.  Call it after a fetch without an error. */
void residency_fetched(struct pw_file *, off_t off, off_t len);

/*
 * residency_drops makes residency checks of the file valid for one step only; call it when its pages will be
 * dropped.  residency_drops_end ends that; call it once for each residency_drops, after the drop.
 */
void residency_drops(struct pw_file *);
void residency_drops_end(struct pw_file *);

/*
 * Returns true if a disk thread, of any loop, may drop pages of the file.  Then a check and the call that sends
 * need the drop lock (lib/disk/drop_lock.h).
 */
bool residency_may_drop(const struct pw_file *);

/*
 * residency_ask for a check that no send follows.  Holds the drop lock, so that no page is dropped before all
 * pages are checked.  Returns false if a disk thread has the lock.
 */
bool residency_ask_alone(struct pw_file *, off_t off, off_t len);

/*
 * Sends the head and then the whole file, by sendfile(2), if the file is resident and has not changed.  Sets *sent to
 * the bytes that the socket accepted.  Returns 0, -EBUSY if the caller must send a copy (nothing was sent), -EAGAIN if the
 * socket is full, or another -errno.
 */
int residency_send(
    struct pw_file *, int sock, const char *head, size_t len, size_t *sent);

/*
 * Switches kernel read-ahead off for fil_fd if residency can be checked: otherwise a call on the loop might
 * start a read.
 */
void residency_no_readahead(struct pw_file *);

/*
 * Forgets earlier checks of the file if a drop was announced since the last call.  Call with the drop
 * lock held.
 */
void residency_dropped(struct pw_file *);

/* Returns true if residency can be checked; if not, residency_ask always returns false. */
bool residency_can_ask(const struct pw_file *);

/*
 * Returns true if RWF_NOWAIT is the only residency check of the file.  A check of a page that is not resident
 * starts to read it, so that its window can no longer be read as one folio.
 */
bool residency_is_by_pieces(const struct pw_file *);

/* Returns true if sendfile(2) does not wait for pages of the file (os_native_send). */
bool residency_native(const struct pw_file *);

#endif
