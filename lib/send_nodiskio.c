/*
 * send_nodiskio: ask whether the window is in memory; if so sendfile(2), else
 * have exactly that window fetched by the pool and come back (thesis 2.3.3, with
 * the question that Linux lacks as a flag of sendfile).  The default.
 *
 * The answer holds for as long as the socket takes data at once.  When it was
 * full in between, pages may have been evicted since: ask again.
 */
#include <stddef.h>

#include "drop.h"
#include "loop.h"
#include "os.h"
#include "pool.h"
#include "resident.h"
#include "send_priv.h"

/* What the client has acknowledged of what we brought in goes now. */
static void
drop_acknowledged(struct pw_send *s)
{
	off_t end = s->snd_fetched_end;
	long unacked;

	if (s->snd_dropped >= end || !send_drops(s))
		return;
	unacked = os_unacked(s->snd_sock);
	if (unacked < 0)
		return;
	if (s->snd_off - unacked < end)
		end = (s->snd_off - unacked) & ~(off_t)(OS_SAMPLE - 1);
	if (end <= s->snd_dropped)
		return;
	drop_add(s->snd_file, s->snd_dropped, end - s->snd_dropped, 0);
	s->snd_dropped = end;
}

/*
 * Remembers what we brought in.  A window that was resident before lies
 * between: what came before it is finished with.
 */
static void
remember_fetched(struct pw_send *s)
{
	if (s->snd_fetched_end != s->snd_off) {
		send_drop_rest(s);
		s->snd_fetched = s->snd_dropped = s->snd_off;
	}
	s->snd_fetched_end = s->snd_asked;
}

static void
fetch_done(struct pw_waiter *w)
{
	struct pw_send *s =
	    (struct pw_send *)((char *)w -
			       offsetof(struct pw_send, snd_waiter));

	s->snd_pending = false;
	s->snd_wait += loop_now() - s->snd_since;
	if (w->wt_error != 0 && s->snd_error == 0)
		s->snd_error = w->wt_error;
	if (w->wt_error == 0) {
		resident_fetched(
		    s->snd_file, s->snd_off, s->snd_asked - s->snd_off);
		remember_fetched(s);
		if (!resident_can_ask(s->snd_file))
			s->snd_ready = s->snd_asked;
	}
	s->snd_done(s);
}

static enum pw_send_status
fetch(struct pw_send *s, off_t end)
{
	int error;

	drop_acknowledged(s);
	s->snd_waiter.wt_done = fetch_done;
	error = pool_fetch(s->snd_file, s->snd_off, (size_t)(end - s->snd_off),
	    s->snd_begun || s->snd_sent > 0, &s->snd_waiter);
	if (error != 0) {
		s->snd_error = error;
		return PW_SEND_ERROR;
	}
	s->snd_asked = end;
	s->snd_since = loop_now();
	s->snd_pending = true;
	return PW_SEND_PENDING;
}

static enum pw_send_status
nodiskio_step(struct pw_send *s)
{
	enum pw_send_status status;
	off_t end = send_window_end(s);

	if (s->snd_len > 0 && s->snd_ready <= s->snd_off) {
		if (!resident_ask(s->snd_file, s->snd_off, end - s->snd_off))
			return fetch(s, end);
		s->snd_ready = end;
	}
	status = send_window(s, end, send_by_sendfile);
	if (status == PW_SEND_WANT_WRITE)
		s->snd_ready = -1;
	return status;
}

const struct pw_send_path send_nodiskio = {
    .path_name = "nodiskio",
    .path_step = nodiskio_step,
    .path_prefetches = true,
};
