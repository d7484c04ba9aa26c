/*
 * metrics_priv: declarations that the metrics*.c files share.  No other file includes this.
 *
 *   metrics.c          the workers' figures, and the order of all metrics
 *   metrics_disk.c     the library's figures: memory and disks
 *   metrics_access.c   refused clients: rate limits, passwords
 *   metrics_popular.c  the most requested paths
 *   metrics_process.c  the process
 *   metrics_certificates.c  expiry of certificates
 *   prometheus.c     the format
 */
#ifndef SERVER_ADMIN_METRICS_PRIV_H
#define SERVER_ADMIN_METRICS_PRIV_H

#include <stddef.h>

#include "server/admin/metrics.h"
#include "server/admin/prometheus.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A counter, whose value is the sum of a field of all workers, or of all their loops. */
struct sum {
	const char *sum_name;
	const char *sum_help;
	size_t sum_offset; /* offset of the field, bytes */
};

void metrics_disk(const struct metrics *, struct evbuffer *);
void metrics_access(const struct metrics *, struct evbuffer *);
void metrics_certificates(const struct metrics *, struct evbuffer *);
void metrics_popular(const struct metrics *, struct evbuffer *);
void metrics_process(const struct metrics *, struct evbuffer *);

#endif
