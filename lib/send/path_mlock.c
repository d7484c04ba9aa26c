/*
 * path_mlock: a disk thread fetches the window, maps it and locks it into memory; the loop sends it by
 * sendfile(2) and unmaps it (thesis 2.3.4).  Locked pages are not evicted before they are sent.  Where
 * RLIMIT_MEMLOCK is too small for all connections (up to 2 MiB each), pages are only fetched.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/file/residency.h"
#include "lib/os/os.h"
#include "lib/send/holder.h"
#include "lib/send/path.h"
#include "lib/util/offset.h"

#define LOCKED_MAX OS_FOLIO

struct locked {
	void *lk_map; /* mapping of the window, or NULL */
	off_t lk_off; /* start of the window, rounded down to a page */
	off_t lk_end;
};

static void
mlock_release(struct locked *lk)
{
	if (lk->lk_map != NULL)
		os_unmap(lk->lk_map, (size_t)(lk->lk_end - lk->lk_off));
	lk->lk_map = NULL;
}

/*
 * Fetches the window before locking it.  A page fault would read around the missing page, up to
 * read_ahead_kb and beyond the window, and would hide the cause of a read error.
 */
static int
mlock_run(struct pw_send *s)
{
	struct locked *lk = send_priv(s)->ss_own;
	size_t len = (size_t)(lk->lk_end - lk->lk_off);
	int fd = s->snd_file->fil_fd;
	int error = pool_read(file_priv(s->snd_file)->fp_device, fd, lk->lk_off,
	    len, send_priv(s)->ss_how != FETCH_PAGES);

	if (error != 0)
		return error;
	lk->lk_map = os_map(fd, lk->lk_off, len);
	if (lk->lk_map != NULL && os_lock(lk->lk_map, len) != 0)
		os_populate(lk->lk_map, len);
	return 0;
}

static void
mlock_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);
	const struct locked *lk = send_priv(s)->ss_own;

	send_pending_end(s, w->wt_error);
	if (w->wt_error == 0)
		send_fetch_end(s, s->snd_off, lk->lk_end);
	send_priv(s)->ss_asked = lk->lk_end;
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
	struct locked *lk = send_priv(s)->ss_own;
	int error;

	if (lk == NULL)
		lk = send_priv(s)->ss_own = calloc(1, sizeof(*lk));
	if (lk == NULL)
		return send_pending_fail(s, -ENOMEM);
	mlock_release(lk);
	lk->lk_off = s->snd_off & ~(off_t)(os_page_size() - 1);
	send_window_choose(s);
	lk->lk_end =
	    offset_add(s->snd_off, LOCKED_MAX, send_window_end(s, s->snd_off));
	mlock_take_room(s, (size_t)(lk->lk_end - lk->lk_off));
	send_fetch_begin(s, lk->lk_end);
	send_pending_begin(s, mlock_done);
	error = send_on_pool(s, JOB_LONG, mlock_run);
	return error == 0 ? PW_SEND_PENDING : send_pending_fail(s, error);
}

/*
 * Has the pool send files whose residency cannot be checked, since the kernel may read even their locked
 * pages again.
 */
static enum pw_send_status
mlock_step(struct pw_send *s)
{
	const struct locked *lk = send_priv(s)->ss_own;
	off_t end = lk == NULL ? s->snd_off : lk->lk_end;
	enum pw_send_status status;

	if (s->snd_file != NULL && !residency_can_ask(s->snd_file))
		return send_by_pool(s);
	if (s->snd_len > 0 && end <= s->snd_off)
		return mlock_lock(s);
	status = send_window(s, end, send_by_sendfile);
	if (status == PW_SEND_AGAIN && send_was_refused(s))
		return send_by_pool(s);
	if (send_priv(s)->ss_holder != NULL)
		send_room_settle(s, false);
	return status;
}

static void
mlock_finish(struct pw_send *s)
{
	struct locked *lk = send_priv(s)->ss_own;

	if (lk != NULL)
		mlock_release(lk);
	free(lk);
	send_priv(s)->ss_own = NULL;
}

const struct pw_send_path send_mlock = {
    .path_name = "mlock",
    .path_step = mlock_step,
    .path_finish = mlock_finish,
    .path_prefetches = true,
    .path_locks = true,
};
