/*
 * metrics_access: see metrics.h.  Writes metrics of the requests that rate limits refuse, and of
 * the verification of passwords.
 */
#include <inttypes.h>

#include "server/admin/metrics_priv.h"
#include "server/content/verifier.h"
#include "server/worker/worker.h"

static void
metrics_access_write_rates(const struct conf *conf, struct evbuffer *out)
{
	static const char name[] = "pagewise_request_rate_refused_total";
	const struct request_rule *rr = conf->conf_request_rules;

	prometheus_family(out, name, "counter",
	    "Requests refused with 429, by the site and location that set "
	    "request_rate.");
	for (; rr != NULL; rr = rr->rr_next) {
		evbuffer_add_printf(out, "%s{", name);
		prometheus_label(out, "site", rr->rr_site);
		evbuffer_add_printf(out, ",");
		prometheus_label(out, "location", rr->rr_location);
		evbuffer_add_printf(
		    out, "} %" PRIu64 "\n", counter_get(&rr->rr_refused));
	}
}

void
metrics_access(const struct metrics *mt, struct evbuffer *out)
{
	struct verifier *vr = mt->mt_workers[0]->wk_service.svc_verifier;
	struct verifier_counts vc = {0};

	if (vr != NULL)
		verifier_count(vr, &vc);
	metrics_access_write_rates(mt->mt_conf, out);
	prometheus_simple(out, "pagewise_passwords_hashed_total", "counter",
	    vc.vc_hashed, "Passwords whose hash was computed.");
	prometheus_simple(out, "pagewise_passwords_waiting", "gauge",
	    vc.vc_waiting, "Passwords waiting to be verified.");
	prometheus_simple(out, "pagewise_password_threads", "gauge",
	    vc.vc_threads, "Threads that verify passwords.");
	prometheus_simple(out, "pagewise_password_threads_busy", "gauge",
	    vc.vc_busy, "Password threads that are computing a hash.");
}
