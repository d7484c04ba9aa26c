/*
 * frequent: see frequent.h.  A table has one entry for each window, by a hash of its file and offset; a
 * window replaces another one of the same hash.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/disk/completion.h"
#include "lib/disk/file_private.h"
#include "lib/disk/pool.h"
#include "lib/send/path.h"
#include "lib/send/frequent.h"
#include "lib/util/clock.h"
#include "lib/util/offset.h"

#define SLOTS_SHIFT 9 /* the table has 2^9 entries */
#define REST \
	5000000	   /* pause after a window could not be locked, microseconds */
#define PENDING 16 /* most jobs in flight */

struct frequent_slot {
	uint64_t sl_window; /* hash of the file and the offset */
	uint64_t sl_since;  /* time of the first chunk, microseconds */
	unsigned sl_sends;
};

struct frequent {
	struct frequent_slot fr_slots[1 << SLOTS_SHIFT];
	uint64_t fr_rest; /* end of the pause, microseconds */
	unsigned fr_pending;
};

struct frequent_pin {
	struct pw_waiter
	    pp_waiter; /* first member, since the callback casts it */
	struct pw_file *pp_file;
};

struct frequent *
frequent_create(void)
{
	return calloc(1, sizeof(struct frequent));
}

void
frequent_destroy(struct frequent **popp)
{
	free(*popp);
	*popp = NULL;
}

static void
frequent_pin_free(struct frequent_pin *pp)
{
	pw_file_unref(&pp->pp_file);
	free(pp);
}

static void
frequent_pin_done(struct pw_waiter *w)
{
	struct frequent_pin *pp = (struct frequent_pin *)w;
	struct frequent *fr = file_priv(pp->pp_file)->fp_loop->lp_frequent;

	fr->fr_pending--;
	if (w->wt_error == -ENOMEM)
		fr->fr_rest = clock_now() + REST;
	frequent_pin_free(pp);
}

/* Has a disk thread pin the window of the byte at off. */
static void
frequent_pin(struct frequent *fr, struct pw_file *file, off_t off)
{
	off_t from = off - off % (off_t)OS_FOLIO;
	size_t len =
	    (size_t)(offset_add(from, OS_FOLIO, file->fil_size) - from);
	struct frequent_pin *pp = calloc(1, sizeof(*pp));

	if (pp == NULL)
		return;
	pp->pp_waiter.wt_done = frequent_pin_done;
	pp->pp_file = file;
	pw_file_ref(file);
	if (pool_pin(file, from, len, &pp->pp_waiter) != 0)
		frequent_pin_free(pp);
	else
		fr->fr_pending++;
}

/* Returns the number of chunks of the window that were sent within FREQUENT_SPAN, this one included. */
static unsigned
frequent_count(struct frequent *fr, uint64_t window, uint64_t now_us)
{
	struct frequent_slot *sl = &fr->fr_slots[window >> (64 - SLOTS_SHIFT)];

	if (sl->sl_window != window || now_us - sl->sl_since > FREQUENT_SPAN)
		*sl = (struct frequent_slot){
		    .sl_window = window, .sl_since = now_us};
	return ++sl->sl_sends;
}

void
frequent_note(struct pw_send *s, uint64_t now_us)
{
	struct frequent *fr = s->snd_loop->lp_frequent;
	const struct pw_file *file = s->snd_file;
	uint64_t window = file->fil_dev + file->fil_ino * 31 +
			  (uint64_t)s->snd_off / OS_FOLIO * 1000003;

	if (file->fil_size < FREQUENT_LEAST || s->snd_cache == PW_CACHE_DROP ||
	    !send_can_map(s))
		return;
	if (frequent_count(fr, window * 0x9e3779b97f4a7c15U, now_us) ==
		FREQUENT_SENDS &&
	    now_us >= fr->fr_rest && fr->fr_pending < PENDING)
		frequent_pin(fr, s->snd_file, s->snd_off);
}
