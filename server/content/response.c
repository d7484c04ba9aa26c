/*
 * response: see response.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/content/exchange.h"
#include "server/content/ready.h"
#include "server/content/autoindex_cache.h"
#include "server/content/autoindex_stream.h"
#include "server/content/file_error.h"
#include "server/content/multipart.h"
#include "server/content/representation.h"
#include "server/content/response_priv.h"
#include "server/http/status.h"

#define ALLOW "Allow: GET, HEAD, OPTIONS\r\n"

static const struct status_text {
	const char *line; /* number and reason */
	int number;
	bool close; /* framing is lost, or the client is not to be trusted */
} statuses[] = {
    {"200 OK", 200, false},
    {"204 No Content", 204, false},
    {"206 Partial Content", 206, false},
    {"301 Moved Permanently", 301, false},
    {"304 Not Modified", 304, false},
    {"400 Bad Request", 400, true},
    {"403 Forbidden", 403, false},
    {"404 Not Found", 404, false},
    {"405 Method Not Allowed", 405, false},
    {"408 Request Timeout", 408, true},
    {"412 Precondition Failed", 412, false},
    {"413 Content Too Large", 413, true},
    {"414 URI Too Long", 414, true},
    {"416 Range Not Satisfiable", 416, false},
    {"431 Request Header Fields Too Large", 431, true},
    {"500 Internal Server Error", 500, false},
    {"501 Not Implemented", 501, true},
    {"503 Service Unavailable", 503, false},
    {"505 HTTP Version Not Supported", 505, true},
};

static const struct status_text *
find_status(int number)
{
	size_t i;

	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (statuses[i].number == number)
			return &statuses[i];
	return find_status(500);
}

/* ------------------------------------------------------------------ heads */

static void
add(struct exchange *ex, const char *text)
{
	buf_str(&ex->ex_response.rs_head, &ex->ex_service->svc_bufs, text);
}

static void
add_uint(struct exchange *ex, uint64_t number)
{
	buf_uint(&ex->ex_response.rs_head, &ex->ex_service->svc_bufs, number);
}

static void
head_begin(struct exchange *ex, int number)
{
	struct response *rs = &ex->ex_response;
	const struct status_text *status = find_status(number);

	*rs = (struct response){
	    .rs_status = number,
	    .rs_settings = &ex->ex_service->svc_conf->conf_sites[0].site_set,
	    .rs_close = status->close || !ex->ex_request.rq_keepalive ||
			ex->ex_ops->last(ex) ||
			ex->ex_service->svc_conf->conf_keepalive_timeout == 0,
	};
	service_time(ex->ex_service);
	if (number == 200)
		add(ex, RESPONSE_BEGIN);
	else {
		add(ex, "HTTP/1.1 ");
		add(ex, status->line);
		add(ex, "\r\nServer: pagewise\r\nDate: ");
	}
	add(ex, ex->ex_service->svc_date);
	add(ex, "\r\n");
}

static void
head_length(struct exchange *ex, uint64_t length)
{
	add(ex, "Content-Length: ");
	add_uint(ex, length);
	add(ex, "\r\n");
}

static void
head_end(struct exchange *ex)
{
	struct response *rs = &ex->ex_response;

	if (rs->rs_close)
		add(ex, "Connection: close\r\n");
	else if (ex->ex_request.rq_http10)
		add(ex, "Connection: keep-alive\r\n");
	add(ex, "\r\n");
	rs->rs_head_len = rs->rs_head.b_len;
}

/* "bytes 0-99/1000", or "bytes *" "/1000" for none. */
static void
head_content_range(struct exchange *ex, const struct range *r, off_t size)
{
	add(ex, "Content-Range: bytes ");
	if (r == NULL)
		add(ex, "*");
	else {
		add_uint(ex, (uint64_t)r->rng_off);
		add(ex, "-");
		add_uint(ex, (uint64_t)(r->rng_off + r->rng_len - 1));
	}
	add(ex, "/");
	add_uint(ex, (uint64_t)size);
	add(ex, "\r\n");
}

/* -------------------------------------------------------- errors and others */

size_t
error_page(const char *line, char text[static ERROR_PAGE])
{
	return (size_t)snprintf(text, ERROR_PAGE,
	    "<!DOCTYPE html>\n<html "
	    "lang=\"en\"><head><title>%s</title></head>\n"
	    "<body><h1>%s</h1></body></html>\n",
	    line, line);
}

static void
error_body(struct exchange *ex, const char *line)
{
	char body[ERROR_PAGE];
	size_t len = error_page(line, body);

	add(ex, "Content-Type: text/html; charset=utf-8\r\n");
	head_length(ex, len);
	head_end(ex);
	if (ex->ex_request.rq_method != METHOD_HEAD)
		add(ex, body);
}

void
respond_error(struct exchange *ex, int number)
{
	head_begin(ex, number);
	if (number == 405)
		add(ex, ALLOW);
	if (number == 503)
		add(ex, "Retry-After: 1\r\n");
	error_body(ex, find_status(number)->line);
	response_start(ex);
}

void
respond_redirect(struct exchange *ex, struct str path)
{
	struct buf_list *bufs = &ex->ex_service->svc_bufs;
	struct buf *head;
	size_t size = 3 * path.s_len + 1;

	head_begin(ex, 301);
	add(ex, "Location: ");
	head = &ex->ex_response.rs_head;
	if (buf_reserve(head, bufs, head->b_len + size))
		head->b_len +=
		    target_encode(path, head->b_data + head->b_len, size);
	else
		head->b_failed = true;
	add(ex, "/");
	if (ex->ex_target.tgt_query.s_ptr != NULL) {
		add(ex, "?");
		buf_add(head, bufs, ex->ex_target.tgt_query.s_ptr,
		    ex->ex_target.tgt_query.s_len);
	}
	add(ex, "\r\n");
	error_body(ex, find_status(301)->line);
	response_start(ex);
}

void
respond_options(struct exchange *ex)
{
	head_begin(ex, 204);
	add(ex, ALLOW);
	head_end(ex);
	response_start(ex);
}

/* It may change at any time, and has no validator. */
static void
head_listing(struct exchange *ex)
{
	head_begin(ex, 200);
	add(ex, "Content-Type: text/html; charset=utf-8\r\n"
		"Cache-Control: no-cache\r\n");
}

void
respond_listing(struct exchange *ex, struct text *text)
{
	head_listing(ex);
	head_length(ex, text->tx_len);
	head_end(ex);
	if (ex->ex_request.rq_method == METHOD_HEAD)
		text_unref(&text);
	else
		ex->ex_response.rs_body =
		    (struct str){text->tx_data, text->tx_len};
	ex->ex_response.rs_text = text;
	response_start(ex);
}

/* To HTTP/1.0 the end of the connection is the end of the page. */
void
respond_stream(struct exchange *ex, struct autoindex_stream *st)
{
	struct response *rs = &ex->ex_response;

	head_listing(ex);
	if (ex->ex_request.rq_http10)
		rs->rs_close = true;
	else
		add(ex, "Transfer-Encoding: chunked\r\n");
	head_end(ex);
	rs->rs_stream = st;
	response_start(ex);
}

/* ------------------------------------------------------------------- files */

static bool
multipart_begin(struct exchange *ex, const struct status *plan,
    const struct representation *rp)
{
	struct response *rs = &ex->ex_response;
	char text[MULTIPART_HEAD];

	rs->rs_ranges = malloc(plan->pl_nranges * sizeof(*rs->rs_ranges));
	if (rs->rs_ranges == NULL)
		return false;
	memcpy(rs->rs_ranges, plan->pl_ranges,
	    plan->pl_nranges * sizeof(*rs->rs_ranges));
	rs->rs_nranges = plan->pl_nranges;
	rs->rs_type = rp->rp_type;
	/* An odd step walks through all 2^64 before it repeats one. */
	ex->ex_service->svc_boundary += 0x9e3779b97f4a7c15U;
	rs->rs_boundary = ex->ex_service->svc_boundary;
	snprintf(text, sizeof(text),
	    "Content-Type: multipart/byteranges; boundary=%016llx\r\n",
	    (unsigned long long)rs->rs_boundary);
	add(ex, text);
	add(ex, rp->rp_lines + rp->rp_validators);
	head_length(ex, multipart_length(rs));
	head_end(ex);
	multipart_head(rs, 0, text);
	add(ex, text);
	return true;
}

static void
from_memory(struct exchange *ex)
{
	struct response *rs = &ex->ex_response;
	const struct cached_response *ha = rs->rs_ready;

	rs->rs_body.s_ptr = ha->ha_text + ha->ha_head + rs->rs_one.rng_off;
	rs->rs_body.s_len = (size_t)rs->rs_one.rng_len;
	rs->rs_nranges = 0;
	stat_add(&ex->ex_service->svc_stats.sta_hot, 1);
}

static void
whole_or_one(struct exchange *ex, const struct status *plan,
    const struct representation *rp)
{
	struct response *rs = &ex->ex_response;
	struct pw_file *file = rs->rs_file;

	rs->rs_one = (struct range){0, file->fil_size};
	rs->rs_ranges = &rs->rs_one;
	rs->rs_nranges = 1;
	buf_add(
	    &rs->rs_head, &ex->ex_service->svc_bufs, rp->rp_lines, rp->rp_len);
	if (plan->pl_status == 206) {
		rs->rs_one = plan->pl_ranges[0];
		head_content_range(ex, &rs->rs_one, file->fil_size);
	}
	head_length(ex, (uint64_t)rs->rs_one.rng_len);
	head_end(ex);
	if (ex->ex_request.rq_method == METHOD_HEAD)
		rs->rs_nranges = 0;
	else if (rs->rs_ready != NULL)
		from_memory(ex);
}

static bool
file_begin(struct exchange *ex, const struct status *plan,
    const struct representation *rp)
{
	switch (plan->pl_status) {
	case 200:
		whole_or_one(ex, plan, rp);
		return true;
	case 206:
		if (plan->pl_nranges > 1)
			return multipart_begin(ex, plan, rp);
		whole_or_one(ex, plan, rp);
		return true;
	case 304:
		add(ex, rp->rp_lines + rp->rp_validators);
		head_end(ex);
		return true;
	case 416:
		head_content_range(ex, NULL, ex->ex_response.rs_file->fil_size);
		break;
	}
	error_body(ex, find_status(plan->pl_status)->line);
	return true;
}

void
respond_file(struct exchange *ex, struct pw_file *file, const char *name,
    const struct settings *set)
{
	struct service *svc = ex->ex_service;
	struct status plan = {.pl_ranges = svc->svc_ranges,
	    .pl_max = svc->svc_conf->conf_max_ranges};
	struct cached_response *ready = ready_find(ex, file);
	struct representation *rp = representation_of(
	    file, mime_type(svc->svc_conf->conf_mime, name), ex->ex_time);

	if (rp == NULL) {
		pw_file_unref(&file);
		respond_error(ex, 503);
		return;
	}
	status_decide(&plan, &ex->ex_request, file->fil_size, rp->rp_etag,
	    file->fil_mtime.tv_sec, ex->ex_time);
	head_begin(ex, plan.pl_status);
	ex->ex_response.rs_file = file;
	ex->ex_response.rs_settings = set;
	if (ready != NULL)
		response_cache_ref(ex->ex_response.rs_ready = ready);
	if (!file_begin(ex, &plan, rp)) {
		response_finish(ex);
		respond_error(ex, 503);
		return;
	}
	if (ready == NULL)
		ready_offer(ex, file, rp);
	response_start(ex);
}

/* The client's going away is its own business. */
static bool
client_left(int error)
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

	if (client_left(error))
		return false;
	if (error == -ESTALE && rs->rs_file != NULL)
		rs->rs_file->fil_stale = true;
	if (error != -EAGAIN && error != -ESTALE)
		file_error_tell(ex, error);
	if (response_sent(rs) > 0 || rs->rs_status >= 500)
		return false;
	status = error == -EAGAIN || error == -ENOMEM || error == -ESTALE ? 503
									  : 500;
	response_finish(ex);
	respond_error(ex, status);
	return true;
}
