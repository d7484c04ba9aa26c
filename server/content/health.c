/*
 * health: see health.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util/clock.h"
#include "server/content/exchange.h"
#include "server/content/health.h"

#define SECOND_US ((uint64_t)1000000)
#define LINE	  1024 /* maximum bytes with the NUL; longer lines are cut */

static void
health_name_root(struct root_health *rh, const struct conf *conf, size_t root)
{
	for (size_t i = 0; i < conf->conf_nsites; i++) {
		const struct site *site = &conf->conf_sites[i];

		rh->rh_site = site;
		rh->rh_location = "";
		if (site->site_set.set_root == root)
			return;
		for (size_t j = 0; j < site->site_nlocations; j++) {
			rh->rh_location = site->site_locations[j].loc_path;
			if (site->site_locations[j].loc_set.set_root == root)
				return;
		}
	}
}

struct health *
health_create(const struct conf *conf, uint64_t now)
{
	size_t n = conf->conf_nroots;
	struct health *hl = calloc(1, sizeof(*hl) + n * sizeof(*hl->hl_roots));

	if (hl == NULL)
		return NULL;
	hl->hl_count = n;
	for (size_t i = 0; i < n; i++) {
		health_name_root(&hl->hl_roots[i], conf, i);
		atomic_init(&hl->hl_roots[i].rh_responded, now);
		atomic_init(&hl->hl_roots[i].rh_error, 0);
	}
	return hl;
}

void
health_destroy(struct health **hlp)
{
	free(*hlp);
	*hlp = NULL;
}

bool
health_drains(const struct health *hl)
{
	return atomic_load(&hl->hl_ending) || atomic_load(&hl->hl_withdrawn);
}

/* Writes the line for a root.  Returns true if the root responds without an error. */
static bool
health_describe(
    const struct root_health *rh, uint64_t now, char *text, size_t size)
{
	uint64_t answered = atomic_load(&rh->rh_responded);
	uint64_t silent = now > answered ? now - answered : 0;
	int error = atomic_load(&rh->rh_error), len;

	len = snprintf(text, size, "%s%s%s: ", rh->rh_site->site_name,
	    rh->rh_location[0] != '\0' ? " " : "", rh->rh_location);
	if (len < 0 || (size_t)len >= size)
		len = (int)size - 1;
	text += len;
	size -= (size_t)len;
	if (silent >= HEALTH_SILENT)
		snprintf(text, size, "no response for %llu s",
		    (unsigned long long)(silent / SECOND_US));
	else
		snprintf(
		    text, size, "%s", error == 0 ? "ok" : strerror(-error));
	return silent < HEALTH_SILENT && error == 0;
}

bool
health_is_well(const struct health *hl, uint64_t now, char *text, size_t size)
{
	for (size_t i = 0; i < hl->hl_count; i++)
		if (!health_describe(&hl->hl_roots[i], now, text, size))
			return false;
	return true;
}

static void
health_respond_ready(struct exchange *ex)
{
	struct service *svc = ex->ex_service;
	const struct health *hl = svc->svc_health;
	struct buf lines = {0}, text = {0};
	uint64_t now = clock_now();
	bool ready = true, drains = health_drains(hl);
	char line[LINE];

	for (size_t i = 0; i < hl->hl_count; i++) {
		ready &=
		    health_describe(&hl->hl_roots[i], now, line, sizeof(line));
		buf_str(&lines, &svc->svc_bufs, line);
		buf_str(&lines, &svc->svc_bufs, "\n");
	}
	buf_str(&text, &svc->svc_bufs,
	    drains  ? "draining\n"
	    : ready ? "ready\n"
		    : "not ready\n");
	if (lines.b_len > 0)
		buf_add(&text, &svc->svc_bufs, lines.b_data, lines.b_len);
	if (text.b_failed || lines.b_failed)
		response_error(ex, 503);
	else
		response_text(ex, ready && !drains ? 200 : 503,
		    (struct str){text.b_data, text.b_len});
	buf_release(&lines, &svc->svc_bufs);
	buf_release(&text, &svc->svc_bufs);
}

static bool
health_is_path(const struct exchange *ex, const char *path)
{
	return path != NULL &&
	       str_eq(ex->ex_target.tgt_path, (struct str){path, strlen(path)});
}

bool
health_respond(struct exchange *ex)
{
	const struct conf *conf = ex->ex_service->svc_conf;

	if (health_is_path(ex, conf->conf_live))
		response_text(ex, 200, STR("live\n"));
	else if (health_is_path(ex, conf->conf_ready))
		health_respond_ready(ex);
	else
		return false;
	return true;
}
