/*
 * index_ahead: prefetches the index of an MP4 file that is behind the media data.  A player that has read
 * the start of such a file closes the transmission, and requests the index next.
 *
 * When the first window has arrived, a disk thread walks over its box headers (mp4_index.h).  Then the loop has
 * the windows of at most INDEX_MOST bytes behind the media data fetched, one after another, if budget is
 * plentiful.  The fetch belongs to no transmission; a request for the index joins it, or finds its bytes in
 * memory.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/disk/completion.h"
#include "lib/disk/tier_fetch.h"
#include "lib/file/residency.h"
#include "lib/send/drop_behind.h"
#include "lib/send/mp4_index.h"
#include "lib/send/path.h"
#include "lib/send/window_size.h"
#include "lib/util/clock.h"
#include "lib/util/offset.h"

#define INDEX_MOST ((off_t)WINDOW_MOST)

struct index_ahead {
	/* first member, as the callbacks cast its address */
	struct pw_waiter ix_waiter;
	struct pw_file *ix_file;
	struct pin *ix_pin; /* pin of the first window's copy, or NULL */
	off_t ix_known;	    /* end of the first window */
	off_t ix_from;	    /* start of the next window to fetch, or -1 */
	off_t ix_end;	    /* end of the window in flight */
	off_t ix_last;	    /* end of the last window to fetch */
	size_t ix_room;	    /* bytes of budget taken for the window in flight */
	enum fetch_how ix_how;
	enum tier_use ix_use;
	bool ix_tier;  /* true if windows may come from the tier */
	bool ix_drops; /* true if fetched pages are dropped */
};

struct index_job {
	struct job ij_job; /* first member, as free(job) frees this struct */
	struct index_ahead *ij_index;
};

static struct pins *
index_ahead_pins(const struct index_ahead *ix)
{
	return pool_pins(file_priv(ix->ix_file)->fp_loop->lp_pool);
}

static struct pw_device *
index_ahead_device(const struct index_ahead *ix)
{
	return file_priv(ix->ix_file)->fp_device;
}

static void
index_ahead_free(struct index_ahead *ix)
{
	pins_release(index_ahead_pins(ix), &ix->ix_pin);
	pw_file_unref(&ix->ix_file);
	free(ix);
}

/* Reads a header from the copy of the first window, or from the page cache.  Is an mp4_read_f. */
static bool
index_ahead_read(void *arg, off_t at, unsigned char header[MP4_HEADER])
{
	const struct index_ahead *ix = arg;

	if (ix->ix_pin == NULL)
		return os_read(ix->ix_file->fil_fd, at, header, MP4_HEADER,
			   true) == MP4_HEADER;
	if (pins_end(ix->ix_pin, at) - at < MP4_HEADER)
		return false;
	memcpy(header, pins_copy(ix->ix_pin, at), MP4_HEADER);
	return true;
}

static int
index_ahead_run(struct job *job)
{
	struct index_ahead *ix = ((struct index_job *)job)->ij_index;

	ix->ix_from = mp4_index_find(
	    index_ahead_read, ix, ix->ix_known, ix->ix_file->fil_size);
	return 0;
}

static void index_ahead_fetched(struct pw_waiter *);

static int
index_ahead_fetch(struct index_ahead *ix)
{
	size_t len = (size_t)(ix->ix_end - ix->ix_from);

	ix->ix_waiter.wt_done = index_ahead_fetched;
	if (!ix->ix_tier)
		return pool_fetch(ix->ix_file, ix->ix_from, len, ix->ix_how,
		    ADMIT_EARLY, &ix->ix_waiter);
	return tier_fetch(ix->ix_file, ix->ix_from, len, ix->ix_how,
	    &ix->ix_use, ADMIT_EARLY, &ix->ix_waiter);
}

/* Returns true if the window is in flight, or if its first bytes are resident. */
static bool
index_ahead_has(const struct index_ahead *ix)
{
	off_t len = ix->ix_end - ix->ix_from;

	if (len > (off_t)SEND_CHUNK)
		len = (off_t)SEND_CHUNK;
	/* The check of a file by pieces would read single pages (send_check_spoils). */
	return pool_fetching(ix->ix_file, ix->ix_from, ix->ix_end) ||
	       (!residency_is_by_pieces(ix->ix_file) &&
		   pw_resident(ix->ix_file, ix->ix_from, (size_t)len) == 1);
}

/* Fetches the next window if budget is plentiful.  Otherwise frees the struct. */
static void
index_ahead_next(struct index_ahead *ix)
{
	struct pw_device *dv = index_ahead_device(ix);
	struct pw_loop *lp = file_priv(ix->ix_file)->fp_loop;
	size_t len;

	ix->ix_end = offset_next(ix->ix_from, OS_FOLIO, ix->ix_last);
	residency_round(ix->ix_file, &ix->ix_from, &ix->ix_end);
	len = (size_t)(ix->ix_end - ix->ix_from);
	ix->ix_room = ix->ix_tier ? tier_fetch_room(ix->ix_from, len) : len;
	if (index_ahead_has(ix) || !pool_room_plenty(dv) ||
	    pool_room_take(dv, ix->ix_room, false, lp, NULL) != 0) {
		index_ahead_free(ix);
		return;
	}
	if (index_ahead_fetch(ix) != 0) {
		pool_room_give(dv, ix->ix_room);
		index_ahead_free(ix);
		return;
	}
	completion_count(lp, COUNTED_AHEAD);
}

/* Drops the pages of a file that is not kept.  A copy (FETCHED_DIRECT) expires on its own. */
static void
index_ahead_arrived(struct index_ahead *ix)
{
	off_t len = ix->ix_end - ix->ix_from;

	residency_fetched(ix->ix_file, ix->ix_from, len);
	if (!ix->ix_drops)
		return;
	drop_behind_add(
	    ix->ix_file, ix->ix_from, len, clock_now() + DROP_LATER);
	pool_dropped(file_priv(ix->ix_file)->fp_loop->lp_pool, (size_t)len);
}

static void
index_ahead_fetched(struct pw_waiter *w)
{
	struct index_ahead *ix = (struct index_ahead *)w;
	int error = w->wt_error;

	pool_room_give(index_ahead_device(ix), ix->ix_room);
	if (error == 0)
		index_ahead_arrived(ix);
	ix->ix_from = ix->ix_end;
	if (error >= 0 && ix->ix_from < ix->ix_last)
		index_ahead_next(ix);
	else
		index_ahead_free(ix);
}

static void
index_ahead_found(struct pw_waiter *w)
{
	struct index_ahead *ix = (struct index_ahead *)w;

	pins_release(index_ahead_pins(ix), &ix->ix_pin);
	if (ix->ix_from < 0) {
		index_ahead_free(ix);
		return;
	}
	ix->ix_last =
	    offset_add(ix->ix_from, INDEX_MOST, ix->ix_file->fil_size);
	index_ahead_next(ix);
}

static struct index_ahead *
index_ahead_create(struct pw_send *s)
{
	struct index_ahead *ix = calloc(1, sizeof(*ix));
	struct pins_key key = pins_key(s->snd_file);

	if (ix == NULL)
		return NULL;
	ix->ix_waiter.wt_done = index_ahead_found;
	ix->ix_waiter.wt_client = send_client(s);
	ix->ix_file = s->snd_file;
	/* The page of the last requested byte is in memory as a whole. */
	ix->ix_known = offset_round_up(send_priv(s)->ss_asked,
	    (off_t)os_page_size(), s->snd_file->fil_size);
	ix->ix_how = send_fetch_how(s);
	ix->ix_tier = send_takes_tier(s);
	ix->ix_use = send_priv(s)->ss_tier_use;
	ix->ix_drops = send_drops(s);
	pw_file_ref(ix->ix_file);
	if (send_priv(s)->ss_direct)
		ix->ix_pin = pins_take_copy(index_ahead_pins(ix), &key, 0);
	return ix;
}

void
send_index_ahead(struct pw_send *s)
{
	struct index_ahead *ix = index_ahead_create(s);
	struct index_job *ij = calloc(1, sizeof(*ij));

	if (ix != NULL && ij != NULL) {
		ij->ij_job.job_run = index_ahead_run;
		ij->ij_job.job_kind = JOB_SHORT;
		ij->ij_index = ix;
		if (pool_submit(index_ahead_device(ix), &ij->ij_job, ADMIT_HINT,
			s->snd_loop, &ix->ix_waiter) == 0)
			return;
	}
	free(ij);
	if (ix != NULL)
		index_ahead_free(ix);
}
