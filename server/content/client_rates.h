/*
 * client_rates: what clients may take, together over all their connections and all workers: a bucket
 * for each client and rule, and for each of an IPv6 client's networks, which may have more
 * (client_key.h).  A table of 64 parts with a lock each, held for a look at a short list, never over
 * anything that waits.
 *
 * At most CLIENT_RATES are known, 80 bytes each.  When there are so many, a full bucket is
 * forgotten, which is as a new one, else the one that was asked for least recently and is not in
 * use.  If all are, the others of that part share one: they get less, never more.
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

/* NULL: no memory. */
struct client_rates *client_rates_create(void);
void client_rates_destroy(struct client_rates **);

/* The buckets of a client and of its networks; NULL: none. */
struct client_buckets {
	struct client_rate *cb_levels[CLIENT_LEVELS];
};

/* rule: what the rate is of; its address tells it from others.  Until they are given back. */
void client_rates_take(struct client_rates *, const struct sockaddr *,
    const void *rule, uint64_t now_ns, struct client_buckets *);
void client_rates_give(struct client_rates *, struct client_buckets *);

/* As token_take, token_give and token_try, of all buckets; the rate is that of one client. */
uint64_t client_buckets_take(struct client_buckets *, const struct token_rate *,
    uint64_t n, uint64_t now_ns);
void client_buckets_give(
    struct client_buckets *, const struct token_rate *, uint64_t n);
bool client_buckets_try(struct client_buckets *, const struct token_rate *,
    uint64_t n, uint64_t now_ns, uint64_t *wait_ns);

#endif
