/*
 * prometheus: the lines of Prometheus' text format.  Of a metric the family comes
 * first, then its values.  Labels are "{name=\"value\"}", or "" for none; nothing in
 * them is escaped but by prometheus_label.
 */
#ifndef SERVER_ADMIN_PROMETHEUS_H
#define SERVER_ADMIN_PROMETHEUS_H

#include <event2/buffer.h>
#include <stdint.h>

#include "lib/pagewise.h"

/* type: "counter", "gauge", "histogram". */
void prometheus_family(
    struct evbuffer *, const char *name, const char *type, const char *help);
void prometheus_value(
    struct evbuffer *, const char *name, const char *labels, uint64_t);

/* NAME="VALUE", of any text: what is not UTF-8 becomes U+FFFD. */
void prometheus_label(struct evbuffer *, const char *name, const char *value);

/* Of microseconds. */
void prometheus_seconds(
    struct evbuffer *, const char *name, const char *labels, uint64_t us);

/* labels without braces, at least one. */
void prometheus_histogram(struct evbuffer *, const char *name,
    const char *labels, const struct pw_histogram *);

/* A family of one value. */
void prometheus_simple(struct evbuffer *, const char *name, const char *type,
    uint64_t, const char *help);

#endif
