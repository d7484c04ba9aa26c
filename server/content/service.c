/*
 * service: see service.h.
 */
#include <limits.h>
#include <stdlib.h>

#include "server/content/autoindex_cache.h"
#include "server/content/exchange.h"
#include "server/content/popular.h"
#include "server/content/response_cache.h"
#include "server/content/service.h"
#include "server/util/hmac.h"

#define LIST_MAX 4096 /* maximum number of free exchanges to keep for reuse */

time_t
service_time(struct service *svc)
{
	time_t now = time(NULL);

	if (now != svc->svc_time) {
		svc->svc_time = now;
		date_format(now, svc->svc_date);
	}
	return now;
}

struct exchange *
service_take(struct service *svc)
{
	struct exchange_list *xl = &svc->svc_exchanges;
	struct exchange *ex = SLIST_FIRST(&xl->xl_free);

	if (ex == NULL)
		return malloc(sizeof(*ex));
	SLIST_REMOVE_HEAD(&xl->xl_free, ex_free);
	xl->xl_count--;
	return ex;
}

void
service_give(struct service *svc, struct exchange *ex)
{
	struct exchange_list *xl = &svc->svc_exchanges;

	if (xl->xl_count == LIST_MAX) {
		free(ex);
		return;
	}
	SLIST_INSERT_HEAD(&xl->xl_free, ex, ex_free);
	xl->xl_count++;
}

static void
service_forget_exchanges(struct exchange_list *xl, unsigned most)
{
	struct exchange *ex;

	while (most-- > 0 && (ex = SLIST_FIRST(&xl->xl_free)) != NULL) {
		SLIST_REMOVE_HEAD(&xl->xl_free, ex_free);
		xl->xl_count--;
		free(ex);
	}
}

void
service_trim(struct service *svc, unsigned most)
{
	buf_list_free(&svc->svc_bufs, most);
	service_forget_exchanges(&svc->svc_exchanges, most);
}

bool
service_shed(struct service *svc, unsigned most)
{
	bool more = response_cache_shrink(svc->svc_responses, most);
	unsigned n;

	more = autoindex_cache_shrink(svc->svc_listings, most) || more;
	for (n = 0; n < most && pw_loop_spare(svc->svc_loop); n++)
		;
	service_trim(svc, most);
	return more || n == most;
}

void
service_end(struct service *svc)
{
	buf_list_destroy(&svc->svc_bufs);
	service_forget_exchanges(&svc->svc_exchanges, UINT_MAX);
	response_cache_destroy(&svc->svc_responses);
	popular_destroy(&svc->svc_popular);
	hmac_destroy(&svc->svc_hmac);
	free(svc->svc_ranges);
	svc->svc_ranges = NULL;
}
