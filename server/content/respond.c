/*
 * respond: see respond.h.
 */
#include "server/content/exchange.h"
#include "server/content/health.h"
#include "server/content/respond.h"

bool
respond_admitted(struct exchange *ex)
{
	if (ex->ex_refusal != 0) {
		ex->ex_no_site = ex->ex_lookup.lk_host.s_len == 0;
		response_error(ex, ex->ex_refusal);
		return true;
	}
	if (ex->ex_request.rq_method == METHOD_OPTIONS) {
		response_options(ex);
		return true;
	}
	if (ex->ex_service->svc_health != NULL && health_respond(ex))
		return true;
	return static_begin(ex);
}
