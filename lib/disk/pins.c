/*
 * pins: see pins.h.
 */
#include <pthread.h>
#include <stdlib.h>

#include "lib/disk/pins_priv.h"
#include "lib/os/meter.h"
#include "lib/os/os.h"
#include "lib/util/clock.h"

#define PINS_MOST \
	8192 /* maximum number of mappings; a process may have 65530 */
#define PINS_POSTPONED 64 /* maximum number of dead pins that one tick moves */

_Static_assert(offsetof(struct pins, ps_count) == 0, "pins_any");

struct pins *
pins_create(size_t bytes, unsigned pipes)
{
	struct pins *ps = calloc(1, sizeof(*ps));

	if (ps == NULL)
		return NULL;
	pthread_mutex_init(&ps->ps_lock, NULL);
	ps->ps_max = bytes;
	ps->ps_pipes = pipes;
	TAILQ_INIT(&ps->ps_waited);
	TAILQ_INIT(&ps->ps_fresh);
	TAILQ_INIT(&ps->ps_spare);
	TAILQ_INIT(&ps->ps_dead);
	return ps;
}

static size_t
pins_bucket(uint64_t ino, off_t off)
{
	uint64_t hash = (ino + (uint64_t)off / OS_FOLIO) * 0x9e3779b97f4a7c15U;

	return (size_t)(hash >> 56) % PINS_HASH;
}

/*
 * Returns the pin, or if `copies` is true the copy, that has the byte at off, or NULL.  The lock is
 * held, as in all functions up to pins_have_room.
 */
static struct pin *
pins_find(struct pins *ps, const struct pins_key *key, off_t off, bool copies)
{
	struct pin *pn;

	LIST_FOREACH(pn, &ps->ps_hash[pins_bucket(key->pk_ino, off)], pn_link)
	if (pins_end(pn, off) > off && pins_same_key(&pn->pn_key, key) &&
	    (pn->pn_copy || !copies))
		return pn;
	return NULL;
}

/* Moves an unreferenced pin from the table to a list: a copy to ps_spare, a mapping to ps_dead. */
static void
pins_bury(struct pins *ps, struct pin *pn)
{
	LIST_REMOVE(pn, pn_link);
	atomic_fetch_sub(&ps->ps_count, 1);
	if (pn->pn_copy) {
		pn->pn_since = clock_now();
		TAILQ_INSERT_HEAD(&ps->ps_spare, pn, pn_entry);
	} else
		TAILQ_INSERT_TAIL(&ps->ps_dead, pn, pn_entry);
}

/* Returns the list for a pin that is in the table and has no reference. */
static struct pin_list *
pins_list(struct pins *ps, const struct pin *pn)
{
	return pn->pn_copy && !pn->pn_released ? &ps->ps_waited : &ps->ps_fresh;
}

void
pins_let_go(struct pins *ps, struct pin *pn)
{
	TAILQ_REMOVE(pins_list(ps, pn), pn, pn_entry);
	pins_bury(ps, pn);
}

static void
pins_insert(struct pins *ps, struct pin *pn)
{
	LIST_INSERT_HEAD(
	    &ps->ps_hash[pins_bucket(pn->pn_key.pk_ino, pn->pn_off)], pn,
	    pn_link);
	TAILQ_INSERT_TAIL(pins_list(ps, pn), pn, pn_entry);
	atomic_fetch_add(&ps->ps_count, 1);
}

bool
pins_have_room(struct pins *ps, size_t len)
{
	if (ps->ps_bytes + len > ps->ps_max || ps->ps_maps >= PINS_MOST)
		return false;
	ps->ps_bytes += len;
	ps->ps_maps++;
	return true;
}

void
pins_refuse(struct pins *ps, size_t len)
{
	meter_lock(&ps->ps_lock);
	ps->ps_bytes -= len;
	ps->ps_maps--;
	pthread_mutex_unlock(&ps->ps_lock);
}

bool
pins_reserve_pipe(struct pins *ps)
{
	bool yes;

	meter_lock(&ps->ps_lock);
	yes = ps->ps_pipes > 0;
	ps->ps_pipes -= yes;
	pthread_mutex_unlock(&ps->ps_lock);
	return yes;
}

void
pins_no_pipe(struct pins *ps)
{
	meter_lock(&ps->ps_lock);
	ps->ps_pipes++;
	pthread_mutex_unlock(&ps->ps_lock);
}

/* Unmaps a mapping, and cancels its reservation. */
static void
pins_unmap(struct pins *ps, struct os_folio *fo)
{
	os_folio_release(fo);
	if (fo->fo_pipe != -1)
		pins_no_pipe(ps);
	pins_refuse(ps, fo->fo_len);
}

/* Unmaps the pins of a list, and frees them. */
static void
pins_unmap_all(struct pins *ps, struct pin_list *list)
{
	struct os_folio fo;
	struct pin *pn;

	while ((pn = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, pn, pn_entry);
		fo = (struct os_folio){.fo_map = pn->pn_map,
		    .fo_len = pn->pn_copy ? pn->pn_room : pn->pn_len,
		    .fo_pipe = pn->pn_pipe};
		pins_unmap(ps, &fo);
		free(pn);
	}
}

/* Returns the kept mapping that was released first, or NULL.  The lock is held. */
static struct pin *
pins_oldest_kept(struct pins *ps)
{
	struct pin *pn;

	TAILQ_FOREACH(pn, &ps->ps_fresh, pn_entry)
	if (!pn->pn_copy && pn->pn_released)
		return pn;
	return NULL;
}

/* Moves the oldest kept mapping from the table to `list`.  Returns false if there is none. */
static bool
pins_take_kept(struct pins *ps, struct pin_list *list)
{
	struct pin *pn;

	meter_lock(&ps->ps_lock);
	pn = pins_oldest_kept(ps);
	if (pn != NULL) {
		pins_let_go(ps, pn);
		TAILQ_REMOVE(&ps->ps_dead, pn, pn_entry);
		TAILQ_INSERT_TAIL(list, pn, pn_entry);
	}
	pthread_mutex_unlock(&ps->ps_lock);
	return pn != NULL;
}

static bool
pins_try_to_reserve(struct pins *ps, size_t len)
{
	bool yes;

	meter_lock(&ps->ps_lock);
	yes = pins_have_room(ps, len);
	pthread_mutex_unlock(&ps->ps_lock);
	return yes;
}

bool
pins_reserve(struct pins *ps, size_t len)
{
	struct pin_list list = TAILQ_HEAD_INITIALIZER(list);

	while (!pins_try_to_reserve(ps, len)) {
		if (!pins_take_kept(ps, &list))
			return false;
		pins_unmap_all(ps, &list);
	}
	return true;
}

bool
pins_insert_new(struct pins *ps, struct pin *pn, bool copies)
{
	off_t end = pn->pn_off + (off_t)pn->pn_len;
	const struct pin *other;
	bool is_new;

	pn->pn_since = clock_now();
	meter_lock(&ps->ps_lock);
	other = pins_find(ps, &pn->pn_key, pn->pn_off, copies);
	is_new = other == NULL || pins_end(other, pn->pn_off) < end;
	if (is_new)
		pins_insert(ps, pn);
	pthread_mutex_unlock(&ps->ps_lock);
	return is_new;
}

void
pins_add(struct pins *ps, const struct pins_key *key, off_t off,
    const struct os_folio *fo, enum pins_mapping mapping)
{
	struct os_folio own = *fo;
	struct pin *pn = malloc(sizeof(*pn));

	if (pn != NULL) {
		*pn = (struct pin){.pn_key = *key,
		    .pn_off = off,
		    .pn_len = fo->fo_len,
		    .pn_map = fo->fo_map,
		    .pn_pipe = fo->fo_pipe,
		    .pn_mapping = mapping};
		if (pins_insert_new(ps, pn, false))
			return;
	}
	pins_unmap(ps, &own);
	free(pn);
}

static struct pin *
pins_take_kind(
    struct pins *ps, const struct pins_key *key, off_t off, bool copies)
{
	struct pin *pn;

	if (!pins_any(ps))
		return NULL;
	meter_lock(&ps->ps_lock);
	pn = pins_find(ps, key, off, copies);
	if (pn != NULL && pn->pn_refs++ == 0)
		TAILQ_REMOVE(pins_list(ps, pn), pn, pn_entry);
	pthread_mutex_unlock(&ps->ps_lock);
	return pn;
}

struct pin *
pins_take(struct pins *ps, const struct pins_key *key, off_t off)
{
	return pins_take_kind(ps, key, off, false);
}

struct pin *
pins_take_copy(struct pins *ps, const struct pins_key *key, off_t off)
{
	return pins_take_kind(ps, key, off, true);
}

off_t
pins_end(const struct pin *pn, off_t off)
{
	off_t end = pn->pn_off + (off_t)pn->pn_len;

	return off >= pn->pn_off && off < end ? end : off;
}

/* Returns the kept mapping that begins at off, or NULL.  The lock is held. */
static struct pin *
pins_find_kept(struct pins *ps, const struct pins_key *key, off_t off)
{
	struct pin *pn = pins_find(ps, key, off, false);

	return pn != NULL && !pn->pn_copy && pn->pn_mapping == PINS_KEPT &&
		       pn->pn_off == off
		   ? pn
		   : NULL;
}

bool
pins_cover(struct pins *ps, const struct pins_key *key, off_t off, off_t end)
{
	const struct pin *pn;

	meter_lock(&ps->ps_lock);
	pn = pins_find_kept(ps, key, off);
	while (off < end && pn != NULL && !pn->pn_copy) {
		off = pins_end(pn, off);
		pn = pins_find(ps, key, off, false);
	}
	pthread_mutex_unlock(&ps->ps_lock);
	return off >= end;
}

void
pins_unkeep(struct pins *ps, const struct pins_key *key, off_t off)
{
	struct pin *pn;

	meter_lock(&ps->ps_lock);
	pn = pins_find_kept(ps, key, off);
	if (pn != NULL) {
		pn->pn_mapping = PINS_MARKED;
		if (pn->pn_refs == 0 && pn->pn_released)
			pins_let_go(ps, pn);
	}
	pthread_mutex_unlock(&ps->ps_lock);
}

static const char *
pins_pointer(const struct pin *pn, off_t off)
{
	if (pins_end(pn, off) == off)
		return NULL;
	return (const char *)pn->pn_map + (off - pn->pn_off);
}

const char *
pins_copy(const struct pin *pn, off_t off)
{
	return pn != NULL && pn->pn_copy ? pins_pointer(pn, off) : NULL;
}

const char *
pins_mapping(const struct pin *pn, off_t off)
{
	return pn != NULL && !pn->pn_copy ? pins_pointer(pn, off) : NULL;
}

/* pins_unkeep may make PINS_MARKED of PINS_KEPT between two reads of pn_mapping. */
bool
pins_marked(const struct pin *pn)
{
	return pn != NULL && pn->pn_mapping != PINS_UNMARKED;
}

void *
pins_memory(struct pin *pn)
{
	return pn->pn_map;
}

/*
 * Puts an unreferenced pin on ps_fresh if the pin is a copy or a kept mapping, else removes the pin.
 * The lock is held.
 */
static void
pins_released(struct pins *ps, struct pin *pn)
{
	if (!pn->pn_copy && pn->pn_mapping != PINS_KEPT) {
		pins_bury(ps, pn);
		return;
	}
	pn->pn_released = true;
	pn->pn_since = clock_now();
	TAILQ_INSERT_TAIL(&ps->ps_fresh, pn, pn_entry);
}

void
pins_release(struct pins *ps, struct pin **pnp)
{
	struct pin *pn = *pnp;

	if (pn == NULL)
		return;
	*pnp = NULL;
	meter_lock(&ps->ps_lock);
	if (--pn->pn_refs == 0)
		pins_released(ps, pn);
	pthread_mutex_unlock(&ps->ps_lock);
}

void
pins_forget(struct pins *ps, uint64_t dev, uint64_t ino, off_t off, off_t end)
{
	struct pin *pn, *next;

	meter_lock(&ps->ps_lock);
	for (pn = TAILQ_FIRST(&ps->ps_fresh); pn != NULL; pn = next) {
		next = TAILQ_NEXT(pn, pn_entry);
		if (!pn->pn_copy && pn->pn_key.pk_dev == dev &&
		    pn->pn_key.pk_ino == ino && pn->pn_off < end &&
		    pn->pn_off + (off_t)pn->pn_len > off)
			pins_let_go(ps, pn);
	}
	pthread_mutex_unlock(&ps->ps_lock);
}

/*
 * Removes pins that no transmission took in time, and memory that was unused for PINS_SPARE_US.
 * The lock is held.
 */
static void
pins_age(struct pins *ps, uint64_t now_us)
{
	struct pin *pn;

	while ((pn = TAILQ_FIRST(&ps->ps_fresh)) != NULL &&
	       now_us > pn->pn_since + PINS_FRESH_US)
		pins_let_go(ps, pn);
	while ((pn = TAILQ_FIRST(&ps->ps_waited)) != NULL &&
	       now_us > pn->pn_since + PINS_WAITED_US)
		pins_let_go(ps, pn);
	while ((pn = TAILQ_LAST(&ps->ps_spare, pin_list)) != NULL &&
	       now_us > pn->pn_since + PINS_SPARE_US) {
		TAILQ_REMOVE(&ps->ps_spare, pn, pn_entry);
		TAILQ_INSERT_TAIL(&ps->ps_dead, pn, pn_entry);
	}
}

/*
 * Moves the first dead pins to the end if they are of this device, whose threads may hang, so that the next tick
 * finds a pin of another device.  The lock is held.
 */
static void
pins_postpone(struct pins *ps, uint64_t dev)
{
	struct pin *pn;
	unsigned n;

	for (n = 0; n < PINS_POSTPONED; n++) {
		pn = TAILQ_FIRST(&ps->ps_dead);
		if (pn->pn_key.pk_dev != dev)
			return;
		TAILQ_REMOVE(&ps->ps_dead, pn, pn_entry);
		TAILQ_INSERT_TAIL(&ps->ps_dead, pn, pn_entry);
	}
}

bool
pins_tick(struct pins *ps, uint64_t now_us, uint64_t *dev)
{
	struct pin *pn;

	meter_lock(&ps->ps_lock);
	pins_age(ps, now_us);
	pn = TAILQ_FIRST(&ps->ps_dead);
	if (pn != NULL) {
		*dev = pn->pn_key.pk_dev;
		pins_postpone(ps, *dev);
	}
	pthread_mutex_unlock(&ps->ps_lock);
	return pn != NULL;
}

/* Moves the dead pins of a device, or of all devices if dev is NULL, to `list`. */
static void
pins_collect(struct pins *ps, const uint64_t *dev, struct pin_list *list)
{
	struct pin *pn, *next;

	meter_lock(&ps->ps_lock);
	for (pn = TAILQ_FIRST(&ps->ps_dead); pn != NULL; pn = next) {
		next = TAILQ_NEXT(pn, pn_entry);
		if (dev != NULL && pn->pn_key.pk_dev != *dev)
			continue;
		TAILQ_REMOVE(&ps->ps_dead, pn, pn_entry);
		TAILQ_INSERT_TAIL(list, pn, pn_entry);
	}
	pthread_mutex_unlock(&ps->ps_lock);
}

void
pins_reap(struct pins *ps, uint64_t dev)
{
	struct pin_list list = TAILQ_HEAD_INITIALIZER(list);

	pins_collect(ps, &dev, &list);
	pins_unmap_all(ps, &list);
}

size_t
pins_bytes(struct pins *ps)
{
	size_t bytes;

	meter_lock(&ps->ps_lock);
	bytes = ps->ps_bytes;
	pthread_mutex_unlock(&ps->ps_lock);
	return bytes;
}

void
pins_destroy(struct pins **psp)
{
	struct pin_list list = TAILQ_HEAD_INITIALIZER(list);
	struct pins *ps = *psp;
	struct pin *pn;

	if (ps == NULL)
		return;
	*psp = NULL;
	for (size_t i = 0; i < PINS_HASH; i++)
		while ((pn = LIST_FIRST(&ps->ps_hash[i])) != NULL)
			pins_bury(ps, pn);
	TAILQ_CONCAT(&ps->ps_dead, &ps->ps_spare, pn_entry);
	pins_collect(ps, NULL, &list);
	pins_unmap_all(ps, &list);
	pthread_mutex_destroy(&ps->ps_lock);
	free(ps);
}
