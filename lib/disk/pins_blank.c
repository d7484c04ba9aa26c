/*
 * pins_blank: memory for copies (pins.h), new memory or that of a copy that is not needed.
 */
#include <stdlib.h>

#include "lib/disk/pins_priv.h"
#include "lib/os/meter.h"
#include "lib/util/clock.h"

#define BLANK_LEAST ((size_t)64 << 10) /* least memory of a copy, bytes */

/*
 * Returns a copy that was sent, or has waited for PINS_FRESH_US, or NULL.  The lock is held.
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

/* Returns unused memory of the size, or NULL.  The lock is held. */
static struct pin *
pins_blank_find(struct pins *ps, size_t room)
{
	struct pin *pn;

	TAILQ_FOREACH(pn, &ps->ps_spare, pn_entry)
	if (pn->pn_room == room)
		return pn;
	return NULL;
}

/*
 * Removes unused memory of this size from ps_spare, and returns it.  If there is none, sets *may if the limit
 * permits new memory.  Otherwise removes unused memory of another size, or the least needed copy.  Returns NULL
 * if there is none of these.
 */
static struct pin *
pins_blank_pick(struct pins *ps, size_t room, bool *may)
{
	const uint64_t now = clock_now();
	struct pin *pn, *least;

	meter_lock(&ps->ps_lock);
	pn = pins_blank_find(ps, room);
	*may = pn == NULL && pins_have_room(ps, room);
	if (pn == NULL && !*may) {
		least = TAILQ_EMPTY(&ps->ps_spare)
			    ? pins_blank_least_needed(ps, now)
			    : NULL;
		if (least != NULL)
			pins_let_go(ps, least);
		pn = TAILQ_FIRST(&ps->ps_spare);
	}
	if (pn != NULL)
		TAILQ_REMOVE(&ps->ps_spare, pn, pn_entry);
	pthread_mutex_unlock(&ps->ps_lock);
	return pn;
}

static struct pin *
pins_blank_create(struct pins *ps, size_t room)
{
	struct pin *pn = calloc(1, sizeof(*pn));

	if (pn != NULL)
		pn->pn_map = os_huge_page(room);
	if (pn == NULL || pn->pn_map == NULL) {
		free(pn);
		pins_refuse(ps, room);
		return NULL;
	}
	pn->pn_copy = true;
	pn->pn_room = room;
	pn->pn_pipe = -1;
	return pn;
}

static void
pins_blank_unmap(struct pins *ps, struct pin *pn)
{
	os_unmap(pn->pn_map, pn->pn_room);
	pins_refuse(ps, pn->pn_room);
	free(pn);
}

/* The memory has one of a few sizes, so that most of it is used again. */
struct pin *
pins_blank(struct pins *ps, const struct pins_key *key, size_t len)
{
	size_t room = BLANK_LEAST;
	struct pin *pn;
	bool may;

	while (room < len)
		room *= 2;
	while ((pn = pins_blank_pick(ps, room, &may)) != NULL &&
	       pn->pn_room != room)
		pins_blank_unmap(ps, pn);
	if (may)
		pn = pins_blank_create(ps, room);
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
