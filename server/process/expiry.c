/*
 * expiry: see expiry.h.
 */
#include <time.h>

#include "lib/util/clock.h"
#include "server/conf/conf.h"
#include "server/log/log.h"
#include "server/process/expiry.h"
#include "server/util/debug.h"

#define DAY_SECONDS 86400
#define SECOND_US   ((uint64_t)1000000)
#define MILLI_US    1000

int
expiry_wait(const struct expiry *ex, const struct conf *conf)
{
	uint64_t now;

	if (conf->conf_nidentities == 0)
		return -1;
	now = clock_now();
	return now >= ex->ex_next ? 0
				  : (int)((ex->ex_next - now) / MILLI_US) + 1;
}

void
expiry_look(struct expiry *ex, const struct conf *conf, struct log_writer *log)
{
	uint64_t now = clock_now();
	time_t today = time(NULL);
	char why[512];

	if (conf->conf_nidentities == 0 || now < ex->ex_next)
		return;
	ex->ex_next =
	    now + debug_number("PAGEWISE_DAY_SECONDS", DAY_SECONDS) * SECOND_US;
	for (size_t i = 0; i < conf->conf_nidentities; i++)
		if (!identity_stays_good(
			conf->conf_identities[i], today, why, sizeof(why)))
			log_warn(log, "%s", why);
}
