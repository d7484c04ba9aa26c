/*
 * send_prefetch: ask whether the next share is in memory; if so send it, else
 * have the window fetched elsewhere and come back.  What nodiskio, uring and
 * splice have in common; they differ in who fetches and how it is sent.
 *
 * What is sent in one step is asked for just before.  If it was evicted between
 * the fetch and the question, memory is short: then only that much is fetched, the
 * second time in a row after a pause, and the third time the fetch is taken for the
 * answer, so that it goes on.
 */
#include <errno.h>

#include "loop.h"
#include "resident.h"
#include "room.h"
#include "send_priv.h"

#define FETCHES 3

static void
fetch_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);

	send_pending_end(s, w->wt_error);
	if (w->wt_error == 0) {
		resident_fetched(
		    s->snd_file, s->snd_from, s->snd_asked - s->snd_from);
		send_brought_in(s, s->snd_off, s->snd_asked);
		if (++s->snd_fetches >= FETCHES)
			s->snd_ready = s->snd_asked;
	}
	s->snd_done(s);
}

static enum pw_send_status
fetch_range(struct pw_send *s, off_t from, off_t end, send_fetch_f fetch)
{
	int error;

	send_drop_acknowledged(s);
	s->snd_from = from;
	s->snd_asked = end;
	send_pending_begin(s, fetch_done);
	error = fetch(s, from, (size_t)(end - from));
	return error == 0 ? PW_SEND_PENDING : send_pending_fail(s, error);
}

/* There is room for the window, or time has gone by: the question is asked again. */
static void
try_again(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);

	send_pending_end(s, w->wt_error);
	s->snd_done(s);
}

static void
room_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);

	s->snd_held += s->snd_wanted;
	s->snd_granted = true;
	try_again(w);
}

static enum pw_send_status
fetch_window(struct pw_send *s, send_fetch_f fetch)
{
	off_t from = s->snd_off, end;
	int error = 0;

	if (!s->snd_granted)
		send_window_choose(s);
	end = send_window_end(s, from);
	resident_round(s->snd_file, &from, &end);
	if (!s->snd_granted && !pool_fetching(s->snd_file, from, end)) {
		s->snd_wanted = (size_t)(end - from);
		error = send_room_take(s, s->snd_wanted, room_done);
		if (error == -EINPROGRESS)
			return PW_SEND_PENDING;
		if (error != 0)
			return send_pending_fail(s, error);
		s->snd_held += s->snd_wanted;
	}
	s->snd_granted = s->snd_short = s->snd_follows = false;
	loop_count(s->snd_loop, COUNTED_MISSED);
	return fetch_range(s, from, end, fetch);
}

static enum pw_send_status
fetch_again(struct pw_send *s, send_fetch_f fetch)
{
	off_t from = s->snd_off, end = send_share_end(s);

	s->snd_short = true;
	if (s->snd_fetches == FETCHES - 1 && !s->snd_backed_off) {
		s->snd_backed_off = true;
		send_pending_begin(s, try_again);
		loop_later(s->snd_loop, &s->snd_waiter);
		return PW_SEND_PENDING;
	}
	s->snd_backed_off = false;
	loop_count(s->snd_loop, COUNTED_EVICTED);
	/* Who gives pages back takes those of others of the same file. */
	if (s->snd_file->fil_known_end >= 0)
		room_evicted(pool_room(s->snd_loop->lp_pool), loop_now());
	resident_round(s->snd_file, &from, &end);
	return fetch_range(s, from, end, fetch);
}

static enum pw_send_status
missing(struct pw_send *s, send_fetch_f fetch)
{
	if (send_ahead_wait(s)) {
		loop_count(s->snd_loop, COUNTED_MISSED);
		return PW_SEND_PENDING;
	}
	return s->snd_off < s->snd_asked ? fetch_again(s, fetch)
					 : fetch_window(s, fetch);
}

/* Of a large share a part may be there; but what RWF_NOWAIT refused is left alone. */
static bool
is_resident(struct pw_send *s)
{
	off_t off = s->snd_off, end = send_share_end(s), refused;

	if (resident_ask(s->snd_file, off, end - off))
		return true;
	s->snd_share = SEND_SHARE;
	if (end <= off + (off_t)SEND_SHARE)
		return false;
	end = off + (off_t)SEND_SHARE;
	refused = s->snd_file->fil_refused;
	return (refused < 0 || refused >= end) &&
	       resident_ask(s->snd_file, off, end - off);
}

enum pw_send_status
send_prefetched(struct pw_send *s, send_fetch_f fetch, send_call_f call)
{
	enum pw_send_status status;
	off_t share, off = s->snd_off;

	if (s->snd_file != NULL && !resident_can_ask(s->snd_file))
		return send_by_pool(s);
	if (s->snd_len > 0 && s->snd_ready <= s->snd_off) {
		if (!is_resident(s))
			return missing(s, fetch);
		loop_count(s->snd_loop, COUNTED_RESIDENT);
		s->snd_ready = send_share_end(s);
	}
	share = send_share_end(s);
	if (s->snd_ready < share)
		share = s->snd_ready;
	status = send_window(s, share, call);
	if (s->snd_off > off)
		s->snd_fetches = 0;
	if (status == PW_SEND_WANT_WRITE)
		s->snd_ready = -1;
	if (s->snd_held > 0) {
		send_room_settle(s);
		if (fetch == send_fetch_by_pool)
			send_ahead(s);
	}
	return status;
}
