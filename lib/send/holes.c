/*
 * holes: finds the holes of sparse files, and sends their zeros from memory.  sendfile(2) of a hole
 * would first look up the block map, which may wait for the disk, and then fill the page cache with
 * zeros.
 *
 * Before a window of a sparse file is read, a disk thread checks whether a hole of at least
 * FILE_HOLE bytes, or data, begins at the first byte of the window, and where that hole or data
 * ends (ss_extent).  Windows end before such a hole, and no window behind the hole is read ahead.
 * If a program writes into the hole while its zeros are sent, mtime changes.  The loop compares
 * mtime before each chunk, and then treats the file as any other file that changes.
 */
#include "lib/file/file.h"
#include "lib/send/path.h"
#include "lib/send/window_size.h"
#include "lib/util/offset.h"

/* Maximum bytes that one search passes over: data, and holes of less than FILE_HOLE. */
#define HOLES_SPAN (8 * WINDOW_MOST)

/*
 * Returns true if the hole [off, data) is sent as zeros: it has FILE_HOLE bytes or more, or reaches
 * `end`, the end of the range.
 */
static bool
holes_is_hole(off_t off, off_t data, off_t end)
{
	return data >= end || data - off >= FILE_HOLE;
}

/*
 * Returns the start of the first hole behind the data at `off` that is sent as zeros
 * (holes_is_hole).  If no such hole begins within HOLES_SPAN bytes, returns the next byte of data
 * behind these bytes, or `end`.
 */
static off_t
holes_data_end(int fd, off_t off, off_t end)
{
	off_t most = offset_add(off, HOLES_SPAN, end);
	off_t at = off, hole;

	while (at >= 0 && at < most) {
		hole = os_seek_hole(fd, at);
		if (hole <= at || hole >= end)
			return end;
		at = os_seek_data(fd, hole);
		if (at >= 0 && holes_is_hole(hole, at, end))
			return hole;
	}
	return at < 0 ? end : at;
}

/* Sets ss_extent and ss_hole.  A file system that reports no holes reports data up to the end. */
static int
holes_run(struct pw_send *s)
{
	int fd = s->snd_file->fil_fd;
	off_t off = s->snd_off, end = off + s->snd_len;
	off_t data = os_seek_data(fd, off);
	bool hole = data >= 0 && holes_is_hole(off, data, end);

	/* send_fetch_how needs to know the device's read-ahead before the first window. */
	device_step(file_priv(s->snd_file)->fp_device);
	if (hole)
		end = data < end ? data : end;
	else if (data >= 0)
		end = holes_data_end(fd, data, end);
	send_priv(s)->ss_hole = hole;
	send_priv(s)->ss_extent = end;
	return 0;
}

static void
holes_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);

	send_pending_end(s, w->wt_error);
	s->snd_done(s);
}

bool
send_hole_may_begin(const struct pw_send *s, off_t off)
{
	struct pw_file *file = s->snd_file;
	const struct pins_key key = pins_key(file);

	return file_priv(file)->fp_sparse && off >= send_priv(s)->ss_extent &&
	       pool_is_settled(&key.pk_version) && file_is_fresh(file);
}

enum pw_send_status
send_hole_find(struct pw_send *s)
{
	int error;

	send_pending_begin(s, holes_done);
	error = send_on_pool(s, JOB_SHORT, holes_run);
	return error == 0 ? PW_SEND_PENDING : send_pending_fail(s, error);
}

bool
send_hole_is_next(struct pw_send *s)
{
	if (s->snd_len == 0 || send_hole_end(s) == s->snd_off)
		return false;
	if (file_is_fresh(s->snd_file))
		return true;
	send_priv(s)->ss_hole = false;
	send_priv(s)->ss_extent = -1;
	return false;
}

enum pw_send_status
send_hole(struct pw_send *s)
{
	off_t end = send_hole_end(s), chunk = send_chunk_end(s);

	return send_window(s, chunk < end ? chunk : end, send_copied);
}
