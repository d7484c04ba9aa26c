/*
 * pins_blank: memory for copies (pins.h), new memory or that of a copy that is not needed.
 */
#include <stdlib.h>

#include "lib/disk/pins_priv.h"
#include "lib/os/meter.h"
#include "lib/util/clock.h"

/*
 * Returns a copy that was sent, or has waited for PINS_FRESH_US, or NULL.  The lock is held, as in
 * pins_blank_spare.
 */
static struct pin *
pins_blank_least_needed(struct pins *ps, uint64_t now_us)
{
	struct pin *pn;

	TAILQ_FOREACH(pn, &ps->ps_fresh, pn_entry)
	if (pn->pn_copy)
		return pn;
	pn = TAILQ_FIRST(&ps->ps_waited);
	return pn != NULL && now_us > pn->pn_since + PINS_FRESH_US ? pn : NULL;
}

/*
 * Removes a pin from ps_spare and returns it.  If that list is empty, removes the least needed copy
 * instead.  Returns NULL if no copy can be removed.
 */
static struct pin *
pins_blank_spare(struct pins *ps, uint64_t now_us)
{
	struct pin *pn = TAILQ_FIRST(&ps->ps_spare);

	if (pn == NULL) {
		pn = pins_blank_least_needed(ps, now_us);
		if (pn == NULL)
			return NULL;
		pins_let_go(ps, pn);
	}
	TAILQ_REMOVE(&ps->ps_spare, pn, pn_entry);
	return pn;
}

static struct pin *
pins_blank_create(struct pins *ps)
{
	struct pin *pn = calloc(1, sizeof(*pn));

	if (pn != NULL)
		pn->pn_map = os_huge_page(OS_FOLIO);
	if (pn == NULL || pn->pn_map == NULL) {
		free(pn);
		pins_refuse(ps, OS_FOLIO);
		return NULL;
	}
	pn->pn_copy = true;
	pn->pn_pipe = -1;
	return pn;
}

struct pin *
pins_blank(struct pins *ps, const struct pins_key *key)
{
	uint64_t now = clock_now();
	struct pin *pn = NULL;
	bool room;

	meter_lock(&ps->ps_lock);
	room = TAILQ_EMPTY(&ps->ps_spare) && pins_have_room(ps, OS_FOLIO);
	if (!room)
		pn = pins_blank_spare(ps, now);
	pthread_mutex_unlock(&ps->ps_lock);
	if (room)
		pn = pins_blank_create(ps);
	if (pn != NULL)
		pn->pn_key = *key;
	return pn;
}

void
pins_blank_free(struct pins *ps, struct pin *pn)
{
	pn->pn_since = clock_now();
	meter_lock(&ps->ps_lock);
	TAILQ_INSERT_HEAD(&ps->ps_spare, pn, pn_entry);
	pthread_mutex_unlock(&ps->ps_lock);
}

static void
pins_blank_add(
    struct pins *ps, struct pin *pn, off_t off, size_t len, bool copies)
{
	pn->pn_off = off;
	pn->pn_len = len;
	pn->pn_released = false;
	if (!pins_insert_new(ps, pn, copies))
		pins_blank_free(ps, pn);
}

void
pins_add_copy(struct pins *ps, struct pin *pn, off_t off, size_t len)
{
	pins_blank_add(ps, pn, off, len, false);
}

void
pins_add_lent(struct pins *ps, struct pin *pn, off_t off, size_t len)
{
	pins_blank_add(ps, pn, off, len, true);
}
