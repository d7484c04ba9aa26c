/*
 * slow_clients: see slow_clients.h.
 */
#include "lib/disk/shares.h"
#include "lib/file/slow_clients.h"
#include "lib/util/clock.h"

bool
slow_clients_begin(const struct slow_clients *sls, unsigned client,
    uint64_t now, struct slow_lookup *slo)
{
	const struct slow_client *sl;
	bool known;

	client >>= SHARES_CONNECTION;
	sl = &sls->sls_list[client % SLOW_CLIENTS];
	known = sl->sl_client == client && now < sl->sl_until;
	slo->slo_client = client;
	slo->slo_suspect = known;
	slo->slo_began = known ? clock_thread() : now;
	return !known || !sl->sl_proven;
}

void
slow_clients_end(struct slow_clients *sls, const struct slow_lookup *slo)
{
	uint64_t now = clock_now(),
		 end = slo->slo_suspect ? clock_thread() : now;

	if (end - slo->slo_began >= SLOW_US)
		sls->sls_list[slo->slo_client % SLOW_CLIENTS] =
		    (struct slow_client){
			slo->slo_client, slo->slo_suspect, now + SLOW_FOR_US};
}
