/*
 * response: see response.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/conn/conn.h"
#include "server/conn/fast_path.h"
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
add(struct conn *c, const char *text)
{
	buf_str(&c->cn_ex->ex_response.rs_head, &c->cn_worker->wk_bufs, text);
}

static void
add_uint(struct conn *c, uint64_t number)
{
	buf_uint(
	    &c->cn_ex->ex_response.rs_head, &c->cn_worker->wk_bufs, number);
}

static void
head_begin(struct conn *c, int number)
{
	struct response *rs = &c->cn_ex->ex_response;
	const struct status_text *status = find_status(number);

	*rs = (struct response){
	    .rs_status = number,
	    .rs_settings = &c->cn_worker->wk_conf->conf_sites[0].site_set,
	    .rs_close = status->close || !c->cn_ex->ex_request.rq_keepalive ||
			conn_last(c) ||
			c->cn_worker->wk_conf->conf_keepalive_timeout == 0,
	};
	worker_time(c->cn_worker);
	if (number == 200)
		add(c, RESPONSE_BEGIN);
	else {
		add(c, "HTTP/1.1 ");
		add(c, status->line);
		add(c, "\r\nServer: pagewise\r\nDate: ");
	}
	add(c, c->cn_worker->wk_date);
	add(c, "\r\n");
}

static void
head_length(struct conn *c, uint64_t length)
{
	add(c, "Content-Length: ");
	add_uint(c, length);
	add(c, "\r\n");
}

static void
head_end(struct conn *c)
{
	struct response *rs = &c->cn_ex->ex_response;

	if (rs->rs_close)
		add(c, "Connection: close\r\n");
	else if (c->cn_ex->ex_request.rq_http10)
		add(c, "Connection: keep-alive\r\n");
	add(c, "\r\n");
	rs->rs_head_len = rs->rs_head.b_len;
}

/* "bytes 0-99/1000", or "bytes *" "/1000" for none. */
static void
head_content_range(struct conn *c, const struct range *r, off_t size)
{
	add(c, "Content-Range: bytes ");
	if (r == NULL)
		add(c, "*");
	else {
		add_uint(c, (uint64_t)r->rng_off);
		add(c, "-");
		add_uint(c, (uint64_t)(r->rng_off + r->rng_len - 1));
	}
	add(c, "/");
	add_uint(c, (uint64_t)size);
	add(c, "\r\n");
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
error_body(struct conn *c, const char *line)
{
	char body[ERROR_PAGE];
	size_t len = error_page(line, body);

	add(c, "Content-Type: text/html; charset=utf-8\r\n");
	head_length(c, len);
	head_end(c);
	if (c->cn_ex->ex_request.rq_method != METHOD_HEAD)
		add(c, body);
}

void
respond_error(struct conn *c, int number)
{
	head_begin(c, number);
	if (number == 405)
		add(c, ALLOW);
	if (number == 503)
		add(c, "Retry-After: 1\r\n");
	error_body(c, find_status(number)->line);
	response_start(c);
}

void
respond_redirect(struct conn *c, struct str path)
{
	struct buf_list *bufs = &c->cn_worker->wk_bufs;
	struct buf *head;
	size_t size = 3 * path.s_len + 1;

	head_begin(c, 301);
	add(c, "Location: ");
	head = &c->cn_ex->ex_response.rs_head;
	if (buf_reserve(head, bufs, head->b_len + size))
		head->b_len +=
		    target_encode(path, head->b_data + head->b_len, size);
	else
		head->b_failed = true;
	add(c, "/");
	if (c->cn_ex->ex_target.tgt_query.s_ptr != NULL) {
		add(c, "?");
		buf_add(head, bufs, c->cn_ex->ex_target.tgt_query.s_ptr,
		    c->cn_ex->ex_target.tgt_query.s_len);
	}
	add(c, "\r\n");
	error_body(c, find_status(301)->line);
	response_start(c);
}

void
respond_options(struct conn *c)
{
	head_begin(c, 204);
	add(c, ALLOW);
	head_end(c);
	response_start(c);
}

/* It may change at any time, and has no validator. */
static void
head_listing(struct conn *c)
{
	head_begin(c, 200);
	add(c, "Content-Type: text/html; charset=utf-8\r\n"
	       "Cache-Control: no-cache\r\n");
}

void
respond_listing(struct conn *c, struct text *text)
{
	head_listing(c);
	head_length(c, text->tx_len);
	head_end(c);
	if (c->cn_ex->ex_request.rq_method == METHOD_HEAD)
		text_unref(&text);
	else
		c->cn_ex->ex_response.rs_body =
		    (struct str){text->tx_data, text->tx_len};
	c->cn_ex->ex_response.rs_text = text;
	response_start(c);
}

/* To HTTP/1.0 the end of the connection is the end of the page. */
void
respond_stream(struct conn *c, struct autoindex_stream *st)
{
	struct response *rs = &c->cn_ex->ex_response;

	head_listing(c);
	if (c->cn_ex->ex_request.rq_http10)
		rs->rs_close = true;
	else
		add(c, "Transfer-Encoding: chunked\r\n");
	head_end(c);
	rs->rs_stream = st;
	response_start(c);
}

/* ------------------------------------------------------------------- files */

static bool
multipart_begin(
    struct conn *c, const struct status *plan, const struct representation *rp)
{
	struct response *rs = &c->cn_ex->ex_response;
	char text[MULTIPART_HEAD];

	rs->rs_ranges = malloc(plan->pl_nranges * sizeof(*rs->rs_ranges));
	if (rs->rs_ranges == NULL)
		return false;
	memcpy(rs->rs_ranges, plan->pl_ranges,
	    plan->pl_nranges * sizeof(*rs->rs_ranges));
	rs->rs_nranges = plan->pl_nranges;
	rs->rs_type = rp->rp_type;
	/* An odd step walks through all 2^64 before it repeats one. */
	c->cn_worker->wk_boundary += 0x9e3779b97f4a7c15U;
	rs->rs_boundary = c->cn_worker->wk_boundary;
	snprintf(text, sizeof(text),
	    "Content-Type: multipart/byteranges; boundary=%016llx\r\n",
	    (unsigned long long)rs->rs_boundary);
	add(c, text);
	add(c, rp->rp_lines + rp->rp_validators);
	head_length(c, multipart_length(rs));
	head_end(c);
	multipart_head(rs, 0, text);
	add(c, text);
	return true;
}

static void
from_memory(struct conn *c)
{
	struct response *rs = &c->cn_ex->ex_response;
	const struct cached_response *ha = rs->rs_ready;

	rs->rs_body.s_ptr = ha->ha_text + ha->ha_head + rs->rs_one.rng_off;
	rs->rs_body.s_len = (size_t)rs->rs_one.rng_len;
	rs->rs_nranges = 0;
	stat_add(&c->cn_worker->wk_stats.sta_hot, 1);
}

static void
whole_or_one(
    struct conn *c, const struct status *plan, const struct representation *rp)
{
	struct response *rs = &c->cn_ex->ex_response;
	struct pw_file *file = rs->rs_file;

	rs->rs_one = (struct range){0, file->fil_size};
	rs->rs_ranges = &rs->rs_one;
	rs->rs_nranges = 1;
	buf_add(&rs->rs_head, &c->cn_worker->wk_bufs, rp->rp_lines, rp->rp_len);
	if (plan->pl_status == 206) {
		rs->rs_one = plan->pl_ranges[0];
		head_content_range(c, &rs->rs_one, file->fil_size);
	}
	head_length(c, (uint64_t)rs->rs_one.rng_len);
	head_end(c);
	if (c->cn_ex->ex_request.rq_method == METHOD_HEAD)
		rs->rs_nranges = 0;
	else if (rs->rs_ready != NULL)
		from_memory(c);
}

static bool
file_begin(
    struct conn *c, const struct status *plan, const struct representation *rp)
{
	switch (plan->pl_status) {
	case 200:
		whole_or_one(c, plan, rp);
		return true;
	case 206:
		if (plan->pl_nranges > 1)
			return multipart_begin(c, plan, rp);
		whole_or_one(c, plan, rp);
		return true;
	case 304:
		add(c, rp->rp_lines + rp->rp_validators);
		head_end(c);
		return true;
	case 416:
		head_content_range(
		    c, NULL, c->cn_ex->ex_response.rs_file->fil_size);
		break;
	}
	error_body(c, find_status(plan->pl_status)->line);
	return true;
}

void
respond_file(struct conn *c, struct pw_file *file, const char *name,
    const struct settings *set)
{
	struct worker *wk = c->cn_worker;
	struct status plan = {
	    .pl_ranges = wk->wk_ranges, .pl_max = wk->wk_conf->conf_max_ranges};
	struct cached_response *ready = fast_path_find(c, file);
	struct representation *rp = representation_of(
	    file, mime_type(wk->wk_conf->conf_mime, name), c->cn_ex->ex_time);

	if (rp == NULL) {
		pw_file_unref(&file);
		respond_error(c, 503);
		return;
	}
	status_decide(&plan, &c->cn_ex->ex_request, file->fil_size, rp->rp_etag,
	    file->fil_mtime.tv_sec, c->cn_ex->ex_time);
	head_begin(c, plan.pl_status);
	c->cn_ex->ex_response.rs_file = file;
	c->cn_ex->ex_response.rs_settings = set;
	if (ready != NULL)
		response_cache_ref(c->cn_ex->ex_response.rs_ready = ready);
	if (!file_begin(c, &plan, rp)) {
		response_finish(c);
		respond_error(c, 503);
		return;
	}
	if (ready == NULL)
		fast_path_offer(c, file, rp);
	response_start(c);
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
response_replaced(struct conn *c)
{
	struct response *rs = &c->cn_ex->ex_response;
	int error = rs->rs_send.snd_error, status;

	if (client_left(error))
		return false;
	if (error == -ESTALE && rs->rs_file != NULL)
		rs->rs_file->fil_stale = true;
	if (error != -EAGAIN && error != -ESTALE)
		file_error_tell(c, error);
	if (response_sent(rs) > 0 || rs->rs_status >= 500)
		return false;
	status = error == -EAGAIN || error == -ENOMEM || error == -ESTALE ? 503
									  : 500;
	response_finish(c);
	respond_error(c, status);
	return true;
}
