/*
 * metrics: writes the server's metrics as text for Prometheus (exposition format 0.0.4).
 * docs/reference/metrics.md describes each metric.
 */
#ifndef SERVER_ADMIN_METRICS_H
#define SERVER_ADMIN_METRICS_H

#include <event2/buffer.h>
#include <time.h>

#include "server/conf/conf.h"
#include "server/log/log.h"

struct worker;

/* Sources of the metrics.  All must stay valid while the struct is used. */
struct metrics {
	const struct conf *mt_conf;
	struct worker *const *mt_workers; /* array of conf_workers */
	struct pw_pool *mt_pool;
	struct log *mt_log;
	time_t mt_start; /* time when the process started */
};

/*
 * Opens the files of /proc that metrics_write reads, if the system has them.  Call before the
 * sandbox.
 */
void metrics_prepare(void);

/* Appends all metrics.  All calls must be on the same thread. */
void metrics_write(const struct metrics *, struct evbuffer *);

/*
 * Append the most requested paths, if conf_popular is set.  metrics_popular_json writes JSON;
 * metrics_popular_map writes a map file of HAProxy, where each line has a path and the number of
 * its requests.
 */
void metrics_popular_json(const struct metrics *, struct evbuffer *);
void metrics_popular_map(const struct metrics *, struct evbuffer *);

#endif
