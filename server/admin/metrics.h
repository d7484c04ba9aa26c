/*
 * metrics: writes the server's metrics as text for Prometheus (exposition format
 * 0.0.4).  docs/reference/metrics.md describes each metric.
 */
#ifndef SERVER_ADMIN_METRICS_H
#define SERVER_ADMIN_METRICS_H

#include <event2/buffer.h>
#include <time.h>

#include "server/conf/conf.h"
#include "server/log/log.h"

struct worker;

/* Sources of the metrics.  All must outlive the caller's use. */
struct metrics {
	const struct conf *mt_conf;
	struct worker *const *mt_workers; /* array of conf_workers */
	struct pw_pool *mt_pool;
	struct log *mt_log;
	time_t mt_start; /* start of the process */
};

/* Opens the files of /proc that are read later, if there are any.  Call before the sandbox. */
void metrics_prepare(void);

/* Appends all metrics.  Always call it on the same thread. */
void metrics_write(const struct metrics *, struct evbuffer *);

/*
 * Append the most requested paths, if conf_popular is set, as JSON, or as a map file of HAProxy:
 * each line has a path and the number of its requests.
 */
void metrics_popular_json(const struct metrics *, struct evbuffer *);
void metrics_popular_map(const struct metrics *, struct evbuffer *);

#endif
