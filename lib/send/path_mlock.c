/*
 * path_mlock: a disk thread fetches each window, maps it and locks it into memory (pins.h); the loop sends it by
 * sendfile(2) (thesis 2.3.4).  Locked pages are not evicted before they are sent.  Where RLIMIT_MEMLOCK or
 * the limit of pins is too small for all connections (up to 2 MiB each), works as nodiskio.
 */
#include <errno.h>

#include "lib/file/residency.h"
#include "lib/os/os.h"
#include "lib/send/holder.h"
#include "lib/send/path.h"
#include "lib/util/offset.h"

/*
 * Fetches the window before locking it.  A page fault would read around the missing page, up to
 * read_ahead_kb and beyond the window, and would hide the cause of a read error.
 */
static int
mlock_run(struct pw_send *s)
{
	const struct pins_key key = pins_key(s->snd_file);
	struct pins *ps = pool_pins(s->snd_loop->lp_pool);
	off_t off = send_priv(s)->ss_from;
	size_t len = (size_t)(send_priv(s)->ss_asked - off);
	int fd = s->snd_file->fil_fd;
	int error = pool_read(file_priv(s->snd_file)->fp_device, fd, off, len,
	    send_priv(s)->ss_how != FETCH_PAGES);
	struct os_folio fo = {.fo_len = len, .fo_pipe = -1};

	pins_reap(ps, key.pk_dev);
	if (error != 0 || !pins_reserve(ps, len))
		return error;
	fo.fo_map = os_map(fd, off, len);
	if (fo.fo_map != NULL && os_lock(fo.fo_map, len) == 0) {
		pins_add(ps, &key, off, &fo, PINS_UNMARKED);
		return 0;
	}
	if (fo.fo_map != NULL)
		os_unmap(fo.fo_map, len);
	pins_refuse(ps, len);
	return 0;
}

static void
mlock_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);

	send_pending_end(s, w->wt_error);
	if (w->wt_error == 0)
		send_fetch_end(s, s->snd_off, send_priv(s)->ss_asked);
	s->snd_done(s);
}

/* Never waits for budget, since locked pages cannot be evicted. */
static void
mlock_take_room(struct pw_send *s, size_t len)
{
	if (send_room_take(s, len, NULL) == 0)
		holder_add(s, len);
	else
		send_priv(s)->ss_how = FETCH_PAGES;
}

static enum pw_send_status
mlock_lock(struct pw_send *s)
{
	off_t from = s->snd_off - s->snd_off % (off_t)os_page_size(), end;
	int error;

	send_unpin(s);
	send_window_choose(s);
	end = offset_next(from, OS_FOLIO, send_window_end(s, s->snd_off));
	send_priv(s)->ss_from = from;
	send_priv(s)->ss_asked = end;
	mlock_take_room(s, (size_t)(end - from));
	send_fetch_begin(s, end);
	send_pending_begin(s, mlock_done);
	error = send_on_pool(s, JOB_LONG, mlock_run);
	return error == 0 ? PW_SEND_PENDING : send_pending_fail(s, error);
}

/* Is a function of its own, so that no window is fetched ahead: it would not be locked. */
static int
mlock_fetch(struct pw_send *s, off_t off, size_t len)
{
	return send_fetch_by_pool(s, off, len);
}

/* Sends files whose residency cannot be checked from copies, since the kernel may read even locked pages again. */
static enum pw_send_status
mlock_step(struct pw_send *s)
{
	if (s->snd_len > 0 && send_priv(s)->ss_own == NULL &&
	    send_priv(s)->ss_asked <= s->snd_off &&
	    residency_can_ask(s->snd_file))
		return mlock_lock(s);
	return send_prefetched(s, mlock_fetch, send_by_sendfile);
}

const struct pw_send_path send_mlock = {
    .path_name = "mlock",
    .path_step = mlock_step,
    .path_prefetches = true,
};
