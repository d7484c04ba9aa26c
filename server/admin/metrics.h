/*
 * metrics: what the server counts, as text for Prometheus (exposition format
 * 0.0.4).  Each metric is described in docs/reference/metrics.md.
 */
#ifndef SERVER_ADMIN_METRICS_H
#define SERVER_ADMIN_METRICS_H

#include <event2/buffer.h>
#include <time.h>

#include "server/conf/conf.h"
#include "server/log/log.h"

struct worker;

/* Where the figures come from; all of it must stay. */
struct metrics {
	const struct conf *mt_conf;
	struct worker *const *mt_workers; /* conf_workers of them */
	struct pw_pool *mt_pool;
	struct log *mt_log;
	time_t mt_start; /* of the process */
};

/* Before the sandbox: opens what is read of /proc, where there is one. */
void metrics_prepare(void);

/* Appends.  One thread, the same each time. */
void metrics_write(const struct metrics *, struct evbuffer *);

/*
 * With conf_popular: the most requested paths as JSON, and as a map file of HAProxy: a path and
 * the number of its requests on each line.  Appends.
 */
void metrics_popular_json(const struct metrics *, struct evbuffer *);
void metrics_popular_map(const struct metrics *, struct evbuffer *);

#endif
