/*
 * budget: see budget.h.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib/disk/budget.h"
#include "lib/disk/completion.h"
#include "lib/disk/pool.h"
#include "lib/os/meter.h"
#include "lib/util/check.h"
#include "lib/util/clock.h"

#define ALPHA	   2
#define SHRINK	   8 /* a reduction takes 1/SHRINK of the present size */
/* minimum time between two reductions of the budget, microseconds */
#define SHRINK_US  100000
#define LEAST	   16 /* at 1/LEAST of its first size the budget stops shrinking */
#define GROW	   64
#define GROW_AFTER 1000000 /* time from reduction to growth, microseconds */
#define TICK_US	   250000
/* time that a transfer waits before it bypasses the budget, microseconds */
#define HELD_US	   1000000
#define FORCED	   16 /* a tick may exceed the budget by about 1/FORCED of it */

struct held {
	struct pw_waiter *hl_waiter;
	size_t hl_len;
	uint64_t hl_since;
	STAILQ_ENTRY(held) hl_link;
};

struct budget {
	pthread_mutex_t bg_lock;
	size_t bg_most; /* first size of the budget, bytes */
	size_t bg_max;	/* present size, bytes */
	size_t bg_used;
	uint64_t bg_shrunk; /* time of the last reduction, microseconds */
	uint64_t bg_ticked;
	TAILQ_HEAD(, budget_part) bg_parts; /* devices with waiters */
};

struct budget *
budget_create(size_t max)
{
	struct budget *rm = calloc(1, sizeof(*rm));

	if (rm == NULL)
		return NULL;
	pthread_mutex_init(&rm->bg_lock, NULL);
	rm->bg_most = rm->bg_max = max;
	TAILQ_INIT(&rm->bg_parts);
	return rm;
}

void
budget_destroy(struct budget **rmp)
{
	struct budget *rm = *rmp;

	if (rm == NULL)
		return;
	*rmp = NULL;
	pthread_mutex_destroy(&rm->bg_lock);
	free(rm);
}

void
budget_part_init(struct budget_part *rp)
{
	STAILQ_INIT(&rp->rp_held[0]);
	STAILQ_INIT(&rp->rp_held[1]);
}

/* Returns the free bytes.  The lock is held, as in all static functions before budget_tell. */
static size_t
budget_left(const struct budget *rm)
{
	return rm->bg_used < rm->bg_max ? rm->bg_max - rm->bg_used : 0;
}

/*
 * Returns true if `len` bytes fit.  A device that uses no budget may have one window of any size.
 */
static bool
budget_fits(const struct budget *rm, const struct budget_part *rp, size_t len)
{
	return rp->rp_used == 0 || rp->rp_used + len <= ALPHA * budget_left(rm);
}

static void
budget_use(struct budget *rm, struct budget_part *rp, size_t len)
{
	rm->bg_used += len;
	rp->rp_used += len;
}

static void
budget_hold(
    struct budget *rm, struct budget_part *rp, struct held *hl, bool slow)
{
	STAILQ_INSERT_TAIL(&rp->rp_held[slow], hl, hl_link);
	if (rp->rp_nheld++ == 0)
		TAILQ_INSERT_TAIL(&rm->bg_parts, rp, rp_link);
}

static struct held_list *
budget_next_list(struct budget_part *rp)
{
	bool slow = rp->rp_round % BUDGET_SLOW == BUDGET_SLOW - 1;

	return &rp->rp_held[STAILQ_EMPTY(&rp->rp_held[slow]) ? !slow : slow];
}

static struct held *
budget_let_in(struct budget *rm, struct budget_part *rp, struct held_list *list)
{
	struct held *hl = STAILQ_FIRST(list);

	budget_use(rm, rp, hl->hl_len);
	rp->rp_round++;
	STAILQ_REMOVE_HEAD(list, hl_link);
	TAILQ_REMOVE(&rm->bg_parts, rp, rp_link);
	if (--rp->rp_nheld > 0)
		TAILQ_INSERT_TAIL(&rm->bg_parts, rp, rp_link);
	return hl;
}

/* Admits the first waiter whose window fits.  Returns the waiter, or NULL if there is none. */
static struct held *
budget_let_anybody_in(struct budget *rm)
{
	struct held_list *list;
	struct budget_part *rp;

	TAILQ_FOREACH(rp, &rm->bg_parts, rp_link)
	{
		list = budget_next_list(rp);
		if (budget_fits(rm, rp, STAILQ_FIRST(list)->hl_len))
			return budget_let_in(rm, rp, list);
	}
	return NULL;
}

/* Returns true if the transfer was cancelled.  It returns its bytes as soon as its waiter is delivered. */
static bool
budget_has_left(const struct held *hl)
{
	return __atomic_load_n(&hl->hl_waiter->wt_client, __ATOMIC_RELAXED) ==
	       POOL_LEFT;
}

/*
 * Admits the first waiter of a list that was held for HELD_US, or has left.  Returns the waiter, or NULL if there is none.
 */
static struct held *
budget_force_in(struct budget *rm, uint64_t now_us)
{
	struct budget_part *rp;
	struct held *hl;
	int i;

	TAILQ_FOREACH(rp, &rm->bg_parts, rp_link)
	for (i = 0; i < 2; i++) {
		hl = STAILQ_FIRST(&rp->rp_held[i]);
		if (hl != NULL &&
		    (now_us >= hl->hl_since + HELD_US || budget_has_left(hl)))
			return budget_let_in(rm, rp, &rp->rp_held[i]);
	}
	return NULL;
}

/* Delivers the waiters of admitted entries, and frees the entries.  The lock is not held. */
static void
budget_tell(struct held_list *ready)
{
	struct held *hl;

	while ((hl = STAILQ_FIRST(ready)) != NULL) {
		STAILQ_REMOVE_HEAD(ready, hl_link);
		completion_deliver(hl->hl_waiter, 0);
		free(hl);
	}
}

static struct held *
budget_held_create(size_t len, struct pw_waiter *w)
{
	struct held *hl = calloc(1, sizeof(*hl));

	if (hl == NULL)
		return NULL;
	hl->hl_waiter = w;
	hl->hl_len = len;
	hl->hl_since = clock_now();
	return hl;
}

int
budget_take(struct budget *rm, struct budget_part *rp, size_t len, bool slow,
    struct pw_waiter *w)
{
	struct held *hl = w == NULL ? NULL : budget_held_create(len, w);
	int error = 0;

	meter_lock(&rm->bg_lock);
	if (rp->rp_nheld == 0 && budget_fits(rm, rp, len))
		budget_use(rm, rp, len);
	else if (hl == NULL)
		error = w == NULL ? -EAGAIN : -ENOMEM;
	else {
		budget_hold(rm, rp, hl, slow);
		error = -EINPROGRESS;
	}
	pthread_mutex_unlock(&rm->bg_lock);
	if (error != -EINPROGRESS)
		free(hl);
	return error;
}

void
budget_give(struct budget *rm, struct budget_part *rp, size_t len)
{
	struct held_list ready = STAILQ_HEAD_INITIALIZER(ready);
	struct held *hl;

	meter_lock(&rm->bg_lock);
	PW_CHECK(len <= rm->bg_used && len <= rp->rp_used);
	rm->bg_used -= len;
	rp->rp_used -= len;
	while ((hl = budget_let_anybody_in(rm)) != NULL)
		STAILQ_INSERT_TAIL(&ready, hl, hl_link);
	pthread_mutex_unlock(&rm->bg_lock);
	budget_tell(&ready);
}

bool
budget_plenty(struct budget *rm, struct budget_part *rp, unsigned part)
{
	bool plenty;

	meter_lock(&rm->bg_lock);
	plenty = rp->rp_used < budget_left(rm) / part;
	pthread_mutex_unlock(&rm->bg_lock);
	return plenty;
}

bool
budget_is_waited_for(struct budget *rm)
{
	bool waits;

	meter_lock(&rm->bg_lock);
	waits = !TAILQ_EMPTY(&rm->bg_parts);
	pthread_mutex_unlock(&rm->bg_lock);
	return waits;
}

size_t
budget_used(struct budget *rm)
{
	size_t used;

	meter_lock(&rm->bg_lock);
	used = rm->bg_used;
	pthread_mutex_unlock(&rm->bg_lock);
	return used;
}

size_t
budget_max(struct budget *rm)
{
	size_t max;

	meter_lock(&rm->bg_lock);
	max = rm->bg_max;
	pthread_mutex_unlock(&rm->bg_lock);
	return max;
}

void
budget_evicted(struct budget *rm, uint64_t now_us)
{
	meter_lock(&rm->bg_lock);
	if (now_us >= rm->bg_shrunk + SHRINK_US &&
	    rm->bg_max > rm->bg_most / LEAST) {
		rm->bg_max -= rm->bg_max / SHRINK;
		rm->bg_shrunk = now_us;
	}
	pthread_mutex_unlock(&rm->bg_lock);
}

/* Enlarges the budget if it did not shrink for GROW_AFTER.  The lock is held. */
static void
budget_grow(struct budget *rm, uint64_t now_us)
{
	size_t n = rm->bg_most - rm->bg_max;

	if (n > rm->bg_most / GROW)
		n = rm->bg_most / GROW;
	if (now_us >= rm->bg_shrunk + GROW_AFTER)
		rm->bg_max += n;
}

void
budget_tick(struct budget *rm, uint64_t now_us)
{
	struct held_list ready = STAILQ_HEAD_INITIALIZER(ready);
	struct held *hl;
	size_t forced = 0;

	meter_lock(&rm->bg_lock);
	if (now_us >= rm->bg_ticked + TICK_US) {
		rm->bg_ticked = now_us;
		budget_grow(rm, now_us);
		while (forced <= rm->bg_max / FORCED &&
		       (hl = budget_force_in(rm, now_us)) != NULL) {
			if (!budget_has_left(hl))
				forced += hl->hl_len;
			STAILQ_INSERT_TAIL(&ready, hl, hl_link);
		}
	}
	pthread_mutex_unlock(&rm->bg_lock);
	budget_tell(&ready);
}
