/*
 * prometheus: writes lines of Prometheus' text format.  A metric's family precedes its values.  The
 * parameter `labels` is "{name=\"value\"}", or "" if there are none; only prometheus_label escapes
 * the values of labels.
 */
#ifndef SERVER_ADMIN_PROMETHEUS_H
#define SERVER_ADMIN_PROMETHEUS_H

#include <event2/buffer.h>
#include <stdint.h>

#include "lib/pagewise.h"

/* Writes the HELP and TYPE lines of a family.  `type` is "counter", "gauge" or "histogram". */
void prometheus_family(
    struct evbuffer *, const char *name, const char *type, const char *help);
void prometheus_value(
    struct evbuffer *, const char *name, const char *labels, uint64_t);

/*
 * Writes the label NAME="VALUE", for any text as its value: escapes characters, and replaces bytes
 * that are not UTF-8 by U+FFFD.
 */
void prometheus_label(struct evbuffer *, const char *name, const char *value);

/* Writes microseconds as seconds. */
void prometheus_seconds(
    struct evbuffer *, const char *name, const char *labels, uint64_t us);

/* Writes a histogram.  `labels` has at least one label and no braces. */
void prometheus_histogram(struct evbuffer *, const char *name,
    const char *labels, const struct pw_histogram *);

/* Writes a family with a single value. */
void prometheus_simple(struct evbuffer *, const char *name, const char *type,
    uint64_t, const char *help);

#endif
