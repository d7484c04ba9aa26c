/*
 * service: data that the responses of a worker share, and the parts of the server that they use.
 * Only the worker's thread may use this data, except the statistics.
 */
#ifndef SERVER_CONTENT_SERVICE_H
#define SERVER_CONTENT_SERVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <time.h>

#include "lib/pagewise.h"

#include "server/conf/conf.h"
#include "server/http/date.h"
#include "server/http/head.h"
#include "server/log/log.h"
#include "server/log/message_rate.h"
#include "server/util/buf.h"
#include "server/util/stats.h"

struct autoindex_cache;
struct client_rates;
struct exchange;
struct hmac;
struct health;
struct popular;
struct range;
struct response_cache;
struct verifier;

struct exchange_list {
	SLIST_HEAD(, exchange) xl_free;
	unsigned xl_count;
};

struct service {
	const struct conf *svc_conf;
	struct pw_loop *svc_loop;
	struct log_writer *svc_log;
	/* roots of conf_roots, in the same order; owned by struct server */
	struct pw_root *const *svc_roots;
	struct autoindex_cache *svc_listings;
	struct response_cache *svc_responses; /* NULL if off */
	/* most requested paths; has the seed of svc_responses if both are on; NULL if off */
	struct popular *svc_popular;
	/* health of the roots; owned by struct server; NULL if off */
	const struct health *svc_health;
	/* context for checks of links and passwords; NULL if there are none */
	struct hmac *svc_hmac;
	/* rate limits of clients; owned by struct server; NULL if none */
	struct client_rates *svc_rates;
	/* password threads; owned by struct server; NULL if not used */
	struct verifier *svc_verifier;

	/*
	 * Closes a cached file or a connection, so that a request gets its descriptor.  Returns
	 * false if nothing can be closed.
	 */
	bool (*svc_spare)(void *arg);
	void *svc_arg;

	struct buf_list svc_bufs;
	struct exchange_list svc_exchanges;
	/* scratch array of RANGE_MOST ranges */
	struct range *svc_ranges;
	unsigned svc_traces;   /* number of requests traced now */
	uint64_t svc_boundary; /* last boundary of a multipart response */
	struct message_rate svc_told[TOLD_KINDS]; /* limits of messages */
	struct stats svc_stats;			  /* readable by any thread */

	time_t svc_time;
	char svc_date[DATE_LEN + 1]; /* text of svc_time */
};

/* Returns the time in seconds since the epoch.  Updates svc_time and svc_date. */
time_t service_time(struct service *);

/* Returns the limits for the head of a request. */
static inline struct head_limits
service_head_limits(const struct service *svc)
{
	const struct conf *conf = svc->svc_conf;

	return (struct head_limits){
	    conf->conf_max_head, conf->conf_max_target, conf->conf_max_fields};
}

/*
 * service_take returns uninitialized memory for an exchange, or NULL if memory is short.
 * service_give takes the memory back.
 */
struct exchange *service_take(struct service *);
void service_give(struct service *, struct exchange *);

/* Frees up to `most` items of each kind of memory that the service keeps for reuse. */
void service_trim(struct service *, unsigned most);

/*
 * Closes up to `most` open files, and frees as many cached responses and listings.  Returns true if more
 * are left.  Call when the worker drains: few requests will follow.
 */
bool service_shed(struct service *, unsigned most);

/*
 * Frees the memory kept for reuse, svc_responses, svc_popular, svc_hmac and svc_ranges.  The loop
 * and the listings must be destroyed first.
 */
void service_end(struct service *);

#endif
