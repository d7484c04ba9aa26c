/*
 * access: see access.h.
 */
#include "server/content/access.h"
#include "server/content/exchange.h"
#include "server/content/pace.h"
#include "server/content/respond.h"
#include "server/http/basic.h"
#include "server/http/signed_link.h"

static bool
access_refuse(struct exchange *ex, int status)
{
	response_error(ex, status);
	return true;
}

static bool
access_has(const struct cidr_list *cl, const struct sockaddr *sa)
{
	return cidr_has_any(cl->cl_list, cl->cl_count, sa);
}

static bool
access_may_ask(const struct exchange *ex)
{
	const struct settings *set = ex->ex_lookup.lk_set;
	const struct sockaddr *sa = exchange_client(ex);

	return !access_has(&set->set_deny, sa) &&
	       (!set->set_allow.cl_set || access_has(&set->set_allow, sa));
}

/* Returns 0 if the request has a valid signed link, else the status of the refusal. */
static int
access_check_link(const struct exchange *ex)
{
	const struct settings *set = ex->ex_lookup.lk_set;

	switch (signed_link_check(ex->ex_service->svc_hmac, set->set_link_keys,
	    ex->ex_target.tgt_query, ex->ex_target.tgt_path,
	    exchange_client(ex), ex->ex_time)) {
	case SIGNED_LINK_GOOD:
		return 0;
	case SIGNED_LINK_EXPIRED:
		return 410;
	case SIGNED_LINK_BAD:
		break;
	}
	return 403;
}

/*
 * Resumes the exchange.  Sets ex_waiting to now, so that ex_wait does not include the wait for a
 * password.
 */
static void
access_on_verified(struct pw_waiter *w)
{
	struct exchange *ex =
	    (struct exchange *)(void *)((char *)w - offsetof(struct exchange,
							ex_verify.vf_waiter));

	ex->ex_waiting = clock_now();
	exchange_resume(ex);
}

static bool
access_busy(struct exchange *ex)
{
	struct service *svc = ex->ex_service;
	char text[INET6_ADDRSTRLEN];

	counter_add(&svc->svc_stats.sta_passwords_refused, 1);
	if (message_rate_tell_of(svc->svc_told, TOLD_BUSY, clock_now(),
		exchange_client(ex), text))
		log_warn(svc->svc_log,
		    "did not verify a password from %s: %u passwords are "
		    "waiting, or %u of one client, or memory is short; set "
		    "request_rate, or use cheaper hashes (htpasswd -B -C 10)",
		    text, VERIFIER_JOBS, VERIFIER_EACH);
	return access_refuse(ex, 503);
}

static bool
access_verified(struct exchange *ex, enum verified result)
{
	switch (result) {
	case VERIFIED_GOOD:
		return respond_admitted(ex);
	case VERIFIED_LATER:
		return exchange_pend(ex, &access_pending);
	case VERIFIED_BUSY:
		return access_busy(ex);
	case VERIFIED_BAD:
		break;
	}
	return access_refuse(ex, 401);
}

static bool
access_resume(struct exchange *ex)
{
	return access_verified(ex, ex->ex_verify.vf_result);
}

static void
access_cancel(struct exchange *ex)
{
	verifier_cancel(ex->ex_service->svc_verifier, &ex->ex_verify);
}

static void
access_defer(struct exchange *ex)
{
	verifier_put_last(ex->ex_service->svc_verifier, &ex->ex_verify);
}

const struct pending access_pending = {
    .resume = access_resume,
    .defer = access_defer,
    .cancel = access_cancel,
    .name = "the password threads",
    .cure = "use cheaper hashes",
};

static bool
access_check_password(struct exchange *ex)
{
	struct service *svc = ex->ex_service;
	enum verified result;
	struct basic bs;

	if (!basic_parse(ex->ex_request.rq_authorization, &bs))
		return access_refuse(ex, 401);
	buf_str(&ex->ex_user, &svc->svc_bufs, bs.bs_user);
	ex->ex_verify.vf_waiter.wt_done = access_on_verified;
	result = verifier_ask(svc->svc_verifier, svc->svc_hmac,
	    ex->ex_lookup.lk_set->set_htpasswd, &bs, exchange_client(ex),
	    svc->svc_loop, &ex->ex_verify);
	basic_forget(&bs);
	return access_verified(ex, result);
}

bool
access_admit(struct exchange *ex)
{
	unsigned seconds;

	if (!access_may_ask(ex)) {
		response_error(ex, 403);
		return false;
	}
	if (!pace_admit(ex, &seconds)) {
		response_too_many(ex, seconds);
		return false;
	}
	pace_begin(ex);
	return true;
}

bool
access_begin(struct exchange *ex)
{
	const struct settings *set = ex->ex_lookup.lk_set;
	int status;

	if (ex->ex_request.rq_method == METHOD_OPTIONS)
		return respond_admitted(ex);
	status = set->set_link_keys != NULL ? access_check_link(ex) : 0;
	if (status != 0)
		return access_refuse(ex, status);
	return set->set_htpasswd != NULL ? access_check_password(ex)
					 : respond_admitted(ex);
}
