/*
 * response: see response.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/content/exchange.h"
#include "server/content/popular.h"
#include "server/content/ready.h"
#include "server/content/autoindex_cache.h"
#include "server/content/autoindex_stream.h"
#include "server/content/file_error.h"
#include "server/content/multipart.h"
#include "server/content/representation.h"
#include "server/content/response_priv.h"
#include "server/http/date.h"
#include "server/http/digest.h"
#include "server/http/head_write.h"
#include "server/http/status.h"
#include "server/tls/session.h"

#define ALLOW	    "Allow: GET, HEAD, OPTIONS\r\n"
#define FREE_RANGES 16 /* maximum ranges that need no ex_ops->reserve */

/* ------------------------------------------------------------------ heads */

static struct head_writer
response_head_of(struct exchange *ex)
{
	return (struct head_writer){
	    &ex->ex_response.rs_head, &ex->ex_service->svc_bufs};
}

static void
response_add(struct exchange *ex, const char *text)
{
	head_write_text(response_head_of(ex), text);
}

static const struct settings *
response_settings_of(const struct exchange *ex)
{
	const struct settings *set = ex->ex_lookup.lk_set;

	return set != NULL && !ex->ex_no_site
		   ? set
		   : &ex->ex_service->svc_conf->conf_no_site;
}

/*
 * Returns the client's Origin if scripts of this origin may read the response, else an empty text.
 */
static struct str
response_allowed_origin(const struct exchange *ex, const struct settings *set)
{
	struct str origin = ex->ex_request.rq_origin;

	for (char **s = set->set_cors; origin.s_len > 0 && *s != NULL; s++)
		if (str_eq(origin, (struct str){*s, strlen(*s)}))
			return origin;
	return STR("");
}

void
response_rules(const struct exchange *ex, struct head_writer hw,
    const struct settings *set, struct str lines)
{
	struct str origin = STR("");

	head_write_lines(hw, lines);
	if (ex->ex_tls != NULL)
		head_write_lines(hw, set->set_hsts);
	if (set->set_origins)
		origin = response_allowed_origin(ex, set);
	if (origin.s_len == 0)
		return;
	head_write_text(hw, "Access-Control-Allow-Origin: ");
	head_write_lines(hw, origin);
	head_write_text(hw, "\r\n");
}

/* Starts the head.  `lines` has the configured fields. */
static void
response_head_begin_with(struct exchange *ex, int number, struct str lines)
{
	struct response *rs = &ex->ex_response;
	struct service *svc = ex->ex_service;
	const struct settings *set = response_settings_of(ex);

	*rs = (struct response){
	    .rs_status = number,
	    .rs_settings = set,
	    .rs_close = head_write_closes(number) ||
			!ex->ex_request.rq_keepalive || ex->ex_ops->last(ex) ||
			svc->svc_conf->conf_keepalive_timeout == 0,
	};
	service_time(svc);
	head_write_begin(
	    response_head_of(ex), number, svc->svc_date, set->set_server);
	response_rules(ex, response_head_of(ex), set, lines);
}

static void
response_head_begin(struct exchange *ex, int number)
{
	const struct settings *set = response_settings_of(ex);

	response_head_begin_with(
	    ex, number, number < 400 ? set->set_lines : set->set_always);
}

static void
response_head_length(struct exchange *ex, uint64_t length)
{
	head_write_length(response_head_of(ex), length);
}

static void
response_head_end(struct exchange *ex)
{
	struct response *rs = &ex->ex_response;

	rs->rs_fields_len = rs->rs_head.b_len;
	head_write_end(response_head_of(ex),
	    rs->rs_close && !ex->ex_request.rq_framed,
	    ex->ex_request.rq_http10);
	rs->rs_head_len = rs->rs_head.b_len;
}

/* ----------------------------------------------- responses without a file */

/* Adds a configured error page; its memory stays until the process exits. */
static void
response_own_body(struct exchange *ex, const struct error_page *ep)
{
	head_write_lines(response_head_of(ex), ep->ep_type);
	response_head_length(ex, ep->ep_body.s_len);
	response_head_end(ex);
	if (ex->ex_request.rq_method != METHOD_HEAD)
		ex->ex_response.rs_body = ep->ep_body;
}

static void
response_error_body(struct exchange *ex, int number)
{
	struct response *rs = &ex->ex_response;
	const struct error_page *ep =
	    conf_error_page(response_settings_of(ex), number);
	size_t page;

	if (ep != NULL) {
		response_own_body(ex, ep);
		return;
	}
	page = head_write_error(response_head_of(ex), number, rs->rs_close,
	    ex->ex_request.rq_http10, ex->ex_request.rq_method != METHOD_HEAD);

	rs->rs_head_len = rs->rs_head.b_len - page;
}

void
response_error(struct exchange *ex, int number)
{
	response_head_begin(ex, number);
	if (number == 405)
		response_add(ex, ALLOW);
	if (number == 401)
		head_write_lines(response_head_of(ex),
		    response_settings_of(ex)->set_challenge);
	if (number == 503)
		response_add(ex, "Retry-After: 1\r\n");
	response_error_body(ex, number);
	response_start(ex);
}

void
response_too_many(struct exchange *ex, unsigned seconds)
{
	response_head_begin(ex, 429);
	response_add(ex, "Retry-After: ");
	buf_uint(&ex->ex_response.rs_head, &ex->ex_service->svc_bufs, seconds);
	response_add(ex, "\r\n");
	response_error_body(ex, 429);
	response_start(ex);
}

void
response_redirect(struct exchange *ex, int number, struct str location)
{
	response_head_begin(ex, number);
	response_add(ex, "Location: ");
	head_write_lines(response_head_of(ex), location);
	response_add(ex, "\r\n");
	response_error_body(ex, number);
	response_start(ex);
}

void
response_options(struct exchange *ex)
{
	const struct settings *set = response_settings_of(ex);

	response_head_begin(ex, 204);
	response_add(ex, ALLOW);
	if (set->set_cors != NULL && ex->ex_request.rq_preflight.s_len > 0)
		head_write_lines(response_head_of(ex), set->set_preflight);
	response_head_end(ex);
	response_start(ex);
}

void
response_text(struct exchange *ex, int number, struct str text)
{
	/* Fields for files, such as Cache-Control, do not apply to this text. */
	response_head_begin_with(
	    ex, number, response_settings_of(ex)->set_always);
	response_add(ex, "Content-Type: text/plain; charset=utf-8\r\n"
			 "Cache-Control: no-store\r\n");
	response_head_length(ex, text.s_len);
	response_head_end(ex);
	if (ex->ex_request.rq_method != METHOD_HEAD)
		head_write_lines(response_head_of(ex), text);
	response_start(ex);
}

static struct str
response_listing_etag(
    const struct exchange *ex, char text[static VALIDATOR_ETAG])
{
	const struct listing_validator *lv =
	    &ex->ex_lookup.lk_listing.li_validator;

	if (!lv->lv_whole || response_settings_of(ex)->set_etag == ETAG_OFF)
		return STR("");
	return (struct str){text, validator_etag(lv, text)};
}

static bool
response_listing_dated(const struct exchange *ex)
{
	return ex->ex_lookup.lk_listing.li_validator.lv_whole &&
	       (response_settings_of(ex)->set_changed &
		   HEADER_NO_LAST_MODIFIED) == 0;
}

static void
response_add_listing_validators(struct exchange *ex)
{
	char text[VALIDATOR_ETAG], date[DATE_LEN + 1];
	struct str etag = response_listing_etag(ex, text);
	time_t t;

	if (etag.s_len > 0) {
		response_add(ex, "ETag: ");
		head_write_lines(response_head_of(ex), etag);
		response_add(ex, "\r\n");
	}
	if (response_listing_dated(ex)) {
		t = validator_date(&ex->ex_lookup.lk_listing.li_validator);
		date_format(t < ex->ex_time ? t : ex->ex_time, date);
		response_add(ex, "Last-Modified: ");
		response_add(ex, date);
		response_add(ex, "\r\n");
	}
}

/*
 * Starts the head of a listing.  Clients must revalidate a listing each time, because it may change
 * at any time.
 */
static void
response_head_listing(struct exchange *ex, int number)
{
	const struct place *pl = &ex->ex_lookup.lk_listing.li_place;

	response_head_begin(ex, number);
	if (number == 200)
		response_add(
		    ex, pl->pl_view.vw_json
			    ? "Content-Type: application/json\r\n"
			    : "Content-Type: text/html; charset=utf-8\r\n");
	response_add(ex, "Vary: Accept\r\n");
	if ((response_settings_of(ex)->set_changed & HEADER_CACHE_CONTROL) == 0)
		response_add(ex, "Cache-Control: no-cache\r\n");
	response_add_listing_validators(ex);
}

bool
response_condition(struct exchange *ex)
{
	const struct listing_validator *lv =
	    &ex->ex_lookup.lk_listing.li_validator;
	char text[VALIDATOR_ETAG];
	const struct validators va = {
	    .va_etag = response_listing_etag(ex, text),
	    .va_modified = lv->lv_newest,
	    .va_dated = response_listing_dated(ex)};
	int number = conditional_eval(&ex->ex_request.rq_pre, &va, ex->ex_time);

	if (number == 304) {
		response_head_listing(ex, 304);
		response_head_end(ex);
		response_start(ex);
	} else if (number != 0)
		response_error(ex, number);
	return number != 0;
}

void
response_listing(struct exchange *ex, struct text *text)
{
	response_head_listing(ex, 200);
	response_head_length(ex, text->tx_len);
	response_head_end(ex);
	if (ex->ex_request.rq_method == METHOD_HEAD)
		autoindex_cache_unref(&text);
	else
		ex->ex_response.rs_body =
		    (struct str){text->tx_data, text->tx_len};
	ex->ex_response.rs_text = text;
	response_start(ex);
}

/* Marks the connection to close after a listing over HTTP/1.0, which has no chunked coding. */
void
response_stream(struct exchange *ex, struct autoindex_stream *st)
{
	struct response *rs = &ex->ex_response;

	response_head_listing(ex, 200);
	if (ex->ex_request.rq_http10)
		rs->rs_close = true;
	else if (!ex->ex_request.rq_framed)
		response_add(ex, "Transfer-Encoding: chunked\r\n");
	response_head_end(ex);
	rs->rs_stream = st;
	response_start(ex);
}

/* ------------------------------------------------------------------- files */

/* Returns true if the representation has a digest, but the client does not want one. */
static bool
response_leaves_digest_out(
    const struct exchange *ex, const struct representation *rp)
{
	return rp->rp_digest < rp->rp_validators &&
	       !digest_is_wanted(ex->ex_request.rq_want_digest);
}

static void
response_add_lines(
    struct exchange *ex, const struct representation *rp, size_t from)
{
	struct buf *head = &ex->ex_response.rs_head;
	struct buf_list *bufs = &ex->ex_service->svc_bufs;

	if (response_leaves_digest_out(ex, rp)) {
		buf_add(head, bufs, rp->rp_lines + from, rp->rp_digest - from);
		from = rp->rp_validators;
	}
	buf_add(head, bufs, rp->rp_lines + from, rp->rp_len - from);
}

static bool
response_multipart_begin(struct exchange *ex, const struct plan *plan,
    const struct representation *rp)
{
	struct response *rs = &ex->ex_response;
	size_t size = plan->pl_nranges * sizeof(*rs->rs_ranges);
	char text[MULTIPART_HEAD];

	/*
	 * Copies the media type, because the representation may be replaced while this response is
	 * in flight.
	 */
	rs->rs_ranges = malloc(size + sizeof(rp->rp_type));
	if (rs->rs_ranges == NULL)
		return false;
	memcpy(rs->rs_ranges, plan->pl_ranges, size);
	rs->rs_nranges = plan->pl_nranges;
	rs->rs_type = memcpy(
	    rs->rs_ranges + rs->rs_nranges, rp->rp_type, sizeof(rp->rp_type));
	/* The step is odd, so the counter has 2^64 different values before a value repeats. */
	ex->ex_service->svc_boundary += 0x9e3779b97f4a7c15U;
	rs->rs_boundary = ex->ex_service->svc_boundary;
	snprintf(text, sizeof(text),
	    "Content-Type: multipart/byteranges; boundary=%016llx\r\n",
	    (unsigned long long)rs->rs_boundary);
	response_add(ex, text);
	response_add_lines(ex, rp, rp->rp_coded);
	response_head_length(ex, multipart_length(rs));
	response_head_end(ex);
	if (ex->ex_request.rq_method == METHOD_HEAD)
		rs->rs_nranges = 0;
	else {
		multipart_head(rs, 0, text);
		response_add(ex, text);
	}
	return true;
}

static void
response_from_memory(struct exchange *ex)
{
	struct response *rs = &ex->ex_response;
	const struct cached_response *rsp = rs->rs_ready;

	rs->rs_body.s_ptr = rsp->rsp_text + rsp->rsp_head + rs->rs_one.rng_off;
	rs->rs_body.s_len = (size_t)rs->rs_one.rng_len;
	rs->rs_nranges = 0;
	counter_add(&ex->ex_service->svc_stats.sta_cached, 1);
}

static void
response_whole_or_one(struct exchange *ex, const struct plan *plan,
    const struct representation *rp)
{
	struct response *rs = &ex->ex_response;
	struct pw_file *file = rs->rs_file;

	rs->rs_one = (struct range){0, file->fil_size};
	rs->rs_ranges = &rs->rs_one;
	rs->rs_nranges = 1;
	response_add_lines(ex, rp, 0);
	if (plan->pl_status == 206) {
		rs->rs_one = plan->pl_ranges[0];
		head_write_content_range(
		    response_head_of(ex), &rs->rs_one, file->fil_size);
	}
	response_head_length(ex, (uint64_t)rs->rs_one.rng_len);
	response_head_end(ex);
	if (ex->ex_request.rq_method == METHOD_HEAD)
		rs->rs_nranges = 0;
	else if (rs->rs_ready != NULL)
		response_from_memory(ex);
}

static bool
response_file_begin(struct exchange *ex, const struct plan *plan,
    const struct representation *rp)
{
	switch (plan->pl_status) {
	case 200:
		response_whole_or_one(ex, plan, rp);
		return true;
	case 206:
		if (plan->pl_nranges > 1)
			return response_multipart_begin(ex, plan, rp);
		response_whole_or_one(ex, plan, rp);
		return true;
	case 304:
		response_add(ex, rp->rp_lines + rp->rp_validators);
		response_head_end(ex);
		return true;
	case 416:
		head_write_content_range(response_head_of(ex), NULL,
		    ex->ex_response.rs_file->fil_size);
		break;
	}
	response_error_body(ex, plan->pl_status);
	return true;
}

/* Counts the path in the form that a balancer hashes: not decoded, without its query. */
static void
response_count_popular(const struct exchange *ex)
{
	struct popular *po = ex->ex_service->svc_popular;
	struct str path = ex->ex_request.rq_target;
	const char *query = memchr(path.s_ptr, '?', path.s_len);

	if (ex->ex_request.rq_method != METHOD_GET || path.s_ptr[0] != '/')
		return;
	if (query != NULL)
		path.s_len = (size_t)(query - path.s_ptr);
	popular_asked(po, ex->ex_lookup.lk_site, path, popular_hash(po, path),
	    ex->ex_since);
}

/* Returns false if the parts with their heads might be longer than a file can be. */
static bool
response_multipart_fits(const struct plan *plan)
{
	uint64_t left = INT64_MAX,
		 heads = (plan->pl_nranges + 1) * MULTIPART_HEAD;

	for (size_t i = 0; i < plan->pl_nranges; i++) {
		if ((uint64_t)plan->pl_ranges[i].rng_len > left)
			return false;
		left -= (uint64_t)plan->pl_ranges[i].rng_len;
	}
	return heads <= left;
}

/*
 * Limits the ranges: sends the whole file (RFC 9110, 14.2) if the body might be longer than a file
 * can be, or if the responses of the connection have too many ranges together.
 */
static void
response_bound_ranges(struct exchange *ex, struct plan *plan)
{
	if (plan->pl_status != 206 || plan->pl_nranges == 1)
		return;
	if (!response_multipart_fits(plan) ||
	    (plan->pl_nranges > FREE_RANGES &&
		!exchange_reserve(
		    ex, plan->pl_nranges * sizeof(*plan->pl_ranges))))
		plan->pl_status = 200;
}

void
response_file(struct exchange *ex, struct pw_file *file, const char *name,
    const struct settings *set)
{
	struct service *svc = ex->ex_service;
	time_t now = service_time(svc);
	struct plan plan = {.pl_ranges = svc->svc_ranges,
	    .pl_max = svc->svc_conf->conf_max_ranges};
	struct cached_response *ready = ready_find(ex, file);
	struct representation *rp = representation_of(
	    file, svc->svc_conf, set, name, ex->ex_lookup.lk_coding, now);

	if (rp == NULL) {
		pw_file_unref(&file);
		response_error(ex, 503);
		return;
	}
	status_decide(
	    &plan, &ex->ex_request, file->fil_size, &rp->rp_announced, now);
	response_bound_ranges(ex, &plan);
	response_head_begin(ex, plan.pl_status);
	ex->ex_response.rs_file = file;
	ex->ex_response.rs_young = rp->rp_young;
	ex->ex_response.rs_settings = set;
	if (ready != NULL) {
		response_cache_link(ready, file, &rp->rp_ready);
		response_cache_ref(ex->ex_response.rs_ready = ready);
	}
	if (!response_file_begin(ex, &plan, rp)) {
		response_finish(ex);
		response_error(ex, 503);
		return;
	}
	if (ready == NULL)
		ready_offer(ex, file, rp);
	if (svc->svc_popular != NULL && plan.pl_status < 400)
		response_count_popular(ex);
	response_start(ex);
}

/* Returns true if the error means that the client has left.  Such an error is not logged. */
static bool
response_client_left(int error)
{
	switch (error) {
	case -EPIPE:
	case -ECONNRESET:
	case -ETIMEDOUT:
	case -ENOTCONN:
	case -EHOSTUNREACH:
	case -EHOSTDOWN:
	case -ENETUNREACH:
	case -ENETDOWN:
	case -ECANCELED:
		return true;
	default:
		return false;
	}
}

bool
response_replaced(struct exchange *ex)
{
	struct response *rs = &ex->ex_response;
	int error = rs->rs_send.snd_error, status;
	bool cut;

	if (response_client_left(error))
		return false;
	if (error == -ESTALE && rs->rs_file != NULL)
		rs->rs_file->fil_stale = true;
	if (error != -EAGAIN && error != -ESTALE)
		file_error_tell(ex, error);
	/* The session would drop as many bytes of another response as it holds.  HTTP/2 replaces no frame. */
	cut = response_sent(rs) > 0 || rs->rs_status >= 500 ||
	      (!ex->ex_head_apart && tls_holds(ex->ex_tls));
	if (error == -ESTALE)
		file_error_changed(ex, cut);
	if (cut)
		return false;
	status = error == -EAGAIN || error == -ENOMEM || error == -ESTALE ? 503
									  : 500;
	response_finish(ex);
	response_error(ex, status);
	return true;
}
