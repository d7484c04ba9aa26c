/*
 * pace: see pace.h.
 */
#include <stdatomic.h>

#include "lib/util/clock.h"
#include "server/content/client_rates.h"
#include "server/content/exchange.h"
#include "server/content/pace.h"

#define NANO   UINT64_C(1000)
#define SECOND UINT64_C(1000000000)

static uint64_t
pace_now_ns(void)
{
	return clock_now() * NANO;
}

bool
pace_admit(struct exchange *ex, unsigned *seconds)
{
	const struct settings *set = ex->ex_lookup.lk_set;
	struct client_rates *rates = ex->ex_service->svc_rates;
	struct client_buckets cb;
	uint64_t wait = 0, now = pace_now_ns();
	bool good;

	if (set->set_request_rate.tr_rate == 0)
		return true;
	client_rates_take(
	    rates, exchange_client(ex), set->set_request_rule, now, &cb);
	good = client_buckets_try(
	    &cb, &set->set_request_rate, RATE_REQUEST, now, &wait);
	client_rates_give(rates, &cb);
	if (!good)
		atomic_fetch_add_explicit(&set->set_request_rule->rr_refused, 1,
		    memory_order_relaxed);
	*seconds = (unsigned)((wait + SECOND - 1) / SECOND);
	return good;
}

void
pace_begin(struct exchange *ex)
{
	const struct settings *set = ex->ex_lookup.lk_set;

	ex->ex_paced = pace_rate(ex) > 0;
	if (set->set_client_rate.tr_rate > 0)
		client_rates_take(ex->ex_service->svc_rates,
		    exchange_client(ex), set->set_client_rule, pace_now_ns(),
		    &ex->ex_client_rate);
}

uint64_t
pace_rate(const struct exchange *ex)
{
	const struct settings *set = ex->ex_lookup.lk_set;
	uint64_t one = set->set_rate.tr_rate;
	uint64_t all = set->set_client_rate.tr_rate;

	return one == 0 || (all > 0 && all < one) ? all : one;
}

/*
 * Takes `n` bytes from the buckets of the connection and the client.  Returns the time in
 * nanoseconds from which these bytes may be sent.
 */
static uint64_t
pace_take(struct exchange *ex, uint64_t n)
{
	const struct settings *set = ex->ex_lookup.lk_set;
	uint64_t now = pace_now_ns(), one = 0, all = 0;

	if (set->set_rate.tr_rate > 0)
		one = token_take(ex->ex_bucket, &set->set_rate, n, now);
	all = client_buckets_take(
	    &ex->ex_client_rate, &set->set_client_rate, n, now);
	return one > all ? one : all;
}

static void
pace_give(struct exchange *ex, uint64_t n)
{
	const struct settings *set = ex->ex_lookup.lk_set;

	if (set->set_rate.tr_rate > 0)
		token_give(ex->ex_bucket, &set->set_rate, n);
	client_buckets_give(&ex->ex_client_rate, &set->set_client_rate, n);
}

static bool
pace_has_body(const struct response *rs)
{
	return rs->rs_nranges > 0 || rs->rs_body.s_len > 0 ||
	       rs->rs_stream != NULL;
}

/*
 * Corrects the buckets: returns bytes that were taken but not sent, or takes bytes that were sent
 * but not taken, such as the bytes of a head.
 */
static void
pace_settle(struct exchange *ex)
{
	uint64_t sent = response_sent(&ex->ex_response);

	if (ex->ex_allowed == 0)
		return;
	if (ex->ex_allowed > sent)
		pace_give(ex, ex->ex_allowed - sent);
	else if (sent > ex->ex_allowed)
		(void)pace_take(ex, sent - ex->ex_allowed);
	ex->ex_allowed = sent;
}

uint64_t
pace_left(const struct exchange *ex)
{
	uint64_t sent = response_sent(&ex->ex_response);

	if (!pace_has_body(&ex->ex_response))
		return UINT64_MAX;
	return ex->ex_allowed > sent ? ex->ex_allowed - sent : 0;
}

uint64_t
pace_wait(struct exchange *ex)
{
	uint64_t n, now;

	if (!pace_has_body(&ex->ex_response))
		return 0;
	if (pace_left(ex) == 0) {
		pace_settle(ex);
		n = token_share(pace_rate(ex));
		ex->ex_not_before = pace_take(ex, n) / NANO;
		ex->ex_allowed += n;
	}
	now = clock_now();
	return ex->ex_not_before > now ? ex->ex_not_before : 0;
}

void
pace_end(struct exchange *ex)
{
	pace_settle(ex);
	client_rates_give(ex->ex_service->svc_rates, &ex->ex_client_rate);
	ex->ex_paced = false;
}
