/*
 * access: see access.h.
 */
#include "server/content/access.h"
#include "server/content/exchange.h"
#include "server/http/signed_link.h"

static enum access
refuse(struct exchange *ex, int status)
{
	respond_error(ex, status);
	return ACCESS_REFUSED;
}

static bool
has(const struct cidr_list *cl, const struct sockaddr *sa)
{
	return cidr_has_any(cl->cl_list, cl->cl_count, sa);
}

static bool
may_ask(const struct exchange *ex)
{
	const struct settings *set = ex->ex_lookup.lk_set;
	const struct sockaddr *sa = exchange_client(ex);

	return !has(&set->set_deny, sa) &&
	       (!set->set_allow.cl_set || has(&set->set_allow, sa));
}

static enum access
check_link(struct exchange *ex)
{
	const struct settings *set = ex->ex_lookup.lk_set;

	switch (signed_link_check(ex->ex_service->svc_hmac, set->set_link_keys,
	    ex->ex_target.tgt_query, ex->ex_target.tgt_path,
	    exchange_client(ex), ex->ex_time)) {
	case SIGNED_LINK_GOOD:
		return ACCESS_GRANTED;
	case SIGNED_LINK_EXPIRED:
		return refuse(ex, 410);
	case SIGNED_LINK_BAD:
		break;
	}
	return refuse(ex, 403);
}

enum access
access_begin(struct exchange *ex)
{
	const struct settings *set = ex->ex_lookup.lk_set;

	if (!may_ask(ex))
		return refuse(ex, 403);
	if (ex->ex_request.rq_method == METHOD_OPTIONS)
		return ACCESS_GRANTED;
	if (set->set_link_keys != NULL)
		return check_link(ex);
	return ACCESS_GRANTED;
}
