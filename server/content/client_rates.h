/*
 * client_rates: what clients may take, together over all their connections and all workers: a
 * bucket for each client and rule, and for each of an IPv6 client's networks, which may have more
 * (client_key.h).  The table has 64 parts with a lock each.  A lock is held while a short list is
 * searched, never across anything that waits.
 *
 * The table holds up to CLIENT_RATES buckets of 80 bytes each.  When it is full, it evicts a full
 * bucket, which equals a new one, else the least recently requested bucket that is not in use.  If
 * all are in use, further clients of that part share one bucket: they get less, never more.
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

/* Returns NULL if memory is short. */
struct client_rates *client_rates_create(void);
void client_rates_destroy(struct client_rates **);

/* Buckets of a client and of its networks; NULL at levels that the client does not have. */
struct client_buckets {
	struct client_rate *cb_levels[CLIENT_LEVELS];
};

/*
 * Takes the buckets of a client for a rule, which its address identifies.  The caller holds them
 * until client_rates_give.
 */
void client_rates_take(struct client_rates *, const struct sockaddr *,
    const void *rule, uint64_t now_ns, struct client_buckets *);
void client_rates_give(struct client_rates *, struct client_buckets *);

/*
 * Each applies token_take, token_give or token_try to all buckets; the rate is that of one client.
 */
uint64_t client_buckets_take(struct client_buckets *, const struct token_rate *,
    uint64_t n, uint64_t now_ns);
void client_buckets_give(
    struct client_buckets *, const struct token_rate *, uint64_t n);
bool client_buckets_try(struct client_buckets *, const struct token_rate *,
    uint64_t n, uint64_t now_ns, uint64_t *wait_ns);

#endif
