/*
 * client_rates: what clients may take, together over all their connections and all workers: a bucket
 * for each client (client_key.h) and rule.  A table of 64 parts with a lock each, held for a look at a
 * short list, never over anything that waits.
 *
 * At most CLIENT_RATES are known, 80 bytes each.  When there are so many, a full bucket is
 * forgotten, which is as a new one, else the one that was asked for least recently and is not in
 * use.  If all are, the others of that part share one: they get less, never more.
 */
#ifndef SERVER_CONTENT_CLIENT_RATES_H
#define SERVER_CONTENT_CLIENT_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "server/util/token_bucket.h"

#define CLIENT_RATES 131072

struct client_rate;
struct client_rates;
struct sockaddr;

/* NULL: no memory. */
struct client_rates *client_rates_create(void);
void client_rates_destroy(struct client_rates **);

/* rule: what the rate is of; its address tells it from others.  Until it is given back. */
struct client_rate *client_rates_take(struct client_rates *,
    const struct sockaddr *, const void *rule, uint64_t now_ns);
void client_rates_give(struct client_rates *, struct client_rate **);

struct token_bucket *client_rate_bucket(struct client_rate *);

#endif
