/*
 * room: see room.h.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "loop.h"
#include "room.h"

#define ALPHA	   2
#define SHRINK	   8	  /* an eighth of what it is, ... */
#define SHRINK_US  100000 /* ... so often at most */
#define LEAST	   16	  /* of what it was at first */
#define GROW	   64
#define GROW_US	   250000
#define GROW_AFTER 1000000 /* since something was evicted */

struct held {
	struct pw_waiter *hl_waiter;
	size_t hl_len;
	STAILQ_ENTRY(held) hl_link;
};

struct room {
	pthread_mutex_t rm_lock;
	size_t rm_most; /* as it was made */
	size_t rm_max;	/* now */
	size_t rm_used;
	uint64_t rm_shrunk; /* microseconds */
	uint64_t rm_grown;
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

/* Lock is held, as for all the static functions below. */
static size_t
limit(const struct room *rm)
{
	return rm->rm_used < rm->rm_max ? rm->rm_max - rm->rm_used : 0;
}

/* A device that has nothing may always have one window. */
static bool
fits(const struct room *rm, const struct room_part *rp, size_t len)
{
	return rp->rp_used == 0 || rp->rp_used + len <= ALPHA * limit(rm);
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

/* The first of the device, if there is room for it; else NULL. */
static struct held *
let_in(struct room *rm, struct room_part *rp)
{
	struct held_list *list = next_list(rp);
	struct held *hl = STAILQ_FIRST(list);

	if (!fits(rm, rp, hl->hl_len))
		return NULL;
	use(rm, rp, hl->hl_len);
	rp->rp_turn++;
	STAILQ_REMOVE_HEAD(list, hl_link);
	TAILQ_REMOVE(&rm->rm_parts, rp, rp_link);
	if (--rp->rp_nheld > 0)
		TAILQ_INSERT_TAIL(&rm->rm_parts, rp, rp_link);
	return hl;
}

static struct held *
let_anybody_in(struct room *rm)
{
	struct room_part *rp;
	struct held *hl;

	TAILQ_FOREACH(rp, &rm->rm_parts, rp_link)
	if ((hl = let_in(rm, rp)) != NULL)
		return hl;
	return NULL;
}

int
room_take(struct room *rm, struct room_part *rp, size_t len, bool slow,
    struct pw_waiter *w)
{
	struct held *hl = NULL;
	int error = 0;

	pthread_mutex_lock(&rm->rm_lock);
	if (rp->rp_nheld == 0 && fits(rm, rp, len))
		use(rm, rp, len);
	else if (w == NULL)
		error = -EAGAIN;
	else if ((hl = calloc(1, sizeof(*hl))) == NULL)
		error = -ENOMEM;
	else {
		hl->hl_waiter = w;
		hl->hl_len = len;
		hold(rm, rp, hl, slow);
		error = -EINPROGRESS;
	}
	pthread_mutex_unlock(&rm->rm_lock);
	return error;
}

void
room_give(struct room *rm, struct room_part *rp, size_t len)
{
	struct held_list ready = STAILQ_HEAD_INITIALIZER(ready);
	struct held *hl;

	pthread_mutex_lock(&rm->rm_lock);
	rm->rm_used -= len;
	rp->rp_used -= len;
	while ((hl = let_anybody_in(rm)) != NULL)
		STAILQ_INSERT_TAIL(&ready, hl, hl_link);
	pthread_mutex_unlock(&rm->rm_lock);
	while ((hl = STAILQ_FIRST(&ready)) != NULL) {
		STAILQ_REMOVE_HEAD(&ready, hl_link);
		loop_deliver(hl->hl_waiter, 0);
		free(hl);
	}
}

bool
room_plenty(struct room *rm, struct room_part *rp)
{
	bool plenty;

	pthread_mutex_lock(&rm->rm_lock);
	plenty = rp->rp_used < limit(rm) / 8;
	pthread_mutex_unlock(&rm->rm_lock);
	return plenty;
}

size_t
room_used(struct room *rm)
{
	size_t used;

	pthread_mutex_lock(&rm->rm_lock);
	used = rm->rm_used;
	pthread_mutex_unlock(&rm->rm_lock);
	return used;
}

size_t
room_max(struct room *rm)
{
	size_t max;

	pthread_mutex_lock(&rm->rm_lock);
	max = rm->rm_max;
	pthread_mutex_unlock(&rm->rm_lock);
	return max;
}

void
room_evicted(struct room *rm, uint64_t now_us)
{
	pthread_mutex_lock(&rm->rm_lock);
	if (now_us - rm->rm_shrunk >= SHRINK_US &&
	    rm->rm_max > rm->rm_most / LEAST) {
		rm->rm_max -= rm->rm_max / SHRINK;
		rm->rm_shrunk = now_us;
	}
	pthread_mutex_unlock(&rm->rm_lock);
}

/* Who is held is let in by the next who gives something back. */
void
room_tick(struct room *rm, uint64_t now_us)
{
	size_t left;

	pthread_mutex_lock(&rm->rm_lock);
	left = rm->rm_most - rm->rm_max;
	if (now_us - rm->rm_shrunk >= GROW_AFTER &&
	    now_us - rm->rm_grown >= GROW_US) {
		rm->rm_max +=
		    left < rm->rm_most / GROW ? left : rm->rm_most / GROW;
		rm->rm_grown = now_us;
	}
	pthread_mutex_unlock(&rm->rm_lock);
}
