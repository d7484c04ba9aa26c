/*
 * health: see health.h.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/util/clock.h"
#include "server/content/exchange.h"
#include "server/content/health.h"

#define SECOND_US ((uint64_t)1000000)

/* The first who has it: a site, or one of its locations. */
static void
name_root(struct root_health *rh, const struct conf *conf, size_t root)
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
		name_root(&hl->hl_roots[i], conf, i);
		atomic_init(&hl->hl_roots[i].rh_answered, now);
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

/* Writes its line; true: it is well. */
static bool
write_root(struct buf *text, struct buf_list *bufs,
    const struct root_health *rh, uint64_t now)
{
	uint64_t answered = atomic_load(&rh->rh_answered);
	uint64_t silent = now > answered ? now - answered : 0;
	int error = atomic_load(&rh->rh_error);

	buf_str(text, bufs, rh->rh_site->site_name);
	if (rh->rh_location[0] != '\0') {
		buf_str(text, bufs, " ");
		buf_str(text, bufs, rh->rh_location);
	}
	buf_str(text, bufs, ": ");
	if (silent >= HEALTH_SILENT) {
		buf_str(text, bufs, "no answer for ");
		buf_uint(text, bufs, silent / SECOND_US);
		buf_str(text, bufs, " s\n");
		return false;
	}
	buf_str(text, bufs, error == 0 ? "ok" : strerror(-error));
	buf_str(text, bufs, "\n");
	return error == 0;
}

static void
answer_ready(struct exchange *ex)
{
	struct service *svc = ex->ex_service;
	const struct health *hl = svc->svc_health;
	struct buf lines = {0}, text = {0};
	uint64_t now = clock_now();
	bool ready = true;

	for (size_t i = 0; i < hl->hl_count; i++)
		ready &=
		    write_root(&lines, &svc->svc_bufs, &hl->hl_roots[i], now);
	buf_str(&text, &svc->svc_bufs, ready ? "ready\n" : "not ready\n");
	if (lines.b_len > 0)
		buf_add(&text, &svc->svc_bufs, lines.b_data, lines.b_len);
	if (text.b_failed || lines.b_failed)
		respond_error(ex, 503);
	else
		respond_text(ex, ready ? 200 : 503,
		    (struct str){text.b_data, text.b_len});
	buf_release(&lines, &svc->svc_bufs);
	buf_release(&text, &svc->svc_bufs);
}

static bool
is_path(const struct exchange *ex, const char *path)
{
	return path != NULL &&
	       str_eq(ex->ex_target.tgt_path, (struct str){path, strlen(path)});
}

bool
health_answer(struct exchange *ex)
{
	const struct conf *conf = ex->ex_service->svc_conf;

	if (is_path(ex, conf->conf_live))
		respond_text(ex, 200, STR("live\n"));
	else if (is_path(ex, conf->conf_ready))
		answer_ready(ex);
	else
		return false;
	return true;
}
