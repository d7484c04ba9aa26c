/*
 * client_rates: the rate limits of clients, over all their connections and all workers.  A client
 * has a token bucket for each rule; so has each network of an IPv6 client, with a higher limit
 * (client_key.h).  The table has 64 parts with a lock each.  A lock is held while a short list is
 * searched, never during a wait.
 *
 * The table holds up to CLIENT_RATES buckets of 80 bytes each.  When a part is full, it evicts a
 * full bucket, which equals a new one, else the least recently used bucket that no exchange holds.
 * If all its buckets are held, further clients of the part share one bucket, which may lower their
 * rates but never raises them.
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

/* Buckets of a client and of its networks; NULL at levels that the client does not have. */
struct client_buckets {
	struct client_rate *cb_levels[CLIENT_LEVELS];
};

/*
 * Finds or creates the buckets of a client for a rule.  The pointer `rule` only identifies the
 * rule.  The caller holds the buckets until client_rates_give.
 */
void client_rates_take(struct client_rates *, const struct sockaddr *,
    const void *rule, uint64_t now_ns, struct client_buckets *);
void client_rates_give(struct client_rates *, struct client_buckets *);

/*
 * These functions apply token_take, token_give and token_try to all buckets of a client.  The
 * parameter of type token_rate is the rate of one client; the rates of its networks are multiples
 * of it.
 */
uint64_t client_buckets_take(struct client_buckets *, const struct token_rate *,
    uint64_t n, uint64_t now_ns);
void client_buckets_give(
    struct client_buckets *, const struct token_rate *, uint64_t n);
bool client_buckets_try(struct client_buckets *, const struct token_rate *,
    uint64_t n, uint64_t now_ns, uint64_t *wait_ns);

#endif
