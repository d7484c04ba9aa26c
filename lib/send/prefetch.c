/*
 * prefetch: the common part of the paths nodiskio, uring and splice.  A step sends the next chunk
 * if the chunk is resident.  Otherwise the path fetches the window, and the transmission is pending
 * until the window arrives.  The paths differ in how they fetch and send.
 *
 * Bytes that were evicted between their fetch and their check mean that memory is short.  They are read again
 * into own memory, which nothing evicts (own.h).
 */
#include <errno.h>

#include "lib/disk/budget.h"
#include "lib/disk/completion.h"
#include "lib/disk/drop_lock.h"
#include "lib/disk/quiet.h"
#include "lib/disk/reclaim.h"
#include "lib/disk/tier_fetch.h"
#include "lib/file/file.h"
#include "lib/file/residency.h"
#include "lib/os/os.h"
#include "lib/send/facts.h"
#include "lib/send/holder.h"
#include "lib/send/own.h"
#include "lib/send/path.h"
#include "lib/send/sink.h"
#include "lib/util/clock.h"
#include "lib/util/offset.h"

static bool
prefetch_may_be_pinned(const struct pw_send *s)
{
	return send_priv(s)->ss_pin != NULL ||
	       pins_any(pool_pins(s->snd_loop->lp_pool));
}

/*
 * Returns true if the transmission can send the bytes of its pin.  A sink that accepts ranges sends pages
 * of the file, not copies.  A marked mapping is sent from its memory alone.
 */
static bool
prefetch_can_send_pin(const struct pw_send *s)
{
	const struct pin *pn = send_priv(s)->ss_pin;

	if (pins_copy(pn, s->snd_off) != NULL)
		return !sink_takes_ranges(s);
	return !pins_marked(pn) || send_can_read_marked(s);
}

static bool
prefetch_is_pinned(struct pw_send *s)
{
	struct pin **pn = &send_priv(s)->ss_pin;
	struct pins_key key;

	if (*pn != NULL && pins_end(*pn, s->snd_off) > s->snd_off)
		return true;
	send_unpin(s);
	key = pins_key(s->snd_file);
	*pn = pins_take(pool_pins(s->snd_loop->lp_pool), &key, s->snd_off);
	if (!prefetch_can_send_pin(s))
		send_unpin(s);
	return *pn != NULL;
}

/*
 * Returns true if the pin has no bytes of another version.  A file that was truncated and grew again has new
 * pages, so the pinned ones are stale.  A file that is sent from copies alone needs no call of file_is_fresh.
 */
static bool
prefetch_pin_is_fresh(const struct pw_send *s)
{
	if (s->snd_file->fil_stale)
		return false;
	return !residency_can_ask(s->snd_file) || file_is_fresh(s->snd_file);
}

/*
 * Returns the end of the pinned part of the next chunk, or snd_off if none is pinned.  If the pin is stale, the
 * transmission stops using the tier, which would return the stale bytes again.
 */
static off_t
prefetch_pinned_end(struct pw_send *s)
{
	off_t end, chunk = send_chunk_end(s);

	if (!prefetch_is_pinned(s))
		return s->snd_off;
	if (!prefetch_pin_is_fresh(s)) {
		send_unpin(s);
		send_priv(s)->ss_tier = false;
		return s->snd_off;
	}
	end = pins_end(send_priv(s)->ss_pin, s->snd_off);
	return end < chunk ? end : chunk;
}

static void
prefetch_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);
	bool direct = w->wt_error == FETCHED_DIRECT;
	int error = direct ? 0 : w->wt_error;

	send_pending_end(s, error);
	send_priv(s)->ss_direct = direct;
	if (error == 0 && !direct) {
		residency_fetched(s->snd_file, send_priv(s)->ss_from,
		    send_priv(s)->ss_asked - send_priv(s)->ss_from);
		send_brought_in(s, s->snd_off, send_priv(s)->ss_asked);
	}
	if (error == 0) {
		/* On a bounded loop a new client, which may never read, must not hold budget. */
		if (s->snd_rate == 0)
			send_room_settle(s, true);
		if (s->snd_index && s->snd_error == 0 &&
		    send_priv(s)->ss_from == 0)
			send_index_ahead(s);
	}
	s->snd_done(s);
}

static enum pw_send_status
prefetch_range(struct pw_send *s, off_t from, off_t end, send_fetch_f fetch)
{
	int error;

	reclaim_expect(pool_reclaim(s->snd_loop->lp_pool));
	send_drop_acknowledged(s);
	residency_unused(s->snd_file, from, end);
	send_priv(s)->ss_from = from;
	send_priv(s)->ss_asked = end;
	send_pending_begin(s, prefetch_done);
	send_priv(s)->ss_wait = SEND_WAIT_FETCH;
	error = fetch(s, from, (size_t)(end - from));
	return error == 0 ? PW_SEND_PENDING : send_pending_fail(s, error);
}

static void
prefetch_room_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);

	holder_add(s, send_priv(s)->ss_wanted);
	send_priv(s)->ss_granted = true;
	send_pending_end(s, w->wt_error);
	s->snd_done(s);
}

static enum pw_send_status
prefetch_window(struct pw_send *s, send_fetch_f fetch)
{
	off_t from = s->snd_off, end;
	int error = 0;

	if (!send_priv(s)->ss_granted && send_hole_may_begin(s, from))
		return send_hole_find(s);
	if (!send_priv(s)->ss_granted)
		send_window_choose(s);
	end = send_window_end(s, from);
	if (end < send_priv(s)->ss_offered)
		end = send_priv(s)->ss_offered;
	residency_round(s->snd_file, &from, &end);
	/* The reach may have grown since the budget was requested. */
	if (send_priv(s)->ss_granted)
		end = offset_add(from, send_priv(s)->ss_wanted, end);
	if (!send_priv(s)->ss_granted &&
	    !pool_fetching(s->snd_file, from, end)) {
		send_priv(s)->ss_wanted =
		    send_fetch_room(s, from, (size_t)(end - from));
		error = send_room_take(
		    s, send_priv(s)->ss_wanted, prefetch_room_done);
		if (error == -EINPROGRESS)
			return PW_SEND_PENDING;
		if (error != 0)
			return send_pending_fail(s, error);
		holder_add(s, send_priv(s)->ss_wanted);
	}
	send_priv(s)->ss_granted = send_priv(s)->ss_follows = false;
	completion_count(s->snd_loop, COUNTED_MISSED);
	return prefetch_range(s, from, end, fetch);
}

/*
 * Returns true if the next byte was fetched and evicted.  Returns false for a copy that expired because
 * its client was slow; then its window is read again.
 */
static bool
prefetch_was_evicted(const struct pw_send *s)
{
	return s->snd_off < send_priv(s)->ss_asked && !send_priv(s)->ss_direct;
}

/*
 * A drop evicts pages that other transmissions of the file fetched; memory is not short then.  Nothing is evicted of a
 * file without a residency check, whose copies are above the limit of pins.
 */
static void
prefetch_count_evicted(const struct pw_send *s)
{
	if (!residency_can_ask(s->snd_file))
		return;
	completion_count(s->snd_loop, COUNTED_EVICTED);
	if (file_priv(s->snd_file)->fp_drops == 0)
		budget_evicted(pool_room(s->snd_loop->lp_pool), clock_now());
}

/* Waits for the bytes, which are not resident, or which a drop keeps off (`locked`). */
static enum pw_send_status
prefetch_await(struct pw_send *s, send_fetch_f fetch, bool locked)
{
	if (send_ahead_wait(s)) {
		completion_count(s->snd_loop, COUNTED_MISSED);
		return PW_SEND_PENDING;
	}
	if (!locked && !prefetch_was_evicted(s))
		return prefetch_window(s, fetch);
	if (!locked)
		prefetch_count_evicted(s);
	return own_serve(s);
}

/*
 * Returns true if the next chunk is resident.  Otherwise shortens the chunk to SEND_CHUNK and
 * checks again, unless RWF_NOWAIT has refused one of these bytes.
 */
static bool
prefetch_is_resident(struct pw_send *s)
{
	off_t off = s->snd_off, end = send_chunk_end(s), refused;

	if (residency_ask(s->snd_file, off, end - off))
		return true;
	send_priv(s)->ss_chunk = SEND_CHUNK;
	if (end - off <= (off_t)SEND_CHUNK || off < send_priv(s)->ss_offered)
		return false;
	end = off + (off_t)SEND_CHUNK;
	refused = file_priv(s->snd_file)->fp_refused;
	return (refused < 0 || refused >= end) &&
	       residency_ask(s->snd_file, off, end - off);
}

/*
 * Limits the chunk while the kernel evicts pages, which may be those of a chunk that is not in use.  Limits it more where
 * sockets and pages share a memory limit: allocating for the socket may evict pages of the chunk, but
 * not the SEND_CHUNK_HELD bytes to which sendfile(2) has references by then.  Then returns true.
 */
static bool
prefetch_hold_chunk(struct pw_send *s, send_call_f call)
{
	struct pw_pool *pl = s->snd_loop->lp_pool;
	off_t end = send_chunk_end(s);

	if (quiet_ask(pl, clock_now()))
		return false;
	if (send_priv(s)->ss_chunk > SEND_CHUNK_LESS &&
	    !residency_in_use(s->snd_file, s->snd_off, &end))
		send_priv(s)->ss_chunk = SEND_CHUNK_LESS;
	if (!pool_sockets(pl) || call != send_by_sendfile)
		return false;
	send_priv(s)->ss_chunk =
	    SEND_CHUNK_HELD - (size_t)(s->snd_off % (off_t)os_page_size());
	return true;
}

/*
 * Forgets a residency check that is older than RESIDENCY_HOLDS, since the socket was full, or the last step sent
 * a part of the chunk and the loop has served other connections since.
 */
static void
prefetch_forget_ready(struct pw_send *s)
{
	if (send_priv(s)->ss_ready > s->snd_off &&
	    clock_now() - send_priv(s)->ss_ready_at > RESIDENCY_HOLDS)
		send_priv(s)->ss_ready = -1;
}

/*
 * Sends the bytes before `end`: from their pin, or else by `call`.  Copies in place of sendfile(2), which would wait
 * for a page that is evicted after the check, or still in flight.
 */
static enum pw_send_status
prefetch_send(struct pw_send *s, off_t end, send_call_f call)
{
	const struct pin *pn = send_priv(s)->ss_pin;
	off_t off = s->snd_off;
	enum pw_send_status status;

	if (pins_copy(pn, off) != NULL)
		return send_window(s, end, send_from_copy);
	if (pins_mapping(pn, off) != NULL)
		return send_window(
		    s, end, send_can_map(s) ? send_from_mapping : call);
	if (call != send_by_sendfile || s->snd_len == 0 || off >= end)
		return send_window(s, end, call);
	if (!residency_stays(s->snd_file, off, &end)) {
		end = offset_add(off, SEND_CHUNK_LESS, end);
		call = send_copied;
	}
	status = send_window(s, end, call);
	residency_used(s->snd_file, off, s->snd_off);
	return status;
}

/* Sends the resident part of the next chunk.  Sets *missed if the next byte is not resident. */
static enum pw_send_status
prefetch_send_resident(struct pw_send *s, send_call_f call, bool *missed)
{
	bool held, pinned = send_priv(s)->ss_pin != NULL;
	uint64_t now;
	off_t chunk;

	prefetch_forget_ready(s);
	if (s->snd_len > 0 && send_priv(s)->ss_ready <= s->snd_off &&
	    prefetch_may_be_pinned(s))
		send_priv(s)->ss_ready = prefetch_pinned_end(s);
	if (s->snd_len > 0 && send_priv(s)->ss_ready <= s->snd_off) {
		*missed = send_priv(s)->ss_ahead != NULL && send_ahead_comes(s);
		if (*missed)
			return PW_SEND_PENDING;
		held = prefetch_hold_chunk(s, call);
		now = clock_now();
		*missed = (pinned && send_check_spoils(s)) ||
			  !prefetch_is_resident(s);
		if (*missed)
			return PW_SEND_PENDING;
		/* Sends only the head, whose memory may evict pages; the next step checks again. */
		if (held && s->snd_mem_len > 0)
			return send_window(s, s->snd_off, call);
		completion_count(s->snd_loop, COUNTED_RESIDENT);
		send_priv(s)->ss_ready = send_chunk_end(s);
		send_priv(s)->ss_ready_at = now;
	}
	chunk = send_chunk_end(s);
	if (send_priv(s)->ss_ready < chunk)
		chunk = send_priv(s)->ss_ready;
	return prefetch_send(s, chunk, call);
}

/*
 * Sends under the drop lock.  A residency check holds for this step only.  Sets *missed and *locked if a disk
 * thread that drops pages holds the lock.
 */
static enum pw_send_status
prefetch_send_between_drops(
    struct pw_send *s, send_call_f call, bool *missed, bool *locked)
{
	enum pw_send_status status;

	*locked = !drop_lock_enter_send(file_priv(s->snd_file)->fp_drop_lock);
	*missed = *locked;
	if (*locked)
		return PW_SEND_PENDING;
	residency_dropped(s->snd_file);
	send_priv(s)->ss_ready = -1;
	status = prefetch_send_resident(s, call, missed);
	drop_lock_leave(file_priv(s->snd_file)->fp_drop_lock);
	send_priv(s)->ss_ready = -1;
	return status;
}

/* Returns true if a page was evicted before it could be copied. */
static bool
prefetch_was_refused(struct pw_send *s)
{
	bool yes = send_priv(s)->ss_result == -EAGAIN;

	send_priv(s)->ss_result = 0;
	return yes;
}

enum pw_send_status
send_prefetched(struct pw_send *s, send_fetch_f fetch, send_call_f call)
{
	enum pw_send_status status;
	bool missed = false, locked = false;

	if (send_priv(s)->ss_own != NULL)
		return own_serve(s);
	if (send_hole_is_next(s))
		status = send_hole(s);
	else if (s->snd_file != NULL && s->snd_len > 0 &&
		 residency_may_drop(s->snd_file))
		status = prefetch_send_between_drops(s, call, &missed, &locked);
	else
		status = prefetch_send_resident(s, call, &missed);
	if (missed)
		return prefetch_await(s, fetch, locked);
	if (status == PW_SEND_AGAIN && prefetch_was_refused(s))
		return own_serve(s);
	if (send_priv(s)->ss_holder != NULL) {
		send_room_settle(s, status == PW_SEND_WANT_WRITE);
		if (fetch == send_fetch_by_pool)
			send_ahead(s);
	}
	return status;
}
