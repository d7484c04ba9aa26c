/*
 * metrics: see metrics.h.  Names follow Prometheus' conventions.  Names without
 * "pagewise_" are Prometheus' standard names for processes.
 */
#include <stdio.h>
#include <string.h>

#include "server/admin/metrics_priv.h"
#include "server/worker/worker.h"

#define WORKERS(name, field, help)                        \
	{                                                 \
		name, help, offsetof(struct stats, field) \
	}
static const struct sum worker_sums[] = {
    WORKERS("pagewise_sent_bytes_total", sta_sent,
	"Bytes of responses passed to the kernel, header sections included."),
    WORKERS("pagewise_http2_connections_total", sta_h2_connections,
	"HTTP/2 connections opened."),
    WORKERS("pagewise_http2_streams_total", sta_h2_streams,
	"HTTP/2 requests begun."),
    WORKERS("pagewise_hot_requests_total", sta_cached,
	"Requests served from the response cache (hot_set)."),
    WORKERS("pagewise_connections_accepted_total", sta_accepted,
	"Connections accepted."),
    WORKERS("pagewise_accept_failures_total", sta_accept_failed,
	"Times a worker stopped accepting connections for a while because "
	"descriptors or memory ran out."),
    WORKERS("pagewise_connections_reclaimed_total", sta_reclaimed,
	"Idle connections evicted because descriptors ran out or "
	"max_connections was reached."),
    WORKERS("pagewise_connections_ousted_total", sta_evicted,
	"Connections without a complete request evicted because descriptors "
	"ran out or max_connections was reached."),
    WORKERS("pagewise_siblings_unused_total", sta_siblings_unused,
	"Times a compressed sibling existed but could not be sent."),
    WORKERS("pagewise_changed_total", sta_changed,
	"Responses aborted or replaced by 503 because the file changed while "
	"it was sent."),
    WORKERS("pagewise_passwords_refused_total", sta_passwords_refused,
	"Requests refused with 503 because too many passwords were waiting to "
	"be verified."),
};

static uint64_t
metrics_all_workers(const struct metrics *mt, size_t offset)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < mt->mt_conf->conf_workers; i++)
		sum += counter_get((const _Atomic uint64_t *)(const void
			*)((const char *)&mt->mt_workers[i]
			       ->wk_service.svc_stats +
			   offset));
	return sum;
}

static void
metrics_write_status(const struct metrics *mt, struct evbuffer *out)
{
	static const char name[] = "pagewise_requests_total";
	char labels[32];
	uint64_t n;
	unsigned i;

	prometheus_family(out, name, "counter",
	    "Completed requests by status; 499: aborted before the response "
	    "began.");
	for (i = 0; i < STATS_STATUSES; i++) {
		n = metrics_all_workers(
		    mt, offsetof(struct stats, sta_status[0]) +
			    i * sizeof(_Atomic uint64_t));
		if (n == 0 && i + STATS_STATUS != 200)
			continue;
		snprintf(labels, sizeof(labels), "{status=\"%u\"}",
		    i + STATS_STATUS);
		prometheus_value(out, name, labels, n);
	}
}

/* Writes one value for each label in `names`.  Skips labels that are NULL. */
static void
metrics_write_each(const struct metrics *mt, struct evbuffer *out,
    const char *name, const char *label, const char *const *names, size_t n,
    size_t offset)
{
	char labels[48];
	size_t i;

	for (i = 0; i < n; i++) {
		if (names[i] == NULL)
			continue;
		snprintf(
		    labels, sizeof(labels), "{%s=\"%s\"}", label, names[i]);
		prometheus_value(out, name, labels,
		    metrics_all_workers(
			mt, offset + i * sizeof(_Atomic uint64_t)));
	}
}

static void
metrics_write_connections(const struct metrics *mt, struct evbuffer *out)
{
	static const char *const phases[PHASES] = {[PHASE_IDLE] = "idle",
	    [PHASE_HEAD] = "head",
	    [PHASE_TLS] = "handshake",
	    [PHASE_DISK] = "disk",
	    [PHASE_SEND] = "send",
	    [PHASE_BODY] = "body",
	    [PHASE_LINGER] = "linger"};
	static const char *const timers[TIMERS] = {[TIMER_HEAD] = "head",
	    [TIMER_IDLE] = "keepalive",
	    [TIMER_SEND] = "send",
	    [TIMER_DISK] = "disk",
	    [TIMER_CLOSED] = "closed",
	    [TIMER_LINGER] = "linger"};
	static const char *const caps[CAPS] = {[CAP_TOTAL] = "max_connections",
	    [CAP_ADDRESS] = "max_connections_per_address",
	    [CAP_RATE] = "min_send_rate",
	    [CAP_REQUESTS] = "max_requests",
	    [CAP_FRAMES] = "http2_frames",
	    [CAP_TCP_MEMORY] = "tcp_memory",
	    [CAP_MEMORY] = "memory",
	    [CAP_HEAP] = "heap",
	    [CAP_STALLED] = "stalled"};

	prometheus_family(
	    out, "pagewise_connections", "gauge", "Connections by state.");
	metrics_write_each(mt, out, "pagewise_connections", "state", phases,
	    PHASES, offsetof(struct stats, sta_phase));
	prometheus_family(out, "pagewise_limited_total", "counter",
	    "Times each limit was reached: the server paused accepting, sent "
	    "less at a time, refused a request, or closed a connection.");
	metrics_write_each(mt, out, "pagewise_limited_total", "limit", caps,
	    CAPS, offsetof(struct stats, sta_capped));
	prometheus_family(out, "pagewise_timeouts_total", "counter",
	    "Connections closed by each timeout; linger: the client did not "
	    "close in time.");
	metrics_write_each(mt, out, "pagewise_timeouts_total", "kind", timers,
	    TIMERS, offsetof(struct stats, sta_timeout));
}

static void
metrics_write_handshakes(const struct metrics *mt, struct evbuffer *out)
{
	static const char name[] = "pagewise_tls_handshakes_total",
			  time[] = "pagewise_tls_handshake_seconds";
	static const char *const ends[HANDSHAKES] = {[HANDSHAKE_FULL] = "full",
	    [HANDSHAKE_RESUMED] = "resumed",
	    [HANDSHAKE_ALERT] = "alert",
	    [HANDSHAKE_NOTHING] = "nothing_shared",
	    [HANDSHAKE_VERIFY] = "client_certificate",
	    [HANDSHAKE_CLOSED] = "closed",
	    [HANDSHAKE_BROKEN] = "broken",
	    [HANDSHAKE_INTERNAL] = "internal",
	    [HANDSHAKE_PLAIN] = "plain_http",
	    [HANDSHAKE_TIMEOUT] = "timeout",
	    [HANDSHAKE_BUSY] = "busy"};
	char labels[32];
	unsigned i;

	if (!conf_has_tls(mt->mt_conf))
		return;
	prometheus_family(out, name, "counter",
	    "TLS handshakes by result; full and resumed ones succeeded.");
	metrics_write_each(mt, out, name, "end", ends, HANDSHAKES,
	    offsetof(struct stats, sta_handshakes));
	prometheus_family(out, time, "histogram",
	    "Duration of successful TLS handshakes by worker, including the "
	    "client's round trips.");
	for (i = 0; i < mt->mt_conf->conf_workers; i++) {
		snprintf(labels, sizeof(labels), "worker=\"%u\"", i);
		prometheus_histogram(out, time, labels,
		    &mt->mt_workers[i]
			 ->wk_service.svc_stats.sta_handshake_time);
	}
}

static void
metrics_write_iterations(const struct metrics *mt, struct evbuffer *out)
{
	static const char turn[] = "pagewise_loop_turn_seconds",
			  longest[] = "pagewise_loop_turn_longest_seconds",
			  stalls[] = "pagewise_loop_stalls_total";
	char labels[32];
	unsigned i, n = mt->mt_conf->conf_workers;

	prometheus_family(out, turn, "histogram",
	    "Duration of each worker's event-loop iterations, without the wait "
	    "for events.");
	for (i = 0; i < n; i++) {
		snprintf(labels, sizeof(labels), "worker=\"%u\"", i);
		prometheus_histogram(out, turn, labels,
		    &mt->mt_workers[i]->wk_service.svc_stats.sta_iteration);
	}
	prometheus_family(out, longest, "gauge",
	    "Longest event-loop iteration of each worker since the start.");
	for (i = 0; i < n; i++) {
		snprintf(labels, sizeof(labels), "{worker=\"%u\"}", i);
		prometheus_seconds(out, longest, labels,
		    counter_get(
			&mt->mt_workers[i]->wk_service.svc_stats.sta_longest));
	}
	prometheus_family(out, stalls, "counter",
	    "Event-loop iterations of each worker that took stall_log or "
	    "longer.");
	for (i = 0; i < n; i++) {
		snprintf(labels, sizeof(labels), "{worker=\"%u\"}", i);
		prometheus_value(out, stalls, labels,
		    counter_get(
			&mt->mt_workers[i]->wk_service.svc_stats.sta_stalls));
	}
}

static void
metrics_write_sleeps_of(struct evbuffer *out, const char *name, unsigned worker,
    const struct pw_loop *lp, bool seconds)
{
	struct pw_sleep list[PW_SLEEPS];
	size_t i, n = pw_loop_sleeps(lp, list);
	char labels[64];

	for (i = 0; i < n; i++) {
		if (list[i].sl_times == 0 &&
		    strcmp(list[i].sl_call, "sendfile") != 0)
			continue;
		snprintf(labels, sizeof(labels), "{worker=\"%u\",call=\"%s\"}",
		    worker, list[i].sl_call);
		if (seconds)
			prometheus_seconds(out, name, labels, list[i].sl_us);
		else
			prometheus_value(out, name, labels, list[i].sl_times);
	}
}

/*
 * Writes how often and how long each loop slept, by call.  Omits a call in which the loop never
 * slept, except sendfile.
 */
static void
metrics_write_sleeps(const struct metrics *mt, struct evbuffer *out)
{
	static const char times[] = "pagewise_loop_sleeps_total",
			  time[] = "pagewise_loop_asleep_seconds_total";
	unsigned i, n = mt->mt_conf->conf_workers;

	prometheus_family(out, times, "counter",
	    "Times each worker's event loop slept outside its wait for events, "
	    "by call.");
	for (i = 0; i < n; i++)
		metrics_write_sleeps_of(out, times, i,
		    mt->mt_workers[i]->wk_service.svc_loop, false);
	prometheus_family(out, time, "counter",
	    "Duration of the calls in which the event loop slept, by call.");
	for (i = 0; i < n; i++)
		metrics_write_sleeps_of(
		    out, time, i, mt->mt_workers[i]->wk_service.svc_loop, true);
}

static void
metrics_write_limit(const struct metrics *mt, struct evbuffer *out)
{
	prometheus_simple(out, "pagewise_memory_limit_bytes", "gauge",
	    mt->mt_workers[0]->wk_tcp_memory->pr_limit,
	    "Memory limit of the control group; 0 if there is none.");
	prometheus_simple(out, "pagewise_unacked_bytes", "gauge",
	    metrics_all_workers(mt, offsetof(struct stats, sta_unacked)),
	    "Bytes in sockets that clients have not acknowledged; 0 if the "
	    "control group has no memory limit.");
}

static void
metrics_write_workers(const struct metrics *mt, struct evbuffer *out)
{
	static const char wait[] = "pagewise_requests_disk_wait_seconds_total";
	size_t i;

	metrics_write_status(mt, out);
	for (i = 0; i < COUNT(worker_sums); i++)
		prometheus_simple(out, worker_sums[i].sum_name, "counter",
		    metrics_all_workers(mt, worker_sums[i].sum_offset),
		    worker_sums[i].sum_help);
	prometheus_simple(out, "pagewise_hot_bytes", "gauge",
	    metrics_all_workers(mt, offsetof(struct stats, sta_cached_bytes)),
	    "Bytes in the response cache (hot_set).");
	prometheus_simple(out, "pagewise_tcp_memory_pressure", "gauge",
	    tcp_memory_is_short(mt->mt_workers[0]->wk_tcp_memory),
	    "1 while the kernel uses more memory for TCP than tcp_memory.");
	prometheus_simple(out, "pagewise_heap_pressure", "gauge",
	    heap_limit_is_short(mt->mt_workers[0]->wk_heap),
	    "1 while requests are refused because connections use too much "
	    "memory.");
	metrics_write_limit(mt, out);
	prometheus_family(out, wait, "counter",
	    "Total time that requests waited for a disk.");
	prometheus_seconds(out, wait, "",
	    metrics_all_workers(mt, offsetof(struct stats, sta_disk_wait)));
	metrics_write_connections(mt, out);
	metrics_write_handshakes(mt, out);
	metrics_write_iterations(mt, out);
	metrics_write_sleeps(mt, out);
}

static const char *
metrics_send_path_name(const struct pw_send_path *path)
{
	const char *const *name = pw_send_path_names();

	while (*name != NULL && pw_send_path(*name) != path)
		name++;
	return *name != NULL ? *name : "";
}

static void
metrics_write_build(const struct metrics *mt, struct evbuffer *out)
{
	const struct settings *set = &mt->mt_conf->conf_sites[0].site_set;
	char labels[128];

	prometheus_family(out, "pagewise_build_info", "gauge",
	    "Version, and the send path of the first site; always 1.");
	snprintf(labels, sizeof(labels),
	    "{version=\"%s\",send_path=\"%s\",workers=\"%u\"}", PW_VERSION,
	    metrics_send_path_name(set->set_send_path),
	    mt->mt_conf->conf_workers);
	prometheus_value(out, "pagewise_build_info", labels, 1);
}

void
metrics_write(const struct metrics *mt, struct evbuffer *out)
{
	metrics_write_build(mt, out);
	metrics_write_workers(mt, out);
	metrics_access(mt, out);
	metrics_popular(mt, out);
	metrics_disk(mt, out);
	prometheus_simple(out, "pagewise_log_records_lost_total", "counter",
	    log_access_lost(mt->mt_log),
	    "Access log records lost because the log or its reader was too "
	    "slow.");
	metrics_certificates(mt, out);
	metrics_process(mt, out);
}
