/*
 * metrics_certificates: writes the expiry time of each certificate.  The metric has the name that
 * cert-manager uses, with another prefix.
 */
#include "server/admin/metrics_priv.h"

void
metrics_certificates(const struct metrics *mt, struct evbuffer *out)
{
	static const char name[] =
	    "pagewise_certificate_expiration_timestamp_seconds";
	const struct conf *conf = mt->mt_conf;

	if (conf->conf_nidentities == 0)
		return;
	prometheus_family(out, name, "gauge",
	    "Earliest expiry of the certificates in this file; Unix time.");
	for (size_t i = 0; i < conf->conf_nidentities; i++) {
		evbuffer_add_printf(out, "%s{", name);
		prometheus_label(
		    out, "file", conf->conf_identities[i]->id_file);
		evbuffer_add_printf(out, "} %llu\n",
		    (unsigned long long)conf->conf_identities[i]->id_expires);
	}
}
