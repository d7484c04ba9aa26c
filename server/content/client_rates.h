/*
 * client_rates: rate limits of clients, over all their connections and all workers.  Each client
 * has a token bucket for each rule.  Each network of an IPv6 client also has such a bucket, with a
 * higher limit (client_key.h).  The table has 64 parts, each with its own lock.  A thread holds a
 * lock while it searches a short list, but never while it waits.
 *
 * The table holds up to CLIENT_RATES buckets of 80 bytes each.  A part without space for another
 * bucket evicts one of the four least recently used buckets that no exchange uses: a full bucket if
 * there is one, because a new bucket would also be full, else the least recently used bucket.  If
 * exchanges use all buckets of the part, its further clients share one bucket, which may lower
 * their rates but never raises them.
 */
#ifndef SERVER_CONTENT_CLIENT_RATES_H
#define SERVER_CONTENT_CLIENT_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "server/util/client_key.h"
#include "server/util/token_bucket.h"

#define CLIENT_RATES 131072

struct client_rate;
struct client_rates;
struct sockaddr;

/* Creates an empty table.  Returns NULL if memory is short. */
struct client_rates *client_rates_create(void);
void client_rates_destroy(struct client_rates **);

/* Buckets of a client and of its networks.  NULL for levels that the client does not have. */
struct client_buckets {
	struct client_rate *cb_levels[CLIENT_LEVELS];
};

/*
 * Finds or creates the buckets of a client for a rule.  The pointer `rule` only identifies the
 * rule.  The caller uses the buckets until it calls client_rates_give.
 */
void client_rates_take(struct client_rates *, const struct sockaddr *,
    const void *rule, uint64_t now_ns, struct client_buckets *);
void client_rates_give(struct client_rates *, struct client_buckets *);

/*
 * These functions apply token_take, token_give and token_try to all buckets of a client.  The
 * parameter of type token_rate is the rate of one client; the rates of its networks are multiples
 * of this rate.
 */
uint64_t client_buckets_take(struct client_buckets *, const struct token_rate *,
    uint64_t n, uint64_t now_ns);
void client_buckets_give(
    struct client_buckets *, const struct token_rate *, uint64_t n);
bool client_buckets_try(struct client_buckets *, const struct token_rate *,
    uint64_t n, uint64_t now_ns, uint64_t *wait_ns);

#endif
