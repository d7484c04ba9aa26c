/*
 * readahead: the next window of a transmission is fetched while the last one is being
 * sent.  The fetch has its own reference to the file, and a pointer back that is cleared
 * when the transmission ends before it.
 */
#include <stdlib.h>

#include "lib/disk/completion.h"
#include "lib/file/residency.h"
#include "lib/send/drop_behind.h"
#include "lib/send/path.h"

struct ahead {
	struct pw_waiter ah_waiter; /* first: found by it */
	struct pw_send *ah_send;    /* NULL: it has ended */
	struct pw_file *ah_file;
	off_t ah_from;
	off_t ah_end;
	bool ah_waited; /* ah_send is pending until this comes */
	bool ah_drops;	/* if nobody is there any more */
};

static size_t
readahead_length(const struct ahead *ah)
{
	return (size_t)(ah->ah_end - ah->ah_from);
}

/* Its bytes of the budget become the transmission's. */
static void
readahead_arrived(struct ahead *ah, struct pw_send *s, int error)
{
	send_priv(s)->ss_ahead = NULL;
	send_priv(s)->ss_held += readahead_length(ah);
	if (error == 0) {
		residency_fetched(
		    s->snd_file, ah->ah_from, ah->ah_end - ah->ah_from);
		send_brought_in(s, ah->ah_from, ah->ah_end);
	}
	/* Unless it waits for another window by now, past this one. */
	if (error == 0 && (!s->snd_pending || ah->ah_waited))
		send_priv(s)->ss_asked = ah->ah_end;
	if (ah->ah_waited)
		send_pending_end(s, error);
}

static void
readahead_abandoned(struct ahead *ah, int error)
{
	pool_room_give(file_priv(ah->ah_file)->fp_device, readahead_length(ah));
	if (error != 0 || !ah->ah_drops)
		return;
	drop_behind_add(ah->ah_file, ah->ah_from, ah->ah_end - ah->ah_from, 0);
	pool_dropped(
	    file_priv(ah->ah_file)->fp_loop->lp_pool, readahead_length(ah));
}

/* An error that nobody waits for will be met again. */
static void
readahead_done(struct pw_waiter *w)
{
	struct ahead *ah = (struct ahead *)w;
	struct pw_send *s = ah->ah_send;
	bool waited = ah->ah_waited;

	if (s == NULL)
		readahead_abandoned(ah, w->wt_error);
	else
		readahead_arrived(ah, s, w->wt_error);
	pw_file_unref(&ah->ah_file);
	free(ah);
	if (s != NULL && waited)
		s->snd_done(s);
}

static void
readahead_start(struct pw_send *s, off_t from, off_t end)
{
	struct ahead *ah = calloc(1, sizeof(*ah));
	size_t len = (size_t)(end - from);

	if (ah == NULL)
		return;
	ah->ah_waiter.wt_done = readahead_done;
	ah->ah_send = s;
	ah->ah_file = s->snd_file;
	ah->ah_from = from;
	ah->ah_end = end;
	if (send_room_take(s, len, NULL) != 0) {
		free(ah);
		return;
	}
	pw_file_ref(s->snd_file);
	if (pool_fetch(s->snd_file, from, len, send_priv(s)->ss_folio,
		ADMIT_HINT, &ah->ah_waiter) != 0) {
		pool_room_give(file_priv(s->snd_file)->fp_device, len);
		pw_file_unref(&ah->ah_file);
		free(ah);
		return;
	}
	send_priv(s)->ss_ahead = ah;
	completion_count(s->snd_loop, COUNTED_AHEAD);
}

/* Only for who is sending what was fetched for it, and has met it in memory. */
static bool
readahead_is_due(const struct pw_send *s)
{
	off_t left = send_priv(s)->ss_asked - s->snd_off;

	return left >= 0 && left <= (off_t)send_priv(s)->ss_lead &&
	       left < s->snd_len && send_priv(s)->ss_ahead == NULL &&
	       s->snd_readahead != PW_READAHEAD_NONE &&
	       !send_priv(s)->ss_short && !send_priv(s)->ss_follows;
}

/* If what follows is in memory there is nothing to fetch, nor to give back. */
void
send_ahead(struct pw_send *s)
{
	off_t from = send_priv(s)->ss_asked, end, chunk;

	if (!readahead_is_due(s))
		return;
	send_window_choose(s);
	end = send_window_end(s, from);
	chunk = end - from < (off_t)SEND_CHUNK ? end - from : (off_t)SEND_CHUNK;
	if (residency_ask(s->snd_file, from, chunk)) {
		send_priv(s)->ss_follows = true;
		return;
	}
	send_drop_acknowledged(s);
	residency_round(s->snd_file, &from, &end);
	readahead_start(s, from, end);
}

bool
send_ahead_wait(struct pw_send *s)
{
	struct ahead *ah = send_priv(s)->ss_ahead;

	if (ah == NULL || s->snd_off < ah->ah_from || s->snd_off >= ah->ah_end)
		return false;
	ah->ah_waited = true;
	send_pending_begin(s, NULL);
	return true;
}

void
send_ahead_forget(struct pw_send *s)
{
	struct ahead *ah = send_priv(s)->ss_ahead;

	if (ah == NULL)
		return;
	ah->ah_send = NULL;
	ah->ah_drops = send_drops(s);
	send_priv(s)->ss_ahead = NULL;
}
