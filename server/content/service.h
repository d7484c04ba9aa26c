/*
 * service: what the answers of a worker have in common, and what they take from the server
 * that they run in.  The worker's thread only, but for the statistics.
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

/* Unused ones: kept for later. */
struct exchange_list {
	SLIST_HEAD(, exchange) xl_free;
	unsigned xl_count;
};

struct service {
	const struct conf *svc_conf;
	struct pw_loop *svc_loop;
	struct log_writer *svc_log;
	struct pw_root *const *svc_roots; /* of conf_roots; main's */
	struct autoindex_cache *svc_listings;
	struct response_cache *svc_responses; /* NULL: off */
	struct popular *svc_popular; /* NULL: off; with the hot set's seed */
	const struct health *svc_health; /* main's; NULL: nobody may ask */
	struct hmac *svc_hmac;		 /* of checks: access.h */
	struct client_rates *svc_rates;	 /* main's; NULL: none */
	struct verifier *svc_verifier;	 /* main's; NULL: no passwords */

	/* Closes what holds a descriptor for no request.  False: there is nothing. */
	bool (*svc_spare)(void *arg);
	void *svc_arg;

	struct buf_list svc_bufs;
	struct exchange_list svc_exchanges;
	struct range *svc_ranges; /* scratch, RANGE_MOST long */
	uint64_t svc_boundary;	  /* for multipart/byteranges */
	struct message_rate
	    svc_told_files; /* messages about files that were not opened */
	struct message_rate
	    svc_told_memory; /* about requests that found no memory */
	struct message_rate svc_told_sibling; /* about siblings not sent */
	struct message_rate svc_told_changed; /* about files that changed */
	struct message_rate svc_told_busy;    /* about passwords not verified */
	struct message_rate svc_told_disk; /* about disks that do not answer */
	struct stats svc_stats;		   /* any thread reads */

	time_t svc_time;
	char svc_date[DATE_LEN + 1]; /* of svc_time */
};

/* Seconds since the epoch; svc_date is of the same second. */
time_t service_time(struct service *);

/* What the head of a request may have. */
static inline struct head_limits
service_head_limits(const struct service *svc)
{
	const struct conf *conf = svc->svc_conf;

	return (struct head_limits){
	    conf->conf_max_head, conf->conf_max_target, conf->conf_max_fields};
}

/* Memory of an exchange, not cleared, or NULL; and back. */
struct exchange *service_take(struct service *);
void service_give(struct service *, struct exchange *);

/* Frees up to most of each kind of memory that is kept for later. */
void service_trim(struct service *, unsigned most);

/* Frees lists, ready answers and scratch; loop and listings are gone already. */
void service_end(struct service *);

#endif
