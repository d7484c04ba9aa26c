/*
 * residency: see residency.h.
 *
 * preadv2(RWF_NOWAIT) may wait if a page is not resident.  Since Linux 5.9 the call then starts a
 * read, and waits for the block map if the file system must read that first.  This took 197 ms on a
 * busy disk, for an ext4 file with more extents than fit into its inode (docs/design/residency.md).
 * So RWF_NOWAIT is used only after cachestat, or on older kernels mincore, reported the pages as
 * present.  Both report residency only to the owner of a file.  On files of other owners RWF_NOWAIT
 * is used only for 64 KiB pieces that a disk thread has read before through this descriptor, since
 * the block map of these pieces is in memory; fp_mapped has a bit for each such piece.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/disk/completion.h"
#include "lib/disk/drop_lock.h"
#include "lib/disk/pool.h"
#include "lib/disk/quiet.h"
#include "lib/disk/reclaim.h"
#include "lib/file/file.h"
#include "lib/file/residency.h"
#include "lib/file/verified.h"
#include "lib/os/meter.h"
#include "lib/os/os.h"
#include "lib/util/clock.h"
#include "lib/util/offset.h"

/* Maximum size of a file with fp_mapped, bytes; fp_mapped of such a file takes 8 MiB. */
#define MAPPED_MOST ((off_t)4 << 40)

static size_t
residency_piece(off_t off)
{
	return (size_t)(off / (off_t)OS_SAMPLE);
}

bool
residency_is_by_pieces(const struct pw_file *file)
{
	return file_priv(file)->fp_ask == OS_ASK_NOWAIT &&
	       !file_priv(file)->fp_cachestat && !file_priv(file)->fp_mincore;
}

static bool
residency_map(const struct pw_file *file, off_t off, off_t len)
{
	size_t i, last = residency_piece(off + len - 1);

	if (file_priv(file)->fp_mapped == NULL)
		return false;
	for (i = residency_piece(off); i <= last; i++)
		if ((file_priv(file)->fp_mapped[i / 8] >> (i % 8) & 1) == 0)
			return false;
	return true;
}

/*
 * Tries to read a byte of each page.  Returns the first byte that is refused, or -1.  A call tries two pages: the
 * last byte of one, and the first byte of the next.
 */
static off_t
residency_try_each(const struct pw_file *file, off_t off, off_t end)
{
	const off_t page = (off_t)os_page_size();
	off_t at, edge;
	int n, len;

	for (at = off; at < end; at = offset_next(edge, page, end)) {
		edge = offset_next(at, page, end);
		len = edge < end ? 2 : 1;
		n = os_nowait(file->fil_fd, edge - 1, (size_t)len);
		if (n != len)
			return n == 1 ? edge : at;
	}
	return -1;
}

/*
 * Tries the first byte of each piece and the last byte of the range, where cachestat counted all pages as present.
 * Tries each page where pages may be in flight, which cachestat counts too, and a call that waits for them may send
 * them (residency_stays).  Returns as residency_try_each does.
 */
static off_t
residency_try_some(const struct pw_file *file, off_t off, off_t end)
{
	off_t at;

	if (file_priv(file)->fp_each && !file_priv(file)->fp_quiet)
		return residency_try_each(file, off, end);
	for (at = off; at < end; at = offset_next(at, VERIFIED_PIECE, end))
		if (os_nowait(file->fil_fd, at, 1) != 1)
			return at;
	return os_nowait(file->fil_fd, end - 1, 1) == 1 ? -1 : end - 1;
}

/*
 * Checks by mincore on a mapping of the file, or switches to the pool if the file cannot be mapped.
 */
static bool
residency_ask_mincore(struct pw_file *file, off_t off, off_t len)
{
	if (file_priv(file)->fp_map == NULL)
		file_priv(file)->fp_map =
		    os_map(file->fil_fd, 0, (size_t)file->fil_size);
	if (file_priv(file)->fp_map == NULL) {
		file_priv(file)->fp_ask = OS_ASK_FETCH;
		return false;
	}
	return os_mincore(file_priv(file)->fp_map, off, (size_t)len) == 1;
}

/* Returns true if RWF_NOWAIT may check the range without starting a read. */
static bool
residency_may_use_nowait(struct pw_file *file, off_t off, off_t len)
{
	int present;

	if (file_priv(file)->fp_cachestat) {
		present = os_cachestat(file->fil_fd, off, (size_t)len);
		if (present >= 0)
			return present == 1;
		file_priv(file)->fp_cachestat = false;
	}
	return file_priv(file)->fp_mincore
		   ? residency_ask_mincore(file, off, len)
		   : residency_map(file, off, len);
}

static bool
residency_ask_nowait(struct pw_file *file, off_t off, off_t len)
{
	off_t end = off + len;

	if (!residency_may_use_nowait(file, off, len))
		return false;
	if (!file_priv(file)->fp_mincore)
		file_priv(file)->fp_refused =
		    file_priv(file)->fp_cachestat
			? residency_try_some(file, off, end)
			: residency_try_each(file, off, end);
	return file_priv(file)->fp_refused < 0;
}

static bool
residency_ask_range(struct pw_file *file, off_t off, off_t len)
{
	switch ((enum os_ask)file_priv(file)->fp_ask) {
	case OS_ASK_NEVER_COLD:
		return true;
	case OS_ASK_NOWAIT:
		return residency_ask_nowait(file, off, len);
	case OS_ASK_MINCORE:
		return residency_ask_mincore(file, off, len);
	case OS_ASK_FETCH:
	case OS_ASK_NATIVE:
	case OS_ASK_UNKNOWN:
		break;
	}
	return false;
}

/*
 * Returns the end of the bytes that a failed check found resident: the refused byte if each page was
 * checked, else off.
 */
static off_t
residency_known_end(const struct pw_file *file, off_t off)
{
	return residency_is_by_pieces(file) && file_priv(file)->fp_refused > off
		   ? file_priv(file)->fp_refused
		   : off;
}

off_t
residency_piece_end(const struct pw_file *file, off_t end)
{
	return end < file->fil_size
		   ? offset_round_up(end, VERIFIED_PIECE, file->fil_size)
		   : file->fil_size;
}

/*
 * Checks as residency_ask_range does, first with the end rounded up to a whole piece.  Sets *end to the
 * end of the range that was checked last.
 */
static bool
residency_ask_pieces(struct pw_file *file, off_t off, off_t *end)
{
	off_t whole = residency_piece_end(file, *end);

	if (whole > *end && residency_ask_range(file, off, whole - off)) {
		*end = whole;
		return true;
	}
	return residency_ask_range(file, off, *end - off);
}

void
residency_unused(const struct pw_file *file, off_t off, off_t end)
{
	const struct file_private *fp = file_priv(file);

	verified_unuse(fp->fp_loop->lp_verified, fp->fp_number, off, end);
}

/* Returns the time after which pages were used that are still resident. */
static uint64_t
residency_used_since(const struct pw_file *file, uint64_t now)
{
	return now - reclaim_used_stay(
			 pool_reclaim(file_priv(file)->fp_loop->lp_pool), now);
}

/* Skips pieces that were found resident within RESIDENCY_HOLDS, or RESIDENCY_HOLDS_QUIET, and pieces in use. */
bool
residency_ask(struct pw_file *file, off_t off, off_t len)
{
	struct pw_loop *lp = file_priv(file)->fp_loop;
	uint64_t now = clock_now(), holds = RESIDENCY_HOLDS;
	off_t end = off + len;
	bool yes;

	file_priv(file)->fp_refused = -1;
	if (!residency_can_ask(file) || residency_native(file))
		return residency_ask_range(file, off, len);
	file_priv(file)->fp_quiet = quiet_ask(lp->lp_pool, now);
	/* Remembers no check if the library drops pages of the file. */
	if (file_priv(file)->fp_drops > 0) {
		yes = residency_ask_range(file, off, len);
		if (!yes)
			residency_unused(file, off, end);
		return yes;
	}
	if (file_priv(file)->fp_quiet)
		holds = RESIDENCY_HOLDS_QUIET;
	verified_trim(lp->lp_verified, file_priv(file)->fp_number, &off, &end,
	    now - holds, residency_used_since(file, now));
	if (off == end)
		return true;
	yes = residency_ask_pieces(file, off, &end);
	if (!yes) {
		residency_unused(file, off, end);
		end = residency_known_end(file, off);
	}
	if (off < end)
		verified_note(lp->lp_verified, file_priv(file)->fp_number, off,
		    end, file->fil_size, now);
	return yes;
}

bool
residency_in_use(const struct pw_file *file, off_t off, off_t *end)
{
	const struct file_private *fp = file_priv(file);

	return verified_is_used(fp->fp_loop->lp_verified, fp->fp_number, off,
	    end, residency_used_since(file, clock_now()));
}

bool
residency_stays(const struct pw_file *file, off_t off, off_t *end)
{
	const struct file_private *fp = file_priv(file);

	return fp->fp_quiet || fp->fp_ask != OS_ASK_NOWAIT ||
	       residency_in_use(file, off, end);
}

void
residency_used(const struct pw_file *file, off_t off, off_t end)
{
	const struct file_private *fp = file_priv(file);

	if (!fp->fp_quiet && fp->fp_ask == OS_ASK_NOWAIT)
		verified_use(fp->fp_loop->lp_verified, fp->fp_number, off, end,
		    file->fil_size, clock_now());
}

/*
 * Checks the file as file_check does, but also compares ctime, since the caller may keep the copy.
 */
static int
residency_check_version(const struct pw_file *file)
{
	struct stat st;

	meter_call(METER_FSTAT);
	if (fstat(file->fil_fd, &st) == -1)
		return -errno;
	return file_unchanged(file, &st) ? 0 : -ESTALE;
}

/* Returns -ESTALE if the file changed, or -EAGAIN if a page is not resident. */
static int
residency_copy_error(const struct pw_file *file)
{
	int error = residency_can_ask(file) ? residency_check_version(file) : 0;

	return error == 0 ? -EAGAIN : error;
}

/*
 * Returns true if the range can be read without waiting.  Returns false for files that only mincore
 * can check, since a page may be evicted after the check.
 */
static bool
residency_may_copy(struct pw_file *file, off_t off, off_t len)
{
	return file_priv(file)->fp_ask == OS_ASK_NOWAIT
		   ? residency_may_use_nowait(file, off, len)
		   : file_priv(file)->fp_ask == OS_ASK_NEVER_COLD;
}

static int
residency_copy(struct pw_file *file, off_t off, void *to, size_t len)
{
	bool wait = file_priv(file)->fp_ask == OS_ASK_NEVER_COLD;
	char *next = to;
	long n;

	if (!residency_may_copy(file, off, (off_t)len))
		return residency_copy_error(file);
	for (; len > 0; next += n, off += n, len -= (size_t)n) {
		n = os_read(file->fil_fd, off, next, len, wait);
		if (n <= 0)
			return n == 0 ? -ESTALE : (int)n;
	}
	return residency_check_version(file);
}

bool
residency_may_drop(const struct pw_file *file)
{
	return file_priv(file)->fp_drops > 0 ||
	       drop_lock_drops(file_priv(file)->fp_drop_lock) != 0;
}

/* Copies under the drop lock, so that no page is dropped between check and read. */
int
pw_file_copy(struct pw_file *file, off_t off, void *to, size_t len)
{
	int error;

	if (len == 0)
		return 0;
	if (!residency_may_drop(file))
		return residency_copy(file, off, to, len);
	if (!drop_lock_enter_send(file_priv(file)->fp_drop_lock))
		return -EAGAIN;
	error = residency_copy(file, off, to, len);
	drop_lock_leave(file_priv(file)->fp_drop_lock);
	return error;
}

/*
 * Returns true if sendfile(2) of the whole file will not wait, and nothing requires a copy: no disk thread may drop
 * pages, and the loop is not bounded.
 */
static bool
residency_may_send(struct pw_file *file)
{
	const struct file_private *fp = file_priv(file);
	off_t end = file->fil_size;

	return fp->fp_ask == OS_ASK_NOWAIT && !device_copies(fp->fp_device) &&
	       atomic_load_explicit(
		   &fp->fp_loop->lp_bound, memory_order_relaxed) == 0 &&
	       !residency_may_drop(file) &&
	       residency_ask(file, 0, file->fil_size) &&
	       residency_stays(file, 0, &end) && end == file->fil_size;
}

int
residency_send(
    struct pw_file *file, int sock, const char *head, size_t len, size_t *sent)
{
	size_t n = 0;
	int error;

	*sent = 0;
	if (!residency_may_send(file) || residency_check_version(file) != 0)
		return -EBUSY;
	error = os_send(sock, head, len, true, sent);
	if (error != 0 || *sent < len)
		return error;
	error = os_sendfile(sock, file->fil_fd, 0, (size_t)file->fil_size, &n);
	*sent += n;
	residency_used(file, 0, (off_t)n);
	return error;
}

void
residency_drops(struct pw_file *file)
{
	file_priv(file)->fp_drops++;
}

void
residency_drops_end(struct pw_file *file)
{
	file_priv(file)->fp_drops--;
}

void
residency_no_readahead(struct pw_file *file)
{
	if (file_priv(file)->fp_random || !residency_can_ask(file))
		return;
	file_priv(file)->fp_random = true;
	os_advise_random(file->fil_fd, true);
}

bool
residency_ask_alone(struct pw_file *file, off_t off, off_t len)
{
	bool yes;

	if (!residency_may_drop(file))
		return residency_ask(file, off, len);
	if (!drop_lock_enter_send(file_priv(file)->fp_drop_lock))
		return false;
	residency_dropped(file);
	yes = residency_ask(file, off, len);
	drop_lock_leave(file_priv(file)->fp_drop_lock);
	return yes;
}

int
pw_resident(struct pw_file *file, off_t off, size_t len)
{
	if (file->fil_fd == -1 || off < 0 || len == 0 ||
	    off >= file->fil_size || len > (uint64_t)(file->fil_size - off))
		return -EINVAL;
	if (!residency_can_ask(file))
		return -EOPNOTSUPP;
	residency_no_readahead(file);
	return residency_ask_alone(file, off, (off_t)len);
}

void
residency_dropped(struct pw_file *file)
{
	uint64_t drops = drop_lock_drops(file_priv(file)->fp_drop_lock);

	if (drops == file_priv(file)->fp_dropped)
		return;
	file_priv(file)->fp_dropped = drops;
	file_priv(file)->fp_number =
	    verified_number(file_priv(file)->fp_loop->lp_verified);
}

bool
residency_can_ask(const struct pw_file *file)
{
	return file_priv(file)->fp_ask != OS_ASK_FETCH &&
	       file_priv(file)->fp_ask != OS_ASK_NATIVE;
}

bool
residency_native(const struct pw_file *file)
{
	return file_priv(file)->fp_ask == OS_ASK_NATIVE ||
	       file_priv(file)->fp_ask == OS_ASK_NEVER_COLD;
}

/*
 * Notes whole pieces only: the block map of other pieces may not be in memory.
 */
void
residency_fetched(struct pw_file *file, off_t off, off_t len)
{
	off_t end = off + len;
	size_t i, last;

	if (!residency_is_by_pieces(file))
		return;
	if (file_priv(file)->fp_mapped == NULL && file->fil_size <= MAPPED_MOST)
		file_priv(file)->fp_mapped =
		    calloc(residency_piece(file->fil_size) / 8 + 1, 1);
	if (file_priv(file)->fp_mapped == NULL) {
		file_priv(file)->fp_ask = OS_ASK_FETCH;
		return;
	}
	last = end >= file->fil_size ? residency_piece(end - 1) + 1
				     : residency_piece(end);
	i = residency_piece(off) + (off % (off_t)OS_SAMPLE != 0);
	for (; i < last; i++)
		file_priv(file)->fp_mapped[i / 8] |= (uint8_t)(1 << i % 8);
}

void
residency_round(const struct pw_file *file, off_t *off, off_t *end)
{
	if (!residency_is_by_pieces(file))
		return;
	*off -= *off % (off_t)OS_SAMPLE;
	*end = *end < file->fil_size
		   ? offset_round_up(*end, OS_SAMPLE, file->fil_size)
		   : file->fil_size;
}
