/*
 * metrics_disk: writes the library's figures of the page cache, the budget and the disk queues.
 */
#include <stdio.h>
#include <string.h>

#include "lib/disk/cold.h"
#include "lib/disk/pool.h"
#include "lib/disk/tier_fetch.h"
#include "lib/os/os.h"

#include "server/admin/metrics_priv.h"
#include "server/worker/worker.h"

#define DEVICES 64 /* maximum number of devices of the pool */

#define LOOPS(name, field, help)                                  \
	{                                                         \
		name, help, offsetof(struct pw_loop_stats, field) \
	}

static const struct sum loop_sums[] = {
    LOOPS("pagewise_shares_resident_total", ls_resident,
	"Chunks of files (up to 2 MiB) that were in the page cache when the "
	"server was about to send them."),
    LOOPS("pagewise_windows_missed_total", ls_missed,
	"Windows that a request waited for, because they were not in the page "
	"cache."),
    LOOPS("pagewise_windows_ahead_total", ls_ahead,
	"Windows prefetched while the previous window was being sent."),
    LOOPS("pagewise_windows_evicted_total", ls_evicted,
	"Fetched windows that were evicted from the page cache before they "
	"were sent."),
    LOOPS("pagewise_budget_waits_total", ls_held,
	"Times a transfer waited because the budget for unsent bytes was used "
	"up."),
};

static void
metrics_disk_write_loops(const struct metrics *mt, struct evbuffer *out)
{
	struct pw_loop_stats ls;
	uint64_t sums[COUNT(loop_sums)] = {0}, n;
	unsigned w;
	size_t i;

	for (w = 0; w < mt->mt_conf->conf_workers; w++) {
		pw_loop_stats(mt->mt_workers[w]->wk_service.svc_loop, &ls);
		for (i = 0; i < COUNT(loop_sums); i++) {
			memcpy(&n, (const char *)&ls + loop_sums[i].sum_offset,
			    sizeof(n));
			sums[i] += n;
		}
	}
	for (i = 0; i < COUNT(loop_sums); i++)
		prometheus_simple(out, loop_sums[i].sum_name, "counter",
		    sums[i], loop_sums[i].sum_help);
}

static void
metrics_disk_write_pool(const struct metrics *mt, struct evbuffer *out)
{
	const struct cold *co = pool_cold(mt->mt_pool);
	struct pw_pool_stats ps;

	pw_pool_stats(mt->mt_pool, &ps);
	prometheus_simple(out, "pagewise_refused_total", "counter",
	    ps.ps_refused,
	    "Requests refused with 503 because a disk's queue was full.");
	prometheus_simple(out, "pagewise_dropped_bytes_total", "counter",
	    ps.ps_dropped,
	    "Bytes dropped from the page cache (cache = drop or auto).");
	prometheus_simple(out, "pagewise_unsent_bytes", "gauge", ps.ps_unsent,
	    "Bytes being fetched, or fetched and not yet sent.");
	prometheus_simple(out, "pagewise_unsent_limit_bytes", "gauge",
	    ps.ps_unsent_max, "Budget: maximum of pagewise_unsent_bytes.");
	prometheus_simple(out, "pagewise_pinned_bytes", "gauge",
	    pw_pool_pinned(mt->mt_pool),
	    "Bytes of memory pinned for windows until they are sent.");
	prometheus_simple(out, "pagewise_native_calls", "gauge",
	    atomic_load(&co->co_calls),
	    "FreeBSD: sendfile calls whose disk reads may be in flight.");
	prometheus_simple(out, "pagewise_native_calls_limit", "gauge",
	    co->co_most,
	    "FreeBSD: limit of pagewise_native_calls, which is half of "
	    "vm.vnode_pbufs; 0 on other systems.");
}

static void
metrics_disk_device_labels(
    const struct pw_device_stats *ds, char *text, size_t size)
{
	char dev[32] = "other";

	if (ds->ds_dev != 0)
		os_dev_name(ds->ds_dev, dev, sizeof(dev));
	snprintf(text, size, "device=\"%s\",queue=\"%s\"", dev, ds->ds_queue);
}

/* A metric of each disk queue, and the field of struct pw_device_stats with its value. */
struct figure {
	const char *fig_name;
	const char *fig_type;
	const char *fig_help;
	size_t fig_offset;
	size_t fig_width; /* size of the field, bytes */
};

#define DEVICE(field, name, type, help)                                    \
	{                                                                  \
		name, type, help, offsetof(struct pw_device_stats, field), \
		    sizeof(((struct pw_device_stats *)0)->field)           \
	}

static const struct figure device_figures[] = {
    DEVICE(ds_threads, "pagewise_disk_threads", "gauge",
	"Threads of a device's queue."),
    DEVICE(ds_busy, "pagewise_disk_threads_busy", "gauge",
	"Busy threads of a device's queue."),
    DEVICE(ds_queued, "pagewise_disk_queue_length", "gauge",
	"Jobs waiting in a device's queue."),
    DEVICE(ds_jobs, "pagewise_disk_jobs_total", "counter",
	"Finished jobs (windows, opens, listings, closes, drops)."),
    DEVICE(ds_bytes, "pagewise_disk_fetched_bytes_total", "counter",
	"Bytes fetched from files."),
    DEVICE(ds_refused, "pagewise_disk_refused_total", "counter",
	"Jobs refused because the queue was full."),
};

static uint64_t
metrics_disk_figure_of(
    const struct pw_device_stats *ds, const struct figure *fig)
{
	const char *field = (const char *)ds + fig->fig_offset;
	unsigned narrow;
	uint64_t wide;

	if (fig->fig_width == sizeof(narrow)) {
		memcpy(&narrow, field, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, field, sizeof(wide));
	return wide;
}

static void
metrics_disk_write_figure(struct evbuffer *out, const struct figure *fig,
    const struct pw_device_stats *ds, size_t n)
{
	char inner[128], labels[160];
	size_t i;

	prometheus_family(out, fig->fig_name, fig->fig_type, fig->fig_help);
	for (i = 0; i < n; i++) {
		metrics_disk_device_labels(&ds[i], inner, sizeof(inner));
		snprintf(labels, sizeof(labels), "{%s}", inner);
		prometheus_value(out, fig->fig_name, labels,
		    metrics_disk_figure_of(&ds[i], fig));
	}
}

/*
 * Writes the file system as a metric of its own, not as a label of other metrics: the file system
 * becomes known later than the device, and the labels of a series must not change.
 */
static void
metrics_disk_write_info(
    struct evbuffer *out, const struct pw_device_stats *ds, size_t n)
{
	static const char info[] = "pagewise_disk_info";
	char inner[128], labels[320];
	const char *mount;
	size_t i;

	prometheus_family(out, info, "gauge",
	    "File system of a device, once it is known; always 1.");
	for (i = 0; i < n; i++) {
		if (ds[i].ds_fsname == NULL)
			continue;
		metrics_disk_device_labels(&ds[i], inner, sizeof(inner));
		mount = ds[i].ds_mount;
		snprintf(labels, sizeof(labels), "{%s,fs=\"%s\"%s%s%s}", inner,
		    ds[i].ds_fsname, mount == NULL ? "" : ",mount=\"",
		    mount == NULL ? "" : mount, mount == NULL ? "" : "\"");
		prometheus_value(out, info, labels, 1);
	}
}

/* Lists the devices.  Omits the slot for surplus devices while no device uses it. */
static size_t
metrics_disk_used_devices(const struct metrics *mt, struct pw_device_stats *ds)
{
	size_t i, n = pw_pool_devices(mt->mt_pool, ds, DEVICES), used = 0;

	for (i = 0; i < n; i++)
		if (ds[i].ds_dev != 0 || ds[i].ds_threads > 0)
			memmove(&ds[used++], &ds[i], sizeof(ds[i]));
	return used;
}

static void
metrics_disk_write_head(struct evbuffer *out, const char *name,
    const struct pool_head *ph, uint64_t value)
{
	char dev[32], labels[64];

	os_dev_name(ph->ph_dev, dev, sizeof(dev));
	snprintf(labels, sizeof(labels), "{device=\"%s\"}", dev);
	prometheus_value(out, name, labels, value);
}

static void
metrics_disk_write_heads(const struct metrics *mt, struct evbuffer *out)
{
	static const char seeks[] = "pagewise_disk_seeks";
	static const char rate[] = "pagewise_disk_measured_bytes_per_second";
	struct pool_head ph[DEVICES];
	size_t i, n = pool_heads(mt->mt_pool, ph, DEVICES);

	prometheus_family(out, seeks, "gauge",
	    "1 if the disk rotates and was as slow as a single one.");
	for (i = 0; i < n; i++)
		metrics_disk_write_head(out, seeks, &ph[i], ph[i].ph_seeks);
	prometheus_family(out, rate, "gauge",
	    "Last rate of a rotating disk while it read, with 1 MiB added to "
	    "each read; 0 if unknown.");
	for (i = 0; i < n; i++)
		metrics_disk_write_head(out, rate, &ph[i], ph[i].ph_rate);
}

static void
metrics_disk_write_devices(const struct metrics *mt, struct evbuffer *out)
{
	static const char wait[] = "pagewise_disk_wait_seconds";
	struct pw_device_stats ds[DEVICES];
	size_t i, n = metrics_disk_used_devices(mt, ds);
	char labels[128];

	metrics_disk_write_info(out, ds, n);
	for (i = 0; i < COUNT(device_figures); i++)
		metrics_disk_write_figure(out, &device_figures[i], ds, n);
	prometheus_family(out, wait, "histogram",
	    "Time from queueing a job until it finished.");
	for (i = 0; i < n; i++) {
		metrics_disk_device_labels(&ds[i], labels, sizeof(labels));
		prometheus_histogram(out, wait, labels, &ds[i].ds_wait);
	}
}

static void
metrics_disk_write_tier(const struct metrics *mt, struct evbuffer *out)
{
	struct tier_stats tu;

	if (!tier_fetch_stats(mt->mt_pool, &tu))
		return;
	prometheus_simple(out, "pagewise_tier_up", "gauge", tu.tu_on,
	    "1 while the tier is used; 0 while another process has it, and "
	    "for 10 s after an error.");
	prometheus_simple(out, "pagewise_tier_taken", "gauge", tu.tu_taken,
	    "1 while another process has the tier.");
	prometheus_simple(out, "pagewise_tier_windows", "gauge", tu.tu_windows,
	    "Windows in the tier.");
	prometheus_simple(out, "pagewise_tier_hits_total", "counter",
	    tu.tu_hits,
	    "Reads from the tier, each of a window or a part of one.");
	prometheus_simple(out, "pagewise_tier_hit_bytes_total", "counter",
	    tu.tu_hit_bytes, "Bytes read from the tier.");
	prometheus_simple(out, "pagewise_tier_misses_total", "counter",
	    tu.tu_misses,
	    "Reads from slow disks, since the tier did not have the window.");
	prometheus_simple(out, "pagewise_tier_written_bytes_total", "counter",
	    tu.tu_written, "Bytes written to the tier.");
	prometheus_simple(out, "pagewise_tier_skipped_total", "counter",
	    tu.tu_skipped,
	    "Windows not written to the tier, because of tier_writes or an "
	    "error.");
	prometheus_simple(out, "pagewise_tier_corrupt_total", "counter",
	    tu.tu_corrupt, "Windows of the tier with a wrong checksum.");
	prometheus_simple(out, "pagewise_tier_errors_total", "counter",
	    tu.tu_errors, "Failed reads and writes of the tier.");
	prometheus_simple(out, "pagewise_tier_late_total", "counter",
	    tu.tu_late, "Reads of the tier that took more than a second.");
}

void
metrics_disk(const struct metrics *mt, struct evbuffer *out)
{
	metrics_disk_write_loops(mt, out);
	metrics_disk_write_pool(mt, out);
	metrics_disk_write_tier(mt, out);
	metrics_disk_write_devices(mt, out);
	metrics_disk_write_heads(mt, out);
}
