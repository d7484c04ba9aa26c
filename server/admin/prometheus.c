/*
 * prometheus: see prometheus.h.
 */
#include <inttypes.h>
#include <string.h>

#include "server/admin/prometheus.h"
#include "server/util/stats.h"
#include "server/util/utf8.h"

#define SECOND_US 1000000

void
prometheus_family(
    struct evbuffer *out, const char *name, const char *type, const char *help)
{
	evbuffer_add_printf(
	    out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void
prometheus_value(
    struct evbuffer *out, const char *name, const char *labels, uint64_t n)
{
	evbuffer_add_printf(out, "%s%s %" PRIu64 "\n", name, labels, n);
}

void
prometheus_label(struct evbuffer *out, const char *name, const char *value)
{
	size_t n, left = strlen(value);
	uint32_t character;

	evbuffer_add_printf(out, "%s=\"", name);
	for (; left > 0; value += n, left -= n) {
		n = utf8_decode(value, left, &character);
		if (n == 0) {
			evbuffer_add_printf(out, "\xef\xbf\xbd");
			n = 1;
		} else if (character == '\n') {
			evbuffer_add_printf(out, "\\n");
		} else if (character == '"' || character == '\\') {
			evbuffer_add_printf(out, "\\%c", *value);
		} else {
			evbuffer_add_printf(out, "%.*s", (int)n, value);
		}
	}
	evbuffer_add_printf(out, "\"");
}

void
prometheus_simple(struct evbuffer *out, const char *name, const char *type,
    uint64_t n, const char *help)
{
	prometheus_family(out, name, type, help);
	prometheus_value(out, name, "", n);
}

void
prometheus_seconds(
    struct evbuffer *out, const char *name, const char *labels, uint64_t us)
{
	evbuffer_add_printf(out, "%s%s %" PRIu64 ".%06" PRIu64 "\n", name,
	    labels, us / SECOND_US, us % SECOND_US);
}

void
prometheus_histogram(struct evbuffer *out, const char *name, const char *labels,
    const struct pw_histogram *counted)
{
	struct pw_histogram now, *hg = &now;
	uint64_t us, sum = 0;
	int i;

	pw_histogram_copy(hg, counted);
	for (i = 0; i < PW_HISTOGRAM; i++) {
		sum += hg->hg_count[i];
		us = (uint64_t)1 << i;
		evbuffer_add_printf(out, "%s_bucket{%s,le=\"", name, labels);
		if (i == PW_HISTOGRAM - 1)
			evbuffer_add_printf(out, "+Inf");
		else
			evbuffer_add_printf(out, "%" PRIu64 ".%06" PRIu64,
			    us / SECOND_US, us % SECOND_US);
		evbuffer_add_printf(out, "\"} %" PRIu64 "\n", sum);
	}
	us = hg->hg_sum;
	evbuffer_add_printf(out,
	    "%s_sum{%s} %" PRIu64 ".%06" PRIu64 "\n"
	    "%s_count{%s} %" PRIu64 "\n",
	    name, labels, us / SECOND_US, us % SECOND_US, name, labels, sum);
}
