/*
 * ready: see ready.h.
 */
#include "server/content/exchange.h"
#include "server/content/ready.h"
#include "server/content/representation.h"
#include "server/content/response_cache.h"

/*
 * Returns the key of the response.  ck_target is NULL if the response cannot be cached: another
 * file might take precedence, or the response depends on the client.
 */
static struct cached_key
ready_key(const struct exchange *ex)
{
	const struct lookup *lk = &ex->ex_lookup;
	struct str raw = ex->ex_request.rq_target;

	if (ex->ex_service->svc_responses == NULL ||
	    !str_eq(raw, ex->ex_target.tgt_path) || lk->lk_index > 1 ||
	    lk->lk_step > 1 || lk->lk_set->set_cache == PW_CACHE_DROP ||
	    lk->lk_set->set_by_client)
		return (struct cached_key){0};
	return (struct cached_key){lk->lk_site, raw,
	    lk->lk_weights | (ex->ex_tls != NULL ? RESPONSE_CACHE_TLS : 0),
	    lk->lk_set->set_ncodings > 0 || lk->lk_set->set_by_scheme};
}

struct cached_response *
ready_find(struct exchange *ex, const struct pw_file *file)
{
	struct cached_key hk = ready_key(ex);

	if (hk.ck_target.s_ptr == NULL)
		return NULL;
	return response_cache_of_file(
	    ex->ex_service->svc_responses, hk, file, ex->ex_since);
}

/* Counts `more` requests, and caches the response if possible.  Returns the cached response or NULL. */
static struct cached_response *
ready_admit(struct exchange *ex, struct pw_file *file,
    struct representation *rp, unsigned more)
{
	const struct response *rs = &ex->ex_response;
	struct cached_key hk = ready_key(ex);
	uint64_t now = ex->ex_since;
	struct cached_response *rsp;

	if (hk.ck_target.s_ptr == NULL || rs->rs_status != 200 ||
	    rs->rs_nranges != 1 || rs->rs_head.b_failed ||
	    ex->ex_request.rq_want_digest.s_ptr != NULL)
		return NULL;
	rsp = response_cache_offer(ex->ex_service->svc_responses, hk, file,
	    (struct str){rs->rs_head.b_data, rs->rs_fields_len},
	    response_cache_count(&rp->rp_asked, now, more), now,
	    ex->ex_service->svc_time);
	if (rsp != NULL)
		response_cache_link(rsp, file, &rp->rp_ready);
	return rsp;
}

void
ready_offer(
    struct exchange *ex, struct pw_file *file, struct representation *rp)
{
	ready_admit(ex, file, rp, 1);
}

void
ready_offer_read(struct exchange *ex)
{
	const struct response *rs = &ex->ex_response;
	struct pw_file *file = rs->rs_file;
	struct representation *rp = file != NULL ? file->fil_user : NULL;
	struct cached_response *rsp;

	if (rp == NULL || file->fil_size > RESPONSE_CACHE_LARGEST ||
	    rs->rs_head.b_len == 0 || rp->rp_set != rs->rs_settings ||
	    rp->rp_coding != ex->ex_lookup.lk_coding ||
	    ready_find(ex, file) != NULL)
		return;
	rsp = ready_admit(ex, file, rp, 0);
	/* The head has the Date of an earlier second. */
	if (rsp != NULL)
		rsp->rsp_date = 0;
}
