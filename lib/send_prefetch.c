/*
 * send_prefetch: ask whether the next share is in memory; if so send it, else
 * have the window fetched elsewhere and come back.  What nodiskio, uring and
 * splice have in common; they differ in who fetches and how it is sent.
 *
 * What is sent in one step is asked for just before.  If it was evicted between
 * the fetch and the question, memory is short: then only that much is fetched, and
 * the third time the fetch is taken for the answer, so that it goes on.
 */
#include "resident.h"
#include "send_priv.h"
#include "stats.h"

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
fetch_window(struct pw_send *s, off_t end, send_fetch_f fetch)
{
	off_t from = s->snd_off;
	int error;

	send_drop_acknowledged(s);
	resident_round(s->snd_file, &from, &end);
	s->snd_from = from;
	s->snd_asked = end;
	send_pending_begin(s, fetch_done);
	error = fetch(s, from, (size_t)(end - from));
	return error == 0 ? PW_SEND_PENDING : send_pending_fail(s, error);
}

enum pw_send_status
send_prefetched(struct pw_send *s, send_fetch_f fetch, send_call_f call)
{
	enum pw_send_status status;
	off_t window = send_window_end(s), share = send_share_end(s);

	if (s->snd_file != NULL && !resident_can_ask(s->snd_file))
		return send_by_pool(s);
	if (s->snd_len > 0 && s->snd_ready <= s->snd_off) {
		if (!resident_ask(
			s->snd_file, s->snd_off, share - s->snd_off)) {
			loop_count(s->snd_loop, s->snd_fetches == 0
						    ? COUNTED_MISSED
						    : COUNTED_EVICTED);
			return fetch_window(
			    s, s->snd_fetches == 0 ? window : share, fetch);
		}
		loop_count(s->snd_loop, COUNTED_RESIDENT);
		s->snd_ready = share;
	}
	if (s->snd_ready < share)
		share = s->snd_ready;
	status = send_window(s, share, call);
	if (s->snd_off == share)
		s->snd_fetches = 0;
	if (status == PW_SEND_WANT_WRITE)
		s->snd_ready = -1;
	return status;
}
