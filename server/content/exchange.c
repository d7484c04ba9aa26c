/*
 * exchange: see exchange.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "lib/util/clock.h"
#include "server/conn/conn.h"

#define STATUS_CUT 499	/* nginx' number for: no answer was begun */
#define LIST_MAX   4096 /* exchanges kept; the rest goes back to the system */

static struct exchange *
take(struct exchange_list *xl)
{
	struct exchange *ex = SLIST_FIRST(&xl->xl_free);

	if (ex == NULL)
		return malloc(sizeof(*ex));
	SLIST_REMOVE_HEAD(&xl->xl_free, ex_free);
	xl->xl_count--;
	return ex;
}

static void
give(struct exchange_list *xl, struct exchange *ex)
{
	if (xl->xl_count == LIST_MAX) {
		free(ex);
		return;
	}
	SLIST_INSERT_HEAD(&xl->xl_free, ex, ex_free);
	xl->xl_count++;
}

void
exchange_list_destroy(struct exchange_list *xl)
{
	struct exchange *ex;

	while ((ex = SLIST_FIRST(&xl->xl_free)) != NULL) {
		SLIST_REMOVE_HEAD(&xl->xl_free, ex_free);
		free(ex);
	}
	xl->xl_count = 0;
}

bool
exchange_begin(struct conn *c)
{
	c->cn_ex = take(&c->cn_worker->wk_exchanges);
	if (c->cn_ex == NULL)
		return false;
	*c->cn_ex = (struct exchange){
	    .ex_conn = c,
	    .ex_open = true,
	    .ex_since = clock_now(),
	    .ex_time = worker_time(c->cn_worker),
	};
	return true;
}

void
exchange_free(struct conn *c)
{
	struct buf_list *bufs = &c->cn_worker->wk_bufs;
	struct exchange *ex = c->cn_ex;

	if (ex == NULL)
		return;
	exchange_end(c);
	static_finish(c);
	response_finish(c);
	buf_release(&ex->ex_path, bufs);
	buf_release(&ex->ex_request.rq_joined, bufs);
	c->cn_ex = NULL;
	give(&c->cn_worker->wk_exchanges, ex);
}

void
exchange_wait(struct conn *c)
{
	c->cn_waiting = true;
	c->cn_ex->ex_waiting = clock_now();
}

void
exchange_resume(struct conn *c)
{
	struct exchange *ex = c->cn_ex;

	c->cn_waiting = false;
	ex->ex_wait += clock_now() - ex->ex_waiting;
}

static uint64_t
bytes_sent(const struct conn *c)
{
	size_t len = c->cn_ex->ex_503;

	return len > 0 ? len : response_sent(&c->cn_ex->ex_response);
}

void
exchange_sent(struct conn *c)
{
	struct exchange *ex = c->cn_ex;
	uint64_t sent = bytes_sent(c);

	stat_add(&c->cn_worker->wk_stats.sta_sent, sent - ex->ex_counted);
	ex->ex_counted = sent;
}

static int
status(const struct conn *c)
{
	const struct response *rs = &c->cn_ex->ex_response;

	if (c->cn_ex->ex_503 > 0)
		return 503;
	if (rs->rs_status == 0 || (c->cn_dying && response_sent(rs) == 0))
		return STATUS_CUT;
	return rs->rs_status;
}

static size_t
head_len(const struct conn *c)
{
	const struct exchange *ex = c->cn_ex;

	return ex->ex_503 == 0 ? c->cn_ex->ex_response.rs_head_len
			       : ex->ex_503 - ex->ex_503_body;
}

static void
record(struct conn *c)
{
	const struct request *rq = &c->cn_ex->ex_request;
	uint64_t sent = bytes_sent(c), head = head_len(c);
	struct log_record rec = {
	    .rec_peer = &c->cn_peer.sa,
	    .rec_time = c->cn_ex->ex_time,
	    .rec_line = rq->rq_line,
	    .rec_status = status(c),
	    .rec_body = sent > head ? sent - head : 0,
	    .rec_bytes = sent,
	    .rec_referer = rq->rq_referer,
	    .rec_agent = rq->rq_agent,
	    .rec_host = rq->rq_host,
	    .rec_duration = clock_now() - c->cn_ex->ex_since,
	    .rec_wait = c->cn_ex->ex_wait,
	};

	log_access(c->cn_worker->wk_log, &rec);
}

void
exchange_end(struct conn *c)
{
	struct exchange *ex = c->cn_ex;
	struct worker *wk = c->cn_worker;

	if (!ex->ex_open)
		return;
	ex->ex_open = false;
	if (c->cn_waiting)
		ex->ex_wait += clock_now() - ex->ex_waiting;
	exchange_sent(c);
	stat_add(&wk->wk_stats.sta_status[status(c) - STATS_STATUS], 1);
	stat_add(&wk->wk_stats.sta_disk_wait, ex->ex_wait);
	if (log_access_on(wk->wk_log))
		record(c);
}

void
exchange_503(struct conn *c)
{
	static const char line[] = "503 Service Unavailable";
	struct exchange *ex = c->cn_ex;
	struct worker *wk = c->cn_worker;
	char text[256 + ERROR_PAGE], page[ERROR_PAGE];
	size_t body = error_page(line, page);
	bool wanted = c->cn_ex->ex_request.rq_method != METHOD_HEAD;
	ssize_t n;
	int len;

	worker_time(wk);
	len = snprintf(text, sizeof(text),
	    "HTTP/1.1 %s\r\nServer: pagewise\r\n"
	    "Date: %s\r\nRetry-After: %u\r\n"
	    "Content-Type: text/html; charset=utf-8\r\n"
	    "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
	    line, wk->wk_date, wk->wk_conf->conf_disk_timeout, body,
	    wanted ? page : "");
	n = send(c->cn_fd, text, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* The answer before it may still fill the socket. */
	if (n != len)
		return;
	ex->ex_503 = (size_t)n;
	ex->ex_503_body = wanted ? body : 0;
}
