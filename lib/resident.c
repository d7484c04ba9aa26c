/*
 * resident: see resident.h.
 *
 * preadv2(RWF_NOWAIT) on a page that is not in memory is not innocent: since
 * Linux 5.9 it starts a read, and to do that the file system may have to read its
 * block map first, and waits for that: 197 ms were seen on a busy disk for an
 * ext4 file with more extents than fit into its inode (docs/design.md).  So it is
 * asked only where cachestat has just said that the pages are there, or, for
 * files that are not ours, within 64 KiB pieces that a pool thread has read
 * before through this descriptor, because their block map is in memory then.
 * fil_mapped has a bit for each such piece.
 */
#include <errno.h>
#include <stdlib.h>

#include "file.h"
#include "loop.h"
#include "os.h"
#include "resident.h"

static size_t
piece(off_t off)
{
	return (size_t)(off / (off_t)OS_SAMPLE);
}

static bool
mapped(const struct pw_file *file, off_t off, off_t len)
{
	size_t i, last = piece(off + len - 1);

	if (file->fil_mapped == NULL)
		return false;
	for (i = piece(off); i <= last; i++)
		if ((file->fil_mapped[i / 8] >> (i % 8) & 1) == 0)
			return false;
	return true;
}

/* A byte in every 64 KiB piece, and the last one.  The first that is refused, or -1. */
static off_t
sample(const struct pw_file *file, off_t off, off_t len)
{
	off_t at, end = off + len;

	for (at = off; at < end; at += (off_t)OS_SAMPLE)
		if (os_nowait(file->fil_fd, at) != 1)
			return at;
	return os_nowait(file->fil_fd, end - 1) == 1 ? -1 : end - 1;
}

/* May preadv2(RWF_NOWAIT) be asked about the range? */
static bool
innocent(struct pw_file *file, off_t off, off_t len)
{
	int present;

	if (file->fil_cachestat) {
		present = os_cachestat(file->fil_fd, off, (size_t)len);
		if (present >= 0)
			return present == 1;
		file->fil_cachestat = false;
	}
	return mapped(file, off, len);
}

/* Without a map there is no way to ask. */
static bool
ask_mincore(struct pw_file *file, off_t off, off_t len)
{
	if (file->fil_map == NULL)
		file->fil_map = os_map(file->fil_fd, 0, (size_t)file->fil_size);
	if (file->fil_map == NULL) {
		file->fil_ask = OS_ASK_FETCH;
		return false;
	}
	return os_mincore(file->fil_map, off, (size_t)len) == 1;
}

static bool
ask(struct pw_file *file, off_t off, off_t len)
{
	switch ((enum os_ask)file->fil_ask) {
	case OS_ASK_NEVER_COLD:
		return true;
	case OS_ASK_NOWAIT:
		if (!innocent(file, off, len))
			return false;
		file->fil_refused = sample(file, off, len);
		return file->fil_refused < 0;
	case OS_ASK_MINCORE:
		return ask_mincore(file, off, len);
	case OS_ASK_FETCH:
	case OS_ASK_NATIVE:
	case OS_ASK_UNKNOWN:
		break;
	}
	return false;
}

/*
 * What many ask for is asked for once a millisecond: it may be evicted as well
 * between any answer and the sendfile that follows.
 */
bool
resident_ask(struct pw_file *file, off_t off, off_t len)
{
	uint64_t now = loop_now();

	if (off >= file->fil_known && off + len <= file->fil_known_end &&
	    now - file->fil_known_at < RESIDENT_HOLDS)
		return true;
	file->fil_refused = -1;
	if (!ask(file, off, len))
		return false;
	if (file->fil_known_end >= 0) {
		file->fil_known = off;
		file->fil_known_end = off + len;
		file->fil_known_at = now;
	}
	return true;
}

/* Times change before the bytes do: as they were after a copy, so it was before. */
static int
same_as_before(const struct pw_file *file)
{
	struct stat st;

	if (fstat(file->fil_fd, &st) == -1)
		return -errno;
	return file_unchanged(file, &st) ? 0 : -ESTALE;
}

/* What is behind the end is not in memory either. */
static int
why_not(const struct pw_file *file)
{
	int error = resident_can_ask(file) ? same_as_before(file) : 0;

	return error == 0 ? -EAGAIN : error;
}

/* mincore's yes is no promise: what it was of may be gone when it is read. */
static bool
may_copy(struct pw_file *file, off_t off, off_t len)
{
	return file->fil_ask == OS_ASK_NOWAIT
		   ? innocent(file, off, len)
		   : file->fil_ask == OS_ASK_NEVER_COLD;
}

int
pw_file_copy(struct pw_file *file, off_t off, void *to, size_t len)
{
	bool wait = file->fil_ask == OS_ASK_NEVER_COLD;
	char *next = to;
	long n;

	if (len == 0)
		return 0;
	if (!may_copy(file, off, (off_t)len))
		return why_not(file);
	for (; len > 0; next += n, off += n, len -= (size_t)n) {
		n = os_read(file->fil_fd, off, next, len, wait);
		if (n <= 0)
			return n == 0 ? -ESTALE : (int)n;
	}
	return same_as_before(file);
}

void
resident_drops(struct pw_file *file)
{
	file->fil_known_end = -1;
}

bool
resident_can_ask(const struct pw_file *file)
{
	return file->fil_ask != OS_ASK_FETCH && file->fil_ask != OS_ASK_NATIVE;
}

bool
resident_native(const struct pw_file *file)
{
	return file->fil_ask == OS_ASK_NATIVE ||
	       file->fil_ask == OS_ASK_NEVER_COLD;
}

/*
 * Pieces that were fetched only in part may have a block map that is not in
 * memory.  Without memory for the bits there is no way to ask.
 */
void
resident_fetched(struct pw_file *file, off_t off, off_t len)
{
	off_t end = off + len;
	size_t i, last;

	if (file->fil_ask != OS_ASK_NOWAIT || file->fil_cachestat)
		return;
	if (file->fil_mapped == NULL)
		file->fil_mapped = calloc(piece(file->fil_size) / 8 + 1, 1);
	if (file->fil_mapped == NULL) {
		file->fil_ask = OS_ASK_FETCH;
		return;
	}
	last = end >= file->fil_size ? piece(end - 1) + 1 : piece(end);
	for (i = piece(off + (off_t)OS_SAMPLE - 1); i < last; i++)
		file->fil_mapped[i / 8] |= (uint8_t)(1 << i % 8);
}

void
resident_round(const struct pw_file *file, off_t *off, off_t *end)
{
	if (file->fil_ask != OS_ASK_NOWAIT || file->fil_cachestat)
		return;
	*off -= *off % (off_t)OS_SAMPLE;
	*end += (off_t)OS_SAMPLE - 1;
	*end -= *end % (off_t)OS_SAMPLE;
	if (*end > file->fil_size)
		*end = file->fil_size;
}
