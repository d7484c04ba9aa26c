/*
 * client_rates: see client_rates.h.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "lib/os/seed.h"
#include "lib/util/cacheline.h"
#include "server/content/client_rates.h"

#define PARTS	((size_t)64)
#define BUCKETS ((size_t)1024) /* hash buckets per part */
#define EACH	(CLIENT_RATES / PARTS)
#define LOOKS	4 /* maximum idle buckets checked for a full one */

struct client_rate {
	struct token_bucket cr_bucket;
	uint64_t cr_client;
	uintptr_t cr_rule;
	unsigned cr_users;
	LIST_ENTRY(client_rate) cr_link;
	/* link in pt_idle while cr_users is 0 */
	TAILQ_ENTRY(client_rate) cr_idle;
};

LIST_HEAD(rate_list, client_rate);

struct part {
	_Alignas(CACHE_LINE) pthread_mutex_t pt_lock;
	struct rate_list pt_buckets[BUCKETS];
	/* buckets that no exchange uses, least recently used first */
	TAILQ_HEAD(, client_rate) pt_idle;
	size_t pt_count;
	struct client_rate pt_others;
};

struct client_rates {
	struct seed cs_seed;
	struct part cs_parts[PARTS];
};

struct client_rates *
client_rates_create(void)
{
	struct client_rates *cs = cacheline_calloc(sizeof(*cs));

	if (cs == NULL)
		return NULL;
	seed_draw(&cs->cs_seed);
	for (size_t i = 0; i < PARTS; i++) {
		pthread_mutex_init(&cs->cs_parts[i].pt_lock, NULL);
		TAILQ_INIT(&cs->cs_parts[i].pt_idle);
	}
	return cs;
}

static void
client_rates_free_list(struct rate_list *list)
{
	struct client_rate *cr;

	while ((cr = LIST_FIRST(list)) != NULL) {
		LIST_REMOVE(cr, cr_link);
		free(cr);
	}
}

void
client_rates_destroy(struct client_rates **csp)
{
	struct client_rates *cs = *csp;

	if (cs == NULL)
		return;
	*csp = NULL;
	for (size_t i = 0; i < PARTS; i++) {
		for (size_t j = 0; j < BUCKETS; j++)
			client_rates_free_list(&cs->cs_parts[i].pt_buckets[j]);
		pthread_mutex_destroy(&cs->cs_parts[i].pt_lock);
	}
	free(cs);
}

static struct part *
client_rates_part_of(struct client_rates *cs, uint64_t client, uintptr_t rule,
    struct rate_list **list)
{
	uint64_t hash =
	    hash_bytes(&cs->cs_seed, (uint64_t)rule, &client, sizeof(client));
	struct part *pt = &cs->cs_parts[hash % PARTS];

	*list = &pt->pt_buckets[hash / PARTS % BUCKETS];
	return pt;
}

/*
 * Evicts a bucket that no exchange uses.  Returns false if all are in use.  The caller must hold
 * the part's lock, here and for client_rates_add.
 */
static bool
client_rates_forget_one(struct part *pt, uint64_t now)
{
	struct client_rate *cr, *victim = NULL;
	int looks = 0;

	TAILQ_FOREACH(cr, &pt->pt_idle, cr_idle)
	{
		if (victim == NULL || token_is_full(&cr->cr_bucket, now))
			victim = cr;
		if (++looks == LOOKS || token_is_full(&victim->cr_bucket, now))
			break;
	}
	if (victim == NULL)
		return false;
	LIST_REMOVE(victim, cr_link);
	TAILQ_REMOVE(&pt->pt_idle, victim, cr_idle);
	pt->pt_count--;
	free(victim);
	return true;
}

static struct client_rate *
client_rates_add(struct part *pt, struct rate_list *list, uint64_t client,
    uintptr_t rule, uint64_t now)
{
	struct client_rate *cr = NULL;

	if (pt->pt_count < EACH || client_rates_forget_one(pt, now))
		cr = calloc(1, sizeof(*cr));
	if (cr == NULL)
		return &pt->pt_others;
	cr->cr_client = client;
	cr->cr_rule = rule;
	LIST_INSERT_HEAD(list, cr, cr_link);
	TAILQ_INSERT_TAIL(&pt->pt_idle, cr, cr_idle);
	pt->pt_count++;
	return cr;
}

static struct client_rate *
client_rates_take_one(
    struct client_rates *cs, uint64_t client, const void *rule, uint64_t now)
{
	struct rate_list *list;
	struct client_rate *cr;
	struct part *pt =
	    client_rates_part_of(cs, client, (uintptr_t)rule, &list);

	pthread_mutex_lock(&pt->pt_lock);
	LIST_FOREACH(cr, list, cr_link)
	if (cr->cr_client == client && cr->cr_rule == (uintptr_t)rule)
		break;
	if (cr == NULL)
		cr = client_rates_add(pt, list, client, (uintptr_t)rule, now);
	if (cr->cr_users++ == 0 && cr != &pt->pt_others)
		TAILQ_REMOVE(&pt->pt_idle, cr, cr_idle);
	pthread_mutex_unlock(&pt->pt_lock);
	return cr;
}

void
client_rates_take(struct client_rates *cs, const struct sockaddr *sa,
    const void *rule, uint64_t now, struct client_buckets *cb)
{
	uint64_t client = client_key(sa);

	*cb = (struct client_buckets){{NULL}};
	for (unsigned i = 0; i < client_levels(client); i++)
		cb->cb_levels[i] = client_rates_take_one(
		    cs, client_network(client, i), rule, now);
}

static void
client_rates_give_one(struct client_rates *cs, struct client_rate *cr)
{
	struct rate_list *list;
	struct part *pt;
	size_t i;

	pt = client_rates_part_of(cs, cr->cr_client, cr->cr_rule, &list);
	for (i = 0; cr->cr_rule == 0 && i < PARTS; i++)
		if (cr == &cs->cs_parts[i].pt_others)
			pt = &cs->cs_parts[i];
	pthread_mutex_lock(&pt->pt_lock);
	if (--cr->cr_users == 0 && cr != &pt->pt_others)
		TAILQ_INSERT_TAIL(&pt->pt_idle, cr, cr_idle);
	pthread_mutex_unlock(&pt->pt_lock);
}

void
client_rates_give(struct client_rates *cs, struct client_buckets *cb)
{
	for (unsigned i = 0; i < CLIENT_LEVELS; i++) {
		if (cb->cb_levels[i] != NULL)
			client_rates_give_one(cs, cb->cb_levels[i]);
		cb->cb_levels[i] = NULL;
	}
}

/* ---------------------------------------------------------------- buckets */

static struct token_rate
client_rates_rate_of(const struct token_rate *tr, unsigned level)
{
	uint64_t rate = tr->tr_rate * client_times(level);
	uint64_t depth = tr->tr_depth * client_times(level);

	return (struct token_rate){
	    .tr_rate = rate < TOKEN_RATE_MOST ? rate : TOKEN_RATE_MOST,
	    .tr_depth = depth < TOKEN_BURST_MOST ? depth : TOKEN_BURST_MOST,
	};
}

uint64_t
client_buckets_take(struct client_buckets *cb, const struct token_rate *tr,
    uint64_t n, uint64_t now)
{
	uint64_t when, latest = 0;
	struct token_rate rate;

	for (unsigned i = 0; i < CLIENT_LEVELS && cb->cb_levels[i]; i++) {
		rate = client_rates_rate_of(tr, i);
		when = token_take(&cb->cb_levels[i]->cr_bucket, &rate, n, now);
		if (when > latest)
			latest = when;
	}
	return latest;
}

void
client_buckets_give(
    struct client_buckets *cb, const struct token_rate *tr, uint64_t n)
{
	struct token_rate rate;

	for (unsigned i = 0; i < CLIENT_LEVELS && cb->cb_levels[i]; i++) {
		rate = client_rates_rate_of(tr, i);
		token_give(&cb->cb_levels[i]->cr_bucket, &rate, n);
	}
}

bool
client_buckets_try(struct client_buckets *cb, const struct token_rate *tr,
    uint64_t n, uint64_t now, uint64_t *wait)
{
	struct client_buckets taken = {{NULL}};
	struct token_rate rate;

	for (unsigned i = 0; i < CLIENT_LEVELS && cb->cb_levels[i]; i++) {
		rate = client_rates_rate_of(tr, i);
		if (!token_try(
			&cb->cb_levels[i]->cr_bucket, &rate, n, now, wait)) {
			client_buckets_give(&taken, tr, n);
			return false;
		}
		taken.cb_levels[i] = cb->cb_levels[i];
	}
	return true;
}
