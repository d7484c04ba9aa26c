/*
 * exchange: see exchange.h.
 */

#include <errno.h>

#include "lib/util/clock.h"
#include "server/content/account.h"
#include "server/content/exchange.h"
#include "server/content/pace.h"
#include "server/content/respond.h"
#include "server/content/scheme.h"
#include "server/http/head_write.h"
#include "server/log/keep.h"
#include "server/tls/session.h"

/* status to log if the client got no response, as in nginx */
#define STATUS_CUT    499
/* maximum number of disk_timeout periods that a slow disk gets */
#define DISK_TIMEOUTS 10
#define USER_KEPT     256 /* maximum bytes of a user name that is kept */
/* maximum bytes of an error page in exchange_503; an empty socket has space for such a page */
#define MOST_503      8192

struct exchange *
exchange_create(
    struct service *svc, const struct exchange_ops *ops, void *owner)
{
	struct exchange *ex = service_take(svc);

	if (ex == NULL)
		return NULL;
	*ex = (struct exchange){
	    .ex_ops = ops,
	    .ex_owner = owner,
	    .ex_service = svc,
	    .ex_open = true,
	    .ex_since = clock_now(),
	    .ex_time = service_time(svc),
	};
	return ex;
}

bool
exchange_named(const struct conf *conf, const struct request *rq,
    union sockaddr_any *client)
{
	enum forwarded kind = conf->conf_client_address;

	return forwarded_client(kind,
	    kind == FORWARDED_X ? rq->rq_x_forwarded_for : rq->rq_forwarded,
	    conf->conf_trusted.cl_list, conf->conf_trusted.cl_count, client);
}

void
exchange_name_client(struct exchange *ex)
{
	union sockaddr_any client;

	if (exchange_named(ex->ex_service->svc_conf, &ex->ex_request, &client))
		exchange_asked_for(ex, &client);
}

static int
exchange_find_target(struct exchange *ex)
{
	struct request *rq = &ex->ex_request;
	size_t size = rq->rq_target.s_len + 2;
	int status;
	bool reserved =
	    ex->ex_head_apart
		? buf_reserve_exact(&ex->ex_path, size)
		: buf_reserve(&ex->ex_path, &ex->ex_service->svc_bufs, size);

	if (!reserved)
		return 503;
	status = target_parse(
	    rq->rq_target, ex->ex_path.b_data, size, &ex->ex_target);
	if (status == 0 && ex->ex_target.tgt_asterisk &&
	    rq->rq_method != METHOD_OPTIONS)
		status = 400;
	/* An https target requires TLS or a trusted proxy (RFC 9110, 7.4). */
	if (status == 0 && ex->ex_target.tgt_https && ex->ex_tls == NULL &&
	    !ex->ex_proxied)
		status = 400;
	return status;
}

/* Returns the name that the client sent in the TLS handshake (SNI), or an empty text. */
static struct str
exchange_server_name(const struct exchange *ex)
{
	return ex->ex_tls != NULL ? ex->ex_tls->tl_log.lt_name : STR("");
}

/*
 * Returns the requested host, or an empty text.  The host of a target in absolute form takes
 * precedence over Host, and Host over SNI.
 */
static struct str
exchange_host_of(const struct exchange *ex)
{
	if (ex->ex_target.tgt_host.s_len > 0)
		return ex->ex_target.tgt_host;
	return ex->ex_request.rq_texts.qt_host.s_len > 0
		   ? ex->ex_request.rq_texts.qt_host
		   : exchange_server_name(ex);
}

/*
 * Finds the site of a refused request.  Uses the requested host if its requests may use this
 * connection; otherwise uses the name from SNI.
 */
static void
exchange_locate_refused(struct exchange *ex)
{
	static_locate(ex, exchange_host_of(ex));
	if (ex->ex_tls != NULL && scheme_is_misdirected(ex))
		static_locate(ex, exchange_server_name(ex));
	ex->ex_no_site = ex->ex_lookup.lk_host.s_len == 0;
}

/*
 * Returns true if the address and rate rules of the site admit the client.  Otherwise makes the
 * response that refuses the request.
 */
static bool
exchange_is_admitted(struct exchange *ex)
{
	return !ex->ex_lookup.lk_set->set_guarded || access_admit(ex);
}

void
exchange_refuse(struct exchange *ex, int status)
{
	if (ex->ex_request.rq_target.s_len > 0 && ex->ex_path.b_data == NULL)
		(void)exchange_find_target(ex);
	exchange_locate_refused(ex);
	if (exchange_is_admitted(ex))
		response_error(ex, status);
}

void
exchange_refuse_text(struct exchange *ex, int status, struct str text)
{
	exchange_locate_refused(ex);
	if (exchange_is_admitted(ex))
		response_text(ex, status, text);
}

bool
exchange_continue(struct exchange *ex)
{
	return ex->ex_pending_on->resume(ex);
}

bool
exchange_respond(struct exchange *ex, int refusal)
{
	struct request *rq = &ex->ex_request;
	int status = exchange_find_target(ex);

	if (rq->rq_trace.s_len > 0)
		trace_begin(ex);
	/* 405 takes precedence over all other errors */
	ex->ex_refusal = rq->rq_method == METHOD_OTHER ? 405 : refusal;
	if (status != 0) {
		if (ex->ex_refusal != 405)
			rq->rq_keepalive = false;
		exchange_refuse(ex, ex->ex_refusal == 405 ? 405 : status);
		return true;
	}
	static_locate(ex, exchange_host_of(ex));
	if (ex->ex_trace != NULL)
		trace_located(ex);
	if (!exchange_is_admitted(ex))
		return true;
	if (scheme_matters(ex) && scheme_respond(ex))
		return true;
	if (ex->ex_lookup.lk_set->set_guarded)
		return access_begin(ex);
	return respond_admitted(ex);
}

static uint64_t
exchange_bytes_sent(const struct exchange *ex)
{
	size_t len = ex->ex_503;

	return len > 0 ? len : response_sent(&ex->ex_response);
}

void
exchange_sent(struct exchange *ex)
{
	uint64_t sent = exchange_bytes_sent(ex);

	counter_add(&ex->ex_service->svc_stats.sta_sent, sent - ex->ex_counted);
	ex->ex_counted = sent;
}

static int
exchange_status(const struct exchange *ex)
{
	const struct response *rs = &ex->ex_response;

	if (ex->ex_503 > 0)
		return 503;
	if (rs->rs_status == 0 || (ex->ex_cancelled && response_sent(rs) == 0))
		return STATUS_CUT;
	return rs->rs_status;
}

static size_t
exchange_head_len(const struct exchange *ex)
{
	return ex->ex_503 == 0 ? ex->ex_response.rs_head_len
			       : ex->ex_503 - ex->ex_503_body;
}

static bool
exchange_is_logged(const struct exchange *ex)
{
	const struct service *svc = ex->ex_service;

	return !ex->ex_unlogged && log_access_on(svc->svc_log) &&
	       conf_logs(
		   svc->svc_conf, ex->ex_target.tgt_path, exchange_status(ex));
}

static void
exchange_end(struct exchange *ex)
{
	struct service *svc = ex->ex_service;

	if (!ex->ex_open)
		return;
	ex->ex_open = false;
	if (ex->ex_pending)
		ex->ex_wait += clock_now() - ex->ex_waiting;
	exchange_sent(ex);
	account_response(
	    svc, &(struct account){
		     .ac_peer = exchange_client(ex),
		     .ac_tls = ex->ex_tls == NULL ? NULL : &ex->ex_tls->tl_log,
		     .ac_texts = &ex->ex_request.rq_texts,
		     .ac_user = {ex->ex_user.b_data, ex->ex_user.b_len},
		     .ac_time = ex->ex_time,
		     .ac_since = ex->ex_since,
		     .ac_wait = ex->ex_wait,
		     .ac_status = exchange_status(ex),
		     .ac_head = exchange_head_len(ex),
		     .ac_sent = exchange_bytes_sent(ex),
		     .ac_logged = exchange_is_logged(ex),
		 });
	if (ex->ex_trace != NULL)
		trace_end(ex, exchange_status(ex), exchange_bytes_sent(ex));
}

/*
 * Erases the password in the connection's input buffer, because another client may get this buffer
 * next.
 */
static void
exchange_forget_password(struct exchange *ex)
{
	struct str *s = &ex->ex_request.rq_authorization;

	if (s->s_len > 0)
		explicit_bzero((void *)(uintptr_t)s->s_ptr, s->s_len);
	*s = STR("");
}

void
exchange_cancel(struct exchange *ex)
{
	const struct pending *pn = ex->ex_pending_on;

	ex->ex_cancelled = true;
	exchange_end(ex);
	exchange_forget_password(ex);
	if (ex->ex_pending && pn->cancel != NULL)
		pn->cancel(ex);
}

/*
 * Returns true if the access log is off, or if the path alone excludes the request.  Passes the
 * status 0, which no response has.
 */
static bool
exchange_is_excluded(const struct exchange *ex)
{
	const struct service *svc = ex->ex_service;

	return !log_access_on(svc->svc_log) ||
	       !conf_logs(svc->svc_conf, ex->ex_target.tgt_path, 0);
}

/*
 * Frees the memory that the log and messages do not need.  Requires that the owner has sent the
 * head, or that the response consists of the head.
 */
static void
exchange_shrink(struct exchange *ex)
{
	struct response *rs = &ex->ex_response;
	struct buf_list *bufs = &ex->ex_service->svc_bufs;

	buf_release(&ex->ex_request.rq_joined, bufs);
	if (ex->ex_user.b_len > USER_KEPT)
		ex->ex_user.b_len = USER_KEPT;
	buf_fit(&ex->ex_user, bufs);
	/* messages about the file contain its name */
	if (rs->rs_file == NULL)
		buf_release(&ex->ex_lookup.lk_path, bufs);
	else
		buf_fit(&ex->ex_lookup.lk_path, bufs);
	if (ex->ex_head_apart && rs->rs_head.b_len == rs->rs_head_len)
		buf_release(&rs->rs_head, bufs);
}

static struct request
exchange_kept_request(const struct request *rq, struct request_texts texts)
{
	return (struct request){
	    .rq_method = rq->rq_method,
	    .rq_keepalive = rq->rq_keepalive,
	    .rq_http10 = rq->rq_http10,
	    .rq_framed = rq->rq_framed,
	    .rq_body = rq->rq_body,
	    .rq_texts = texts,
	    .rq_joined = rq->rq_joined,
	};
}

long
exchange_settle(struct exchange *ex, size_t most)
{
	struct request *rq = &ex->ex_request;
	bool unlogged = exchange_is_excluded(ex);
	struct request_texts texts = rq->rq_texts;
	struct buf kept = {0};

	if (unlogged)
		texts = (struct request_texts){.qt_line = texts.qt_line};
	if (!log_keep(&texts, most, &kept))
		return -ENOMEM;
	exchange_forget_password(ex);
	*rq = exchange_kept_request(rq, texts);
	ex->ex_target = (struct target){0};
	ex->ex_lookup.lk_host = (struct str){0};
	ex->ex_lookup.lk_listing.li_place.pl_path = NULL;
	ex->ex_lookup.lk_listing.li_place.pl_title = NULL;
	ex->ex_unlogged = unlogged;
	ex->ex_settled = true;
	buf_release(&ex->ex_path, &ex->ex_service->svc_bufs);
	ex->ex_path = kept;
	exchange_shrink(ex);
	return (long)kept.b_cap;
}

void
exchange_free(struct exchange **exp)
{
	struct exchange *ex = *exp;
	struct service *svc;

	if (ex == NULL)
		return;
	*exp = NULL;
	svc = ex->ex_service;
	exchange_end(ex);
	if (ex->ex_paced)
		pace_end(ex);
	static_finish(ex);
	response_finish(ex);
	exchange_forget_password(ex);
	buf_release(&ex->ex_path, &svc->svc_bufs);
	buf_release(&ex->ex_user, &svc->svc_bufs);
	buf_release(&ex->ex_request.rq_joined, &svc->svc_bufs);
	service_give(svc, ex);
}

bool
exchange_has_patience(struct exchange *ex)
{
	const struct pending *pn = ex->ex_pending_on;

	/* Each call begins a new period in which the disk can make progress. */
	bool progress = pn->slow != NULL && pn->slow(ex);

	ex->ex_looks++;
	return ex->ex_looks < DISK_LOOKS ||
	       (progress && ex->ex_looks < DISK_LOOKS * DISK_TIMEOUTS);
}

void
exchange_disk_late(struct exchange *ex)
{
	struct service *svc = ex->ex_service;
	struct str line = ex->ex_request.rq_texts.qt_line;

	counter_add(&svc->svc_stats.sta_timeout[TIMER_DISK], 1);
	if (message_rate_tell(svc->svc_told, TOLD_DISK, clock_now()))
		log_error(svc->svc_log,
		    "request \"%.*s\" aborted: %s did not respond within %u s "
		    "(disk_timeout); %s",
		    (int)line.s_len, line.s_ptr, ex->ex_pending_on->name,
		    svc->svc_conf->conf_disk_timeout, ex->ex_pending_on->cure);
}

/*
 * Writes the 503 to `text`.  Returns the number of bytes of its body.  `own` is a configured error
 * page, or NULL.
 */
static size_t
exchange_make_503(
    struct exchange *ex, struct buf *text, const struct error_page *own)
{
	struct service *svc = ex->ex_service;
	const struct settings *set = ex->ex_response.rs_settings != NULL
					 ? ex->ex_response.rs_settings
					 : ex->ex_lookup.lk_set;
	struct head_writer hw = {text, &svc->svc_bufs};
	bool wanted = ex->ex_request.rq_method != METHOD_HEAD;

	head_write_begin(hw, 503, svc->svc_date, set->set_server);
	response_rules(ex, hw, set, set->set_always);
	head_write_text(hw, "Retry-After: ");
	buf_uint(text, &svc->svc_bufs, svc->svc_conf->conf_disk_timeout);
	head_write_text(hw, "\r\n");
	if (own == NULL)
		return head_write_error(hw, 503, true, false, wanted);
	return head_write_page(
	    hw, own->ep_type, own->ep_body, true, false, wanted);
}

/* Sends the 503.  Discards the bytes that the socket does not accept at once. */
static void
exchange_send_503(struct exchange *ex, const struct error_page *own)
{
	struct buf text = {0};
	size_t body = exchange_make_503(ex, &text, own);

	/* send_now fails if bytes of an earlier response still fill the socket. */
	if (!text.b_failed &&
	    ex->ex_ops->send_now(ex, text.b_data, text.b_len)) {
		ex->ex_503 = text.b_len;
		ex->ex_503_body = body;
	}
	buf_release(&text, &ex->ex_service->svc_bufs);
}

void
exchange_503(struct exchange *ex)
{
	const struct error_page *own =
	    conf_error_page(ex->ex_lookup.lk_set, 503);

	service_time(ex->ex_service);
	if (own != NULL && own->ep_body.s_len > MOST_503)
		own = NULL;
	exchange_send_503(ex, own);
}
