/*
 * pins: see pins.h.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "lib/disk/pins.h"
#include "lib/os/meter.h"
#include "lib/os/os.h"
#include "lib/util/clock.h"

#define PINS_HASH 256
#define PINS_MOST 8192 /* mappings: a process may have 65530 */

TAILQ_HEAD(pin_list, pin);

struct pin {
	uint64_t pn_dev;
	uint64_t pn_ino;
	off_t pn_off;
	size_t pn_len;
	void *pn_map;
	unsigned pn_refs;
	uint64_t pn_since; /* microseconds */
	LIST_ENTRY(pin) pn_link;
	TAILQ_ENTRY(pin) pn_entry; /* of ps_fresh or ps_dead */
};

struct pins {
	atomic_uint ps_count;	 /* pins in ps_hash; first: pins_any */
	pthread_mutex_t ps_lock; /* of all but ps_max */
	size_t ps_max;		 /* bytes */
	size_t ps_bytes;	 /* reserved, pinned, or to be unmapped */
	unsigned ps_maps;	 /* the same, in number */
	LIST_HEAD(, pin) ps_hash[PINS_HASH];
	struct pin_list
	    ps_fresh; /* without a reference so far; the oldest first */
	struct pin_list ps_dead; /* to be unmapped */
};

_Static_assert(offsetof(struct pins, ps_count) == 0, "pins_any");

struct pins *
pins_create(size_t bytes)
{
	struct pins *ps = calloc(1, sizeof(*ps));

	if (ps == NULL)
		return NULL;
	pthread_mutex_init(&ps->ps_lock, NULL);
	ps->ps_max = bytes;
	TAILQ_INIT(&ps->ps_fresh);
	TAILQ_INIT(&ps->ps_dead);
	return ps;
}

static size_t
pins_bucket(uint64_t ino, off_t off)
{
	uint64_t hash = (ino + (uint64_t)off / OS_FOLIO) * 0x9e3779b97f4a7c15U;

	return (size_t)(hash >> 56) % PINS_HASH;
}

/* The lock is held, as in the next three. */
static struct pin *
pins_find(struct pins *ps, uint64_t dev, uint64_t ino, off_t off)
{
	struct pin *pn;

	LIST_FOREACH(pn, &ps->ps_hash[pins_bucket(ino, off)], pn_link)
	if (pn->pn_ino == ino && pn->pn_dev == dev && pins_end(pn, off) > off)
		return pn;
	return NULL;
}

/* Queues a pin without references to be unmapped. */
static void
pins_bury(struct pins *ps, struct pin *pn)
{
	LIST_REMOVE(pn, pn_link);
	atomic_fetch_sub(&ps->ps_count, 1);
	TAILQ_INSERT_TAIL(&ps->ps_dead, pn, pn_entry);
}

static void
pins_insert(struct pins *ps, struct pin *pn)
{
	LIST_INSERT_HEAD(
	    &ps->ps_hash[pins_bucket(pn->pn_ino, pn->pn_off)], pn, pn_link);
	TAILQ_INSERT_TAIL(&ps->ps_fresh, pn, pn_entry);
	atomic_fetch_add(&ps->ps_count, 1);
}

bool
pins_reserve(struct pins *ps, size_t len)
{
	bool yes;

	meter_lock(&ps->ps_lock);
	yes = ps->ps_bytes + len <= ps->ps_max && ps->ps_maps < PINS_MOST;
	if (yes) {
		ps->ps_bytes += len;
		ps->ps_maps++;
	}
	pthread_mutex_unlock(&ps->ps_lock);
	return yes;
}

void
pins_refuse(struct pins *ps, size_t len)
{
	meter_lock(&ps->ps_lock);
	ps->ps_bytes -= len;
	ps->ps_maps--;
	pthread_mutex_unlock(&ps->ps_lock);
}

/* Takes its bytes out of the account as well. */
static void
pins_unmap(struct pins *ps, void *map, size_t len)
{
	os_unmap(map, len);
	pins_refuse(ps, len);
}

void
pins_add(struct pins *ps, uint64_t dev, uint64_t ino, off_t off, size_t len,
    void *map)
{
	struct pin *pn = malloc(sizeof(*pn));
	bool twice;

	if (pn == NULL) {
		pins_unmap(ps, map, len);
		return;
	}
	*pn = (struct pin){.pn_dev = dev,
	    .pn_ino = ino,
	    .pn_off = off,
	    .pn_len = len,
	    .pn_map = map,
	    .pn_since = clock_now()};
	meter_lock(&ps->ps_lock);
	twice = pins_find(ps, dev, ino, off) != NULL;
	if (!twice)
		pins_insert(ps, pn);
	pthread_mutex_unlock(&ps->ps_lock);
	if (!twice)
		return;
	pins_unmap(ps, map, len);
	free(pn);
}

struct pin *
pins_take(struct pins *ps, uint64_t dev, uint64_t ino, off_t off)
{
	struct pin *pn;

	if (!pins_any(ps))
		return NULL;
	meter_lock(&ps->ps_lock);
	pn = pins_find(ps, dev, ino, off);
	if (pn != NULL && pn->pn_refs++ == 0)
		TAILQ_REMOVE(&ps->ps_fresh, pn, pn_entry);
	pthread_mutex_unlock(&ps->ps_lock);
	return pn;
}

off_t
pins_end(const struct pin *pn, off_t off)
{
	off_t end = pn->pn_off + (off_t)pn->pn_len;

	return off >= pn->pn_off && off < end ? end : off;
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
		pins_bury(ps, pn);
	pthread_mutex_unlock(&ps->ps_lock);
}

/* The lock is held. */
static void
pins_let_go(struct pins *ps, struct pin *pn)
{
	TAILQ_REMOVE(&ps->ps_fresh, pn, pn_entry);
	pins_bury(ps, pn);
}

void
pins_forget(struct pins *ps, uint64_t dev, uint64_t ino, off_t off, off_t end)
{
	struct pin *pn, *next;

	meter_lock(&ps->ps_lock);
	for (pn = TAILQ_FIRST(&ps->ps_fresh); pn != NULL; pn = next) {
		next = TAILQ_NEXT(pn, pn_entry);
		if (pn->pn_dev == dev && pn->pn_ino == ino &&
		    pn->pn_off < end && pn->pn_off + (off_t)pn->pn_len > off)
			pins_let_go(ps, pn);
	}
	pthread_mutex_unlock(&ps->ps_lock);
}

bool
pins_tick(struct pins *ps, uint64_t now_us, uint64_t *dev)
{
	struct pin *pn;

	meter_lock(&ps->ps_lock);
	while ((pn = TAILQ_FIRST(&ps->ps_fresh)) != NULL &&
	       now_us > pn->pn_since + PINS_FRESH_US)
		pins_let_go(ps, pn);
	pn = TAILQ_FIRST(&ps->ps_dead);
	if (pn != NULL)
		*dev = pn->pn_dev;
	pthread_mutex_unlock(&ps->ps_lock);
	return pn != NULL;
}

/* Takes those of a device, or of all, out of the dead. */
static void
pins_collect(struct pins *ps, const uint64_t *dev, struct pin_list *list)
{
	struct pin *pn, *next;

	meter_lock(&ps->ps_lock);
	for (pn = TAILQ_FIRST(&ps->ps_dead); pn != NULL; pn = next) {
		next = TAILQ_NEXT(pn, pn_entry);
		if (dev != NULL && pn->pn_dev != *dev)
			continue;
		TAILQ_REMOVE(&ps->ps_dead, pn, pn_entry);
		TAILQ_INSERT_TAIL(list, pn, pn_entry);
	}
	pthread_mutex_unlock(&ps->ps_lock);
}

static void
pins_unmap_all(struct pins *ps, struct pin_list *list)
{
	struct pin *pn;

	while ((pn = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, pn, pn_entry);
		pins_unmap(ps, pn->pn_map, pn->pn_len);
		free(pn);
	}
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
	pins_collect(ps, NULL, &list);
	pins_unmap_all(ps, &list);
	pthread_mutex_destroy(&ps->ps_lock);
	free(ps);
}
