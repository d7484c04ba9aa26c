/*
 * send_nodiskio: ask whether the window is in memory; if so sendfile(2), else
 * have exactly that window fetched by the pool and come back (thesis 2.3.3, with
 * the question that Linux lacks as a flag of sendfile).  The default.
 *
 * What is sent in one step is asked for just before.  If it was evicted between
 * the fetch and the question, memory is short: then only that much is fetched, and
 * the third time the fetch is taken for the answer, so that it goes on.
 */
#include <stddef.h>

#include "drop.h"
#include "loop.h"
#include "os.h"
#include "pool.h"
#include "resident.h"
#include "send_priv.h"

#define FETCHES 3

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
	    (struct pw_send *)(void *)((char *)w -
				       offsetof(struct pw_send, snd_waiter));

	s->snd_pending = false;
	s->snd_wait += loop_now() - s->snd_since;
	if (w->wt_error != 0 && s->snd_error == 0)
		s->snd_error = w->wt_error;
	if (w->wt_error == 0) {
		resident_fetched(
		    s->snd_file, s->snd_from, s->snd_asked - s->snd_from);
		remember_fetched(s);
		if (!resident_can_ask(s->snd_file) ||
		    ++s->snd_fetches >= FETCHES)
			s->snd_ready = s->snd_asked;
	}
	s->snd_done(s);
}

static enum pw_send_status
fetch(struct pw_send *s, off_t end)
{
	off_t from = s->snd_off;
	int error;

	drop_acknowledged(s);
	resident_round(s->snd_file, &from, &end);
	s->snd_waiter.wt_done = fetch_done;
	error = pool_fetch(s->snd_file, from, (size_t)(end - from),
	    s->snd_begun || s->snd_sent > 0 ? ADMIT_BEGUN : ADMIT_NEW,
	    &s->snd_waiter);
	if (error != 0) {
		s->snd_error = error;
		return PW_SEND_ERROR;
	}
	s->snd_from = from;
	s->snd_asked = end;
	s->snd_since = loop_now();
	s->snd_pending = true;
	return PW_SEND_PENDING;
}

static enum pw_send_status
nodiskio_step(struct pw_send *s)
{
	enum pw_send_status status;
	off_t window = send_window_end(s), share = send_share_end(s);

	if (s->snd_len > 0 && s->snd_ready <= s->snd_off) {
		if (!resident_ask(s->snd_file, s->snd_off, share - s->snd_off))
			return fetch(s, s->snd_fetches == 0 ? window : share);
		s->snd_ready = share;
	}
	if (s->snd_ready < share)
		share = s->snd_ready;
	status = send_window(s, share, send_by_sendfile);
	if (s->snd_off == share)
		s->snd_fetches = 0;
	if (status == PW_SEND_WANT_WRITE)
		s->snd_ready = -1;
	return status;
}

const struct pw_send_path send_nodiskio = {
    .path_name = "nodiskio",
    .path_step = nodiskio_step,
    .path_prefetches = true,
};
