/*
 * readahead: fetches the next windows of a transmission while it sends the last one.  A
 * fetch has its own reference to the file, and a pointer to the transmission that is cleared
 * if the transmission ends first.  The transmission takes windows in the order of the file.
 */
#include <sched.h>
#include <stdlib.h>

#include "lib/disk/completion.h"
#include "lib/file/residency.h"
#include "lib/send/drop_behind.h"
#include "lib/send/facts.h"
#include "lib/send/holder.h"
#include "lib/send/path.h"
#include "lib/send/window_size.h"

#define READAHEAD_DEPTH \
	4 /* maximum number of windows in flight, if they are pinned */

struct ahead {
	/* first member, as readahead_done casts its address */
	struct pw_waiter ah_waiter;
	struct pw_send *ah_send; /* NULL once the transmission has ended */
	struct pw_file *ah_file;
	struct ahead *ah_next; /* fetch of the next window, or NULL */
	off_t ah_from;
	off_t ah_end;
	size_t ah_room; /* bytes of budget taken */
	bool ah_arrived;
	int ah_error;	/* result of the fetch, valid if ah_arrived */
	bool ah_direct; /* true if the window was read past the page cache */
	bool ah_waited; /* true if ah_send is pending until this fetch ends */
	/* true if the window is dropped because the transmission has ended */
	bool ah_drops;
};

static void
readahead_free(struct ahead *ah)
{
	pw_file_unref(&ah->ah_file);
	free(ah);
}

/* Moves the window and its budget to the transmission.  Ignores an error: the next fetch reports it. */
static void
readahead_take(struct ahead *ah, struct pw_send *s)
{
	holder_add(s, ah->ah_room);
	if (ah->ah_error == 0 && !ah->ah_direct) {
		residency_fetched(
		    s->snd_file, ah->ah_from, ah->ah_end - ah->ah_from);
		send_brought_in(s, ah->ah_from, ah->ah_end);
	}
	/* ss_asked stays if the transmission waits for a later window, or an earlier one failed. */
	if (ah->ah_error == 0 && !s->snd_pending &&
	    ah->ah_from <= send_priv(s)->ss_asked &&
	    ah->ah_end > send_priv(s)->ss_asked) {
		send_priv(s)->ss_asked = ah->ah_end;
		send_priv(s)->ss_direct = ah->ah_direct;
	}
	readahead_free(ah);
}

static void
readahead_take_arrived(struct pw_send *s)
{
	struct ahead **first = &send_priv(s)->ss_ahead, *ah;

	while ((ah = *first) != NULL && ah->ah_arrived) {
		*first = ah->ah_next;
		readahead_take(ah, s);
	}
}

static void
readahead_abandon(struct ahead *ah)
{
	pool_room_give(file_priv(ah->ah_file)->fp_device, ah->ah_room);
	if (ah->ah_error == 0 && !ah->ah_direct && ah->ah_drops) {
		drop_behind_add(
		    ah->ah_file, ah->ah_from, ah->ah_end - ah->ah_from, 0);
		pool_dropped(file_priv(ah->ah_file)->fp_loop->lp_pool,
		    (size_t)(ah->ah_end - ah->ah_from));
	}
	readahead_free(ah);
}

static void
readahead_done(struct pw_waiter *w)
{
	struct ahead *ah = (struct ahead *)w;
	struct pw_send *s = ah->ah_send;
	bool waited = ah->ah_waited;

	ah->ah_arrived = true;
	ah->ah_direct = w->wt_error == FETCHED_DIRECT;
	ah->ah_error = ah->ah_direct ? 0 : w->wt_error;
	if (s == NULL) {
		readahead_abandon(ah);
		return;
	}
	if (waited)
		send_pending_end(s, ah->ah_error);
	readahead_take_arrived(s);
	if (waited)
		s->snd_done(s);
}

static struct ahead *
readahead_last(const struct pw_send *s, unsigned *count)
{
	struct ahead *ah = send_priv(s)->ss_ahead, *last = NULL;

	for (*count = 0; ah != NULL; ah = ah->ah_next) {
		last = ah;
		(*count)++;
	}
	return last;
}

static bool
readahead_start(struct pw_send *s, off_t from, off_t end)
{
	struct ahead *ah = calloc(1, sizeof(*ah)), *last;
	size_t len = (size_t)(end - from);
	unsigned count;

	if (ah == NULL)
		return false;
	ah->ah_waiter.wt_done = readahead_done;
	ah->ah_send = s;
	ah->ah_file = s->snd_file;
	ah->ah_from = from;
	ah->ah_end = end;
	ah->ah_room = send_fetch_room(s, from, len);
	if (send_room_take(s, ah->ah_room, NULL) != 0) {
		free(ah);
		return false;
	}
	pw_file_ref(s->snd_file);
	residency_unused(s->snd_file, from, end);
	if (send_fetch(s, from, len, ADMIT_HINT, &ah->ah_waiter) != 0) {
		pool_room_give(file_priv(s->snd_file)->fp_device, ah->ah_room);
		readahead_free(ah);
		return false;
	}
	last = readahead_last(s, &count);
	*(last == NULL ? &send_priv(s)->ss_ahead : &last->ah_next) = ah;
	completion_count(s->snd_loop, COUNTED_AHEAD);
	return true;
}

/*
 * Returns ss_lead or, if the disk seeks, the present lead, since ss_lead may be older than the first
 * wait for the disk.
 */
static size_t
readahead_lead(const struct pw_send *s)
{
	struct window_facts wf = {.wf_rate = s->snd_rate, .wf_seeks = true};

	if (wf.wf_rate == 0 || s->snd_pace > 0 ||
	    !device_seeks(file_priv(s->snd_file)->fp_device))
		return send_priv(s)->ss_lead;
	return window_lead(&wf, send_priv(s)->ss_window);
}

/*
 * Sets *from to the start of the next window, and returns true if this window should be fetched now.  Allows
 * several windows in flight only if windows are pinned, since others would be evicted unsent.
 */
static bool
readahead_is_due(const struct pw_send *s, off_t *from)
{
	unsigned count;
	const struct ahead *last = readahead_last(s, &count);
	size_t lead = readahead_lead(s);
	off_t left;

	*from = last == NULL ? send_priv(s)->ss_asked : last->ah_end;
	left = *from - s->snd_off;
	if (send_priv(s)->ss_pin == NULL) {
		if (count > 0)
			return false;
		if (lead > send_priv(s)->ss_window)
			lead = send_priv(s)->ss_window;
	}
	return left >= 0 && left <= (off_t)lead && left < s->snd_len &&
	       *from < send_priv(s)->ss_reach && count < READAHEAD_DEPTH &&
	       s->snd_readahead != PW_READAHEAD_NONE &&
	       send_priv(s)->ss_own == NULL && !send_priv(s)->ss_follows &&
	       !send_hole_may_begin(s, *from);
}

bool
send_check_spoils(const struct pw_send *s)
{
	return send_priv(s)->ss_how == FETCH_FOLIO &&
	       residency_is_by_pieces(s->snd_file);
}

/*
 * Fetches the next window if that is due, and returns true.  If the first chunk of the window is resident,
 * sets ss_follows instead, and returns false.
 */
static bool
readahead_next(struct pw_send *s)
{
	off_t from, end, chunk;

	if (!readahead_is_due(s, &from))
		return false;
	send_window_choose(s);
	end = send_window_end(s, from);
	/* The rest of a window that is cut will soon be within reach. */
	if (end == send_priv(s)->ss_reach)
		return false;
	chunk = end - from < (off_t)SEND_CHUNK ? end - from : (off_t)SEND_CHUNK;
	if (!(send_priv(s)->ss_pin != NULL && send_check_spoils(s)) &&
	    residency_ask_alone(s->snd_file, from, chunk)) {
		send_priv(s)->ss_follows = true;
		return false;
	}
	send_drop_acknowledged(s);
	residency_round(s->snd_file, &from, &end);
	return readahead_start(s, from, end);
}

/* Returns true if the client reads a window sooner than the disk, although the disk does not seek. */
static bool
readahead_is_behind(const struct pw_send *s)
{
	return send_priv(s)->ss_lead > send_priv(s)->ss_window &&
	       !device_seeks(file_priv(s->snd_file)->fp_device);
}

/*
 * A disk thread on the loop's core starts to read only when the loop waits, after it has sent all windows
 * that it has.  So if the client is faster than the disk, the loop yields once a window is queued.
 */
void
send_ahead(struct pw_send *s)
{
	bool begun = false;

	while (readahead_next(s))
		begun = true;
	if (begun && readahead_is_behind(s))
		sched_yield();
}

static struct ahead *
readahead_find(const struct pw_send *s)
{
	struct ahead *ah = send_priv(s)->ss_ahead;

	while (ah != NULL && s->snd_off >= ah->ah_end)
		ah = ah->ah_next;
	return ah == NULL || s->snd_off < ah->ah_from || ah->ah_arrived ? NULL
									: ah;
}

bool
send_ahead_comes(const struct pw_send *s)
{
	return readahead_find(s) != NULL;
}

bool
send_ahead_wait(struct pw_send *s)
{
	struct ahead *ah = readahead_find(s);

	if (ah == NULL)
		return false;
	ah->ah_waited = true;
	send_pending_begin(s, NULL);
	send_priv(s)->ss_wait = SEND_WAIT_AHEAD;
	return true;
}

void
send_ahead_leave(struct pw_send *s)
{
	struct ahead *ah;

	for (ah = send_priv(s)->ss_ahead; ah != NULL; ah = ah->ah_next)
		if (!ah->ah_arrived)
			pool_leave(&ah->ah_waiter);
}

void
send_ahead_forget(struct pw_send *s)
{
	struct ahead *ah, *next;

	for (ah = send_priv(s)->ss_ahead; ah != NULL; ah = next) {
		next = ah->ah_next;
		ah->ah_send = NULL;
		ah->ah_drops = send_drops(s);
		if (ah->ah_arrived)
			readahead_abandon(ah);
		else
			pool_leave(&ah->ah_waiter);
	}
	send_priv(s)->ss_ahead = NULL;
}
