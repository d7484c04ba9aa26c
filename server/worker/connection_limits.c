/*
 * connection_limits: see connection_limits.h.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/os/seed.h"
#include "lib/util/cacheline.h"
#include "lib/util/check.h"
#include "lib/util/hash.h"

#include "server/util/client_key.h"
#include "server/worker/connection_limits.h"

#define PARTS	((size_t)64)
#define BUCKETS ((size_t)1024) /* buckets of each part */

#define FRESH_MS (LIMITS_FRESH_US / 1000)

struct client {
	LIST_ENTRY(client) cl_link;
	uint64_t cl_key;
	unsigned cl_count;
};

LIST_HEAD(client_list, client);

struct part {
	_Alignas(CACHE_LINE) pthread_mutex_t pt_lock;
	struct client_list pt_buckets[BUCKETS];
};

/*
 * State of a worker that other workers use.  Each member has cache lines of its own, since other
 * workers read the member when a connection closes while any worker waits.
 */
struct member {
	_Alignas(CACHE_LINE) atomic_bool mb_waits;
	atomic_bool mb_promised; /* true if a promised slot is not used yet */
	struct commands *mb_orders;
	/* published time and rank: connection_limits_publish */
	_Atomic uint64_t mb_offer;
	/* time of the oldest unanswered request for a slot, us, or 0 */
	_Atomic uint64_t mb_asked;
	_Atomic uint64_t mb_askers[LIMITS_WORKERS / 64]; /* a bit per worker */
	/* end of the wait in limits_ask, us, or 0; used only by this worker */
	uint64_t mb_until;
};

struct connection_limits {
	unsigned cs_total_max;
	unsigned cs_each_max;
	struct seed cs_seed;
	struct part *cs_parts;
	struct member *cs_members;
	unsigned cs_nmembers;
	atomic_uint cs_total;
	atomic_uint cs_waiting;	 /* at least the number of waiting workers */
	atomic_uint cs_promised; /* number of workers with a promised slot */
	atomic_uint cs_next;	 /* worker that got the last promise */
};

static int
connection_limits_create_parts(struct connection_limits *cs)
{
	size_t i;

	cs->cs_parts = cacheline_calloc(PARTS * sizeof(*cs->cs_parts));
	if (cs->cs_parts == NULL)
		return -ENOMEM;
	for (i = 0; i < PARTS; i++)
		pthread_mutex_init(&cs->cs_parts[i].pt_lock, NULL);
	return 0;
}

int
limits_create(unsigned total, unsigned per_address, unsigned workers,
    struct connection_limits **out)
{
	struct connection_limits *cs = cacheline_calloc(sizeof(*cs));

	if (cs == NULL)
		return -ENOMEM;
	cs->cs_total_max = total;
	cs->cs_each_max = per_address;
	cs->cs_members = cacheline_calloc(workers * sizeof(*cs->cs_members));
	if (cs->cs_members == NULL ||
	    (per_address > 0 && connection_limits_create_parts(cs) != 0)) {
		limits_destroy(&cs);
		return -ENOMEM;
	}
	cs->cs_nmembers = workers;
	seed_draw(&cs->cs_seed);
	*out = cs;
	return 0;
}

void
limits_limit(struct connection_limits *cs, unsigned most)
{
	if (cs->cs_total_max == 0 || most < cs->cs_total_max)
		cs->cs_total_max = most;
}

unsigned
limits_most(const struct connection_limits *cs)
{
	return cs->cs_total_max;
}

bool
limits_are_unused(const struct connection_limits *cs)
{
	return atomic_load(&cs->cs_total) == 0;
}

void
limits_join(
    struct connection_limits *cs, unsigned worker, struct commands *orders)
{
	cs->cs_members[worker].mb_orders = orders;
}

void
limits_destroy(struct connection_limits **csp)
{
	struct connection_limits *cs = *csp;
	size_t i;

	*csp = NULL;
	if (cs == NULL)
		return;
	PW_CHECK(atomic_load(&cs->cs_total) == 0);
	for (i = 0; cs->cs_parts != NULL && i < PARTS; i++)
		pthread_mutex_destroy(&cs->cs_parts[i].pt_lock);
	free(cs->cs_parts);
	free(cs->cs_members);
	free(cs);
}

/*
 * Clears a flag, and decrements the number of workers that have it.  Returns false if the flag was
 * not set.
 */
static bool
connection_limits_clear(atomic_bool *flag, atomic_uint *number)
{
	if (!atomic_load(flag) || !atomic_exchange(flag, false))
		return false;
	atomic_fetch_sub(number, 1);
	return true;
}

static void
connection_limits_set(atomic_bool *flag, atomic_uint *number)
{
	atomic_fetch_add(number, 1);
	if (atomic_exchange(flag, true))
		atomic_fetch_sub(number, 1);
}

static bool
connection_limits_unwait(struct connection_limits *cs, struct member *mb)
{
	return connection_limits_clear(&mb->mb_waits, &cs->cs_waiting);
}

static bool
connection_limits_unpromise(struct connection_limits *cs, struct member *mb)
{
	return connection_limits_clear(&mb->mb_promised, &cs->cs_promised);
}

/*
 * Never lets the total exceed the limit, even briefly, since another worker could then not reserve
 * the last slot.
 */
bool
limits_reserve(struct connection_limits *cs, unsigned worker)
{
	struct member *me = &cs->cs_members[worker];
	unsigned n, promised;

	if (cs->cs_total_max == 0)
		return true;
	connection_limits_unpromise(cs, me);
	promised = atomic_load(&cs->cs_promised);
	n = atomic_load(&cs->cs_total);
	do {
		if (n + promised >= cs->cs_total_max)
			return false;
	} while (!atomic_compare_exchange_weak(&cs->cs_total, &n, n + 1));
	connection_limits_unwait(cs, me);
	me->mb_until = 0;
	return true;
}

/*
 * Sets the promise before it clears the wait, so that limits_retire, which cancels both, finds one
 * of them set.
 */
static bool
connection_limits_promise(struct connection_limits *cs, struct member *mb)
{
	if (!atomic_load(&mb->mb_waits))
		return false;
	connection_limits_set(&mb->mb_promised, &cs->cs_promised);
	if (connection_limits_unwait(cs, mb))
		return true;
	connection_limits_unpromise(cs, mb);
	return false;
}

/* Promises the next waiting worker, if there is one, a slot that may be free. */
static void
connection_limits_pass(struct connection_limits *cs)
{
	unsigned i, turn;

	if (atomic_load(&cs->cs_waiting) == 0)
		return;
	turn = atomic_load(&cs->cs_next);
	for (i = 1; i <= cs->cs_nmembers; i++) {
		struct member *mb =
		    &cs->cs_members[(turn + i) % cs->cs_nmembers];

		if (!connection_limits_promise(cs, mb))
			continue;
		atomic_store(&cs->cs_next, (turn + i) % cs->cs_nmembers);
		commands_give(mb->mb_orders, COMMAND_PLACE);
		return;
	}
}

void
limits_release(struct connection_limits *cs)
{
	if (cs->cs_total_max == 0)
		return;
	atomic_fetch_sub(&cs->cs_total, 1);
	connection_limits_pass(cs);
}

/*
 * Sets the flag before it reads the total, so that either this worker sees a released slot, or the
 * worker that releases the slot sees the flag.
 */
bool
limits_wait(struct connection_limits *cs, unsigned worker)
{
	struct member *mb = &cs->cs_members[worker];

	connection_limits_set(&mb->mb_waits, &cs->cs_waiting);
	if (atomic_load(&cs->cs_total) + atomic_load(&cs->cs_promised) >=
	    cs->cs_total_max)
		return true;
	connection_limits_unwait(cs, mb);
	return false;
}

void
limits_decline(struct connection_limits *cs, unsigned worker)
{
	if (connection_limits_unpromise(cs, &cs->cs_members[worker]))
		connection_limits_pass(cs);
}

void
limits_retire(struct connection_limits *cs, unsigned worker)
{
	connection_limits_unwait(cs, &cs->cs_members[worker]);
	limits_decline(cs, worker);
}

static struct part *
connection_limits_part_of(
    struct connection_limits *cs, uint64_t key, struct client_list **bucket)
{
	uint64_t hash = hash_bytes(&cs->cs_seed, 0, &key, sizeof(key));
	struct part *pt = &cs->cs_parts[hash % PARTS];

	*bucket = &pt->pt_buckets[hash / PARTS % BUCKETS];
	return pt;
}

/* Counts a connection of the address.  The caller holds the lock of the part. */
static int
connection_limits_count_in(struct connection_limits *cs,
    struct client_list *bucket, uint64_t key, struct client **out)
{
	struct client *cl;

	LIST_FOREACH(cl, bucket, cl_link)
	if (cl->cl_key == key)
		break;
	if (cl == NULL) {
		cl = calloc(1, sizeof(*cl));
		if (cl == NULL)
			return -ENOMEM;
		cl->cl_key = key;
		LIST_INSERT_HEAD(bucket, cl, cl_link);
	}
	if (cl->cl_count == cs->cs_each_max)
		return -EDQUOT;
	cl->cl_count++;
	*out = cl;
	return 0;
}

int
limits_enter(struct connection_limits *cs, const struct sockaddr *sa,
    struct client **out)
{
	uint64_t key = client_key(sa);
	struct client_list *bucket;
	struct part *pt;
	int error;

	*out = NULL;
	if (cs->cs_each_max == 0 || sa->sa_family == AF_UNIX)
		return 0;
	pt = connection_limits_part_of(cs, key, &bucket);
	pthread_mutex_lock(&pt->pt_lock);
	error = connection_limits_count_in(cs, bucket, key, out);
	pthread_mutex_unlock(&pt->pt_lock);
	return error;
}

void
limits_leave(struct connection_limits *cs, struct client *cl)
{
	struct client_list *bucket;
	struct part *pt;

	limits_release(cs);
	if (cl == NULL)
		return;
	pt = connection_limits_part_of(cs, cl->cl_key, &bucket);
	pthread_mutex_lock(&pt->pt_lock);
	if (--cl->cl_count == 0)
		LIST_REMOVE(cl, cl_link);
	else
		cl = NULL;
	pthread_mutex_unlock(&pt->pt_lock);
	free(cl);
}

/* -------------------------------------------------- one worker asks others */

/*
 * Stores the time, in milliseconds, in the upper half of mb_offer, and the rank in the lower half.
 */
static void
connection_limits_publish(struct member *mb, uint32_t rank, uint64_t now_us)
{
	atomic_store(&mb->mb_offer, (now_us / 1000) << 32 | rank);
}

static uint32_t
connection_limits_rank(const struct member *mb)
{
	return (uint32_t)atomic_load(&mb->mb_offer);
}

/*
 * Returns true if the member has published, within LIMITS_FRESH_US, that its victim ranks no
 * higher.  An offer has 32 bits of milliseconds, which the clock exceeds after 49 days, so the age
 * is computed modulo 2^32.  The age is negative if the member published after now_us was read.
 */
static bool
connection_limits_has_no_better(
    const struct member *mb, uint32_t rank, uint64_t now_us)
{
	uint64_t offer = atomic_load(&mb->mb_offer);
	uint32_t age = (uint32_t)(now_us / 1000) - (uint32_t)(offer >> 32);

	return rank > 0 && (uint32_t)offer <= rank &&
	       age + FRESH_MS < 2 * FRESH_MS;
}

static _Atomic uint64_t *
connection_limits_askers(struct member *mb, unsigned worker, uint64_t *bit)
{
	*bit = UINT64_C(1) << worker % 64;
	return &mb->mb_askers[worker / 64];
}

/*
 * Asks a member, unless its reply to an earlier request is overdue.  Returns the time at which the
 * reply will be overdue, or 0 if the reply is overdue now.  The time of the earlier request may be
 * after now_us, which the caller read before.
 */
static uint64_t
connection_limits_ask_one(struct member *mb, unsigned worker, uint64_t now_us)
{
	uint64_t bit, since = atomic_load(&mb->mb_asked);
	_Atomic uint64_t *askers = connection_limits_askers(mb, worker, &bit);

	if (since != 0 && (int64_t)(now_us - since) >= LIMITS_RESPONSE_US)
		return 0;
	if (since == 0)
		atomic_store(&mb->mb_asked, since = now_us);
	atomic_fetch_or(askers, bit);
	commands_give(mb->mb_orders, COMMAND_WISH);
	return since + LIMITS_RESPONSE_US;
}

/*
 * Returns true if the member's wait for other workers has just reached its bound.  Ignores a bound
 * that passed LIMITS_RESPONSE_US ago, since it belonged to a client that has closed.
 */
static bool
connection_limits_has_waited(struct member *me, uint64_t now_us)
{
	int64_t past = (int64_t)(now_us - me->mb_until);

	if (me->mb_until == 0 || past < 0)
		return false;
	me->mb_until = 0;
	return past < LIMITS_RESPONSE_US;
}

/*
 * Asks all members that may have a victim of higher rank.  Returns the time at which the last reply
 * will be overdue, or 0 if no member was asked.
 */
static uint64_t
connection_limits_ask_all(struct connection_limits *cs, unsigned worker,
    uint32_t rank, uint64_t now_us)
{
	struct member *me = &cs->cs_members[worker], *mb;
	uint64_t until, latest = 0;
	unsigned i;

	for (i = 0; i < cs->cs_nmembers; i++) {
		mb = &cs->cs_members[i];
		if (mb == me ||
		    connection_limits_has_no_better(mb, rank, now_us))
			continue;
		until = connection_limits_ask_one(mb, worker, now_us);
		if (until > latest)
			latest = until;
	}
	return latest;
}

uint64_t
limits_ask(struct connection_limits *cs, unsigned worker, uint32_t rank,
    uint64_t now_us)
{
	struct member *me = &cs->cs_members[worker];
	uint64_t latest = 0;

	connection_limits_publish(me, rank, now_us);
	/* Sets the flag before it asks, since a worker that replies looks for waiting members. */
	connection_limits_set(&me->mb_waits, &cs->cs_waiting);
	if (rank == 0 || !connection_limits_has_waited(me, now_us))
		latest = connection_limits_ask_all(cs, worker, rank, now_us);
	if (latest == 0) {
		connection_limits_unwait(cs, me);
		me->mb_until = 0;
		return 0;
	}
	if (rank > 0 && me->mb_until == 0)
		me->mb_until = now_us + LIMITS_RESPONSE_US;
	return rank > 0 && me->mb_until < latest ? me->mb_until : latest;
}

bool
limits_is_asked(const struct connection_limits *cs, unsigned worker)
{
	const struct member *me = &cs->cs_members[worker];
	unsigned i;

	for (i = 0; i <= (cs->cs_nmembers - 1) / 64; i++)
		if (atomic_load(&me->mb_askers[i]) != 0)
			return true;
	return false;
}

static bool
connection_limits_has_asked(struct member *mb, unsigned worker)
{
	uint64_t bit;
	_Atomic uint64_t *askers = connection_limits_askers(mb, worker, &bit);

	return (atomic_load(askers) & bit) != 0;
}

void
limits_responded(struct connection_limits *cs, unsigned worker, unsigned asker)
{
	uint64_t bit;
	_Atomic uint64_t *askers =
	    connection_limits_askers(&cs->cs_members[worker], asker, &bit);

	atomic_fetch_and(askers, ~bit);
	if (!limits_is_asked(cs, worker))
		atomic_store(&cs->cs_members[worker].mb_asked, 0);
}

unsigned
limits_asker(struct connection_limits *cs, unsigned worker, uint32_t rank,
    uint64_t now_us)
{
	struct member *me = &cs->cs_members[worker], *mb;
	unsigned i;

	connection_limits_publish(me, rank, now_us);
	for (i = 0; i < cs->cs_nmembers; i++) {
		mb = &cs->cs_members[i];
		if (!connection_limits_has_asked(me, i))
			continue;
		if (atomic_load(&mb->mb_waits)) {
			if (rank > connection_limits_rank(mb))
				return i;
			if (connection_limits_rank(mb) > 0)
				commands_give(mb->mb_orders, COMMAND_PLACE);
		}
		limits_responded(cs, worker, i);
	}
	return LIMITS_NOBODY;
}
