/*
 * tier_notice: see tier_notice.h.
 */
#include <stdio.h>

#include "lib/disk/tier_fetch.h"
#include "lib/util/clock.h"
#include "server/conf/conf.h"
#include "server/log/log.h"
#include "server/process/tier_notice.h"
#include "server/util/debug.h"

#define SECOND_US      ((uint64_t)1000000)
#define MILLI_US       1000
/* time for which another process may have the tier without a warning, seconds */
#define PATIENCE_FIRST 2
#define PATIENCE_AGAIN 30

void
tier_notice_init(struct tier_notice *tn, const struct conf *conf, bool again)
{
	uint64_t patience =
	    again ? debug_number("PAGEWISE_TIER_SECONDS", PATIENCE_AGAIN)
		  : PATIENCE_FIRST;

	*tn = (struct tier_notice){
	    .tn_deadline = clock_now() + patience * SECOND_US,
	    .tn_off = conf->conf_tier == NULL,
	};
}

int
tier_notice_wait(const struct tier_notice *tn)
{
	uint64_t now;

	if (tn->tn_off)
		return -1;
	now = clock_now();
	return now >= tn->tn_next ? 0
				  : (int)((tn->tn_next - now) / MILLI_US) + 1;
}

/* Handles a tier that no other process has. */
static void
tier_notice_end(struct tier_notice *tn, const struct conf *conf,
    const struct tier_stats *tu, struct log_writer *log)
{
	if (tn->tn_logged)
		log_notice(log, "tier %s is free: using it", conf->conf_tier);
	tn->tn_logged = false;
	tn->tn_off = tu->tu_on;
}

void
tier_notice_look(struct tier_notice *tn, const struct conf *conf,
    struct pw_pool *pool, struct log_writer *log)
{
	uint64_t now = clock_now();
	struct tier_stats tu;

	if (tn->tn_off || now < tn->tn_next)
		return;
	tn->tn_next = now + SECOND_US;
	if (!tier_fetch_stats(pool, &tu))
		tn->tn_off = true;
	else if (!tu.tu_taken)
		tier_notice_end(tn, conf, &tu, log);
	else if (!tn->tn_logged && now >= tn->tn_deadline) {
		log_warn(log,
		    "another process uses tier %s: serving without it until "
		    "that process ends; give each server its own directory",
		    conf->conf_tier);
		tn->tn_logged = true;
	}
}

void
tier_notice_print(const struct conf *conf)
{
	if (conf->conf_tier != NULL && tier_is_in_use(conf->conf_tier))
		printf(
		    "tier %s is in use by a running server\n", conf->conf_tier);
}
