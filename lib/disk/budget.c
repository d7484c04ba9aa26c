/*
 * budget: see budget.h.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib/disk/budget.h"
#include "lib/disk/completion.h"
#include "lib/os/meter.h"
#include "lib/util/check.h"
#include "lib/util/clock.h"

#define ALPHA	   2
#define SHRINK	   8	  /* an eighth of what it is, ... */
#define SHRINK_US  100000 /* ... so often at most */
#define LEAST	   16	  /* of what it was at first */
#define GROW	   64
#define GROW_AFTER 1000000 /* microseconds since something was evicted */
#define TICK_US	   250000
#define HELD_US	   1000000 /* who is held for longer goes past the budget, ... */
#define FORCED	   16	   /* ... in a tick so much of it */

struct held {
	struct pw_waiter *hl_waiter;
	size_t hl_len;
	uint64_t hl_since;
	STAILQ_ENTRY(held) hl_link;
};

struct room {
	pthread_mutex_t rm_lock;
	size_t rm_most; /* as it was made */
	size_t rm_max;	/* now */
	size_t rm_used;
	uint64_t rm_shrunk; /* microseconds */
	uint64_t rm_ticked;
	TAILQ_HEAD(, room_part) rm_parts; /* that hold somebody, in turn */
};

struct room *
room_create(size_t max)
{
	struct room *rm = calloc(1, sizeof(*rm));

	if (rm == NULL)
		return NULL;
	pthread_mutex_init(&rm->rm_lock, NULL);
	rm->rm_most = rm->rm_max = max;
	TAILQ_INIT(&rm->rm_parts);
	return rm;
}

void
room_destroy(struct room **rmp)
{
	struct room *rm = *rmp;

	if (rm == NULL)
		return;
	*rmp = NULL;
	pthread_mutex_destroy(&rm->rm_lock);
	free(rm);
}

void
room_part_init(struct room_part *rp)
{
	STAILQ_INIT(&rp->rp_held[0]);
	STAILQ_INIT(&rp->rp_held[1]);
}

/* Lock is held, as for all static functions up to tell. */
static size_t
left(const struct room *rm)
{
	return rm->rm_used < rm->rm_max ? rm->rm_max - rm->rm_used : 0;
}

/* A device that has nothing may always have one window. */
static bool
fits(const struct room *rm, const struct room_part *rp, size_t len)
{
	return rp->rp_used == 0 || rp->rp_used + len <= ALPHA * left(rm);
}

static void
use(struct room *rm, struct room_part *rp, size_t len)
{
	rm->rm_used += len;
	rp->rp_used += len;
}

static void
hold(struct room *rm, struct room_part *rp, struct held *hl, bool slow)
{
	STAILQ_INSERT_TAIL(&rp->rp_held[slow], hl, hl_link);
	if (rp->rp_nheld++ == 0)
		TAILQ_INSERT_TAIL(&rm->rm_parts, rp, rp_link);
}

static struct held_list *
next_list(struct room_part *rp)
{
	bool slow = rp->rp_turn % ROOM_SLOW == ROOM_SLOW - 1;

	return &rp->rp_held[STAILQ_EMPTY(&rp->rp_held[slow]) ? !slow : slow];
}

static struct held *
let_in(struct room *rm, struct room_part *rp, struct held_list *list)
{
	struct held *hl = STAILQ_FIRST(list);

	use(rm, rp, hl->hl_len);
	rp->rp_turn++;
	STAILQ_REMOVE_HEAD(list, hl_link);
	TAILQ_REMOVE(&rm->rm_parts, rp, rp_link);
	if (--rp->rp_nheld > 0)
		TAILQ_INSERT_TAIL(&rm->rm_parts, rp, rp_link);
	return hl;
}

/* The first for whom there is room; NULL: nobody. */
static struct held *
let_anybody_in(struct room *rm)
{
	struct held_list *list;
	struct room_part *rp;

	TAILQ_FOREACH(rp, &rm->rm_parts, rp_link)
	{
		list = next_list(rp);
		if (fits(rm, rp, STAILQ_FIRST(list)->hl_len))
			return let_in(rm, rp, list);
	}
	return NULL;
}

/* The first who has been held for too long; NULL: nobody. */
static struct held *
force_in(struct room *rm, uint64_t now_us)
{
	struct room_part *rp;
	struct held *hl;
	int i;

	TAILQ_FOREACH(rp, &rm->rm_parts, rp_link)
	for (i = 0; i < 2; i++) {
		hl = STAILQ_FIRST(&rp->rp_held[i]);
		if (hl != NULL && now_us >= hl->hl_since + HELD_US)
			return let_in(rm, rp, &rp->rp_held[i]);
	}
	return NULL;
}

/* Lock is not held. */
static void
tell(struct held_list *ready)
{
	struct held *hl;

	while ((hl = STAILQ_FIRST(ready)) != NULL) {
		STAILQ_REMOVE_HEAD(ready, hl_link);
		loop_deliver(hl->hl_waiter, 0);
		free(hl);
	}
}

static struct held *
held_create(size_t len, struct pw_waiter *w)
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
room_take(struct room *rm, struct room_part *rp, size_t len, bool slow,
    struct pw_waiter *w)
{
	struct held *hl = w == NULL ? NULL : held_create(len, w);
	int error = 0;

	meter_lock(&rm->rm_lock);
	if (rp->rp_nheld == 0 && fits(rm, rp, len))
		use(rm, rp, len);
	else if (hl == NULL)
		error = w == NULL ? -EAGAIN : -ENOMEM;
	else {
		hold(rm, rp, hl, slow);
		error = -EINPROGRESS;
	}
	pthread_mutex_unlock(&rm->rm_lock);
	if (error != -EINPROGRESS)
		free(hl);
	return error;
}

void
room_give(struct room *rm, struct room_part *rp, size_t len)
{
	struct held_list ready = STAILQ_HEAD_INITIALIZER(ready);
	struct held *hl;

	meter_lock(&rm->rm_lock);
	PW_CHECK(len <= rm->rm_used && len <= rp->rp_used);
	rm->rm_used -= len;
	rp->rp_used -= len;
	while ((hl = let_anybody_in(rm)) != NULL)
		STAILQ_INSERT_TAIL(&ready, hl, hl_link);
	pthread_mutex_unlock(&rm->rm_lock);
	tell(&ready);
}

bool
room_plenty(struct room *rm, struct room_part *rp)
{
	bool plenty;

	meter_lock(&rm->rm_lock);
	plenty = rp->rp_used < left(rm) / 8;
	pthread_mutex_unlock(&rm->rm_lock);
	return plenty;
}

size_t
room_used(struct room *rm)
{
	size_t used;

	meter_lock(&rm->rm_lock);
	used = rm->rm_used;
	pthread_mutex_unlock(&rm->rm_lock);
	return used;
}

size_t
room_max(struct room *rm)
{
	size_t max;

	meter_lock(&rm->rm_lock);
	max = rm->rm_max;
	pthread_mutex_unlock(&rm->rm_lock);
	return max;
}

void
room_evicted(struct room *rm, uint64_t now_us)
{
	meter_lock(&rm->rm_lock);
	if (now_us >= rm->rm_shrunk + SHRINK_US &&
	    rm->rm_max > rm->rm_most / LEAST) {
		rm->rm_max -= rm->rm_max / SHRINK;
		rm->rm_shrunk = now_us;
	}
	pthread_mutex_unlock(&rm->rm_lock);
}

/* Lock is held. */
static void
grow(struct room *rm, uint64_t now_us)
{
	size_t n = rm->rm_most - rm->rm_max;

	if (n > rm->rm_most / GROW)
		n = rm->rm_most / GROW;
	if (now_us >= rm->rm_shrunk + GROW_AFTER)
		rm->rm_max += n;
}

void
room_tick(struct room *rm, uint64_t now_us)
{
	struct held_list ready = STAILQ_HEAD_INITIALIZER(ready);
	struct held *hl;
	size_t forced = 0;

	meter_lock(&rm->rm_lock);
	if (now_us >= rm->rm_ticked + TICK_US) {
		rm->rm_ticked = now_us;
		grow(rm, now_us);
		while (forced <= rm->rm_max / FORCED &&
		       (hl = force_in(rm, now_us)) != NULL) {
			forced += hl->hl_len;
			STAILQ_INSERT_TAIL(&ready, hl, hl_link);
		}
	}
	pthread_mutex_unlock(&rm->rm_lock);
	tell(&ready);
}
