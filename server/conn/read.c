/*
 * read: receives from a client: reads the head of a request and starts the lookup of its file;
 * discards bodies.
 */
#include <errno.h>
#include <string.h>

#include "server/conn/conn_priv.h"
#include "server/conn/fast_path.h"
#include "server/conn/http2.h"
#include "server/content/known.h"

/* ------------------------------------------------------------- receiving */

/*
 * Returns NEXT_GO if bytes were received.  A short count usually means that the socket is empty.
 * But after a close or reset, another call is needed: a close causes no further edge, and some
 * event backends (kqueue) do not report a close.
 */
static enum next
conn_read_receive(struct conn *c, char *to, size_t room, size_t *got)
{
	long n;

	*got = 0;
	if (!c->cn_readable)
		return NEXT_WAIT;
	n = transport_recv(&c->cn_transport, to, room);
	if (n > 0) {
		*got = (size_t)n;
		c->cn_worker->wk_moves++;
		c->cn_drained =
		    !c->cn_hup && c->cn_worker->wk_sees_end &&
		    transport_is_drained(&c->cn_transport, (size_t)n < room);
		return NEXT_GO;
	}
	if (n == -EAGAIN) {
		c->cn_readable = false;
		return NEXT_WAIT;
	}
	return NEXT_CLOSE;
}

/*
 * Wraps conn_read_receive for other files, so that the compiler can inline the calls in this file.
 */
enum next
conn_receive(struct conn *c, char *to, size_t room, size_t *got)
{
	return conn_read_receive(c, to, room, got);
}

enum next
conn_discard(struct conn *c)
{
	char trash[BUF_SIZE];
	enum next next = NEXT_GO;
	size_t got;

	for (int n = 0; n < LINGER_READS && next == NEXT_GO; n++)
		next = conn_read_receive(c, trash, sizeof(trash), &got);
	return next == NEXT_GO ? NEXT_AGAIN : next;
}

/* -------------------------------------------------------------- requests */

/* Refuses the request with this status.  Requires qt_line in rq_texts. */
static enum next
conn_read_refuse(struct conn *c, int status)
{
	struct request *rq = &c->cn_ex->ex_request;
	const struct head_limits limits =
	    service_head_limits(&c->cn_worker->wk_service);
	struct str line = rq->rq_texts.qt_line;

	/* A response to HEAD has no body (RFC 9110, 9.3.2). */
	rq->rq_method =
	    str_skip(&line, STR("HEAD ")) ? METHOD_HEAD : METHOD_OTHER;
	rq->rq_keepalive = false;
	head_find(c->cn_in.b_data, c->cn_in.b_len, c->cn_head.hd_before,
	    &limits, &rq->rq_target, &rq->rq_texts.qt_host);
	exchange_refuse(c->cn_ex, status);
	c->cn_state = CONN_SEND;
	return NEXT_GO;
}

static bool
conn_read_begin_exchange(struct conn *c)
{
	conn_timer(c, TIMER_NONE);
	c->cn_body = (struct body){0};
	return conn_begin(c);
}

/* Returns the received part of the request line of a malformed or incomplete head. */
static struct str
conn_read_broken_line(const struct conn *c)
{
	const char *p = c->cn_in.b_data, *end = p + c->cn_in.b_len;
	const char *start;

	while (p < end && (*p == '\r' || *p == '\n'))
		p++;
	for (start = p; p < end && *p != '\r' && *p != '\n'; p++)
		continue;
	return (struct str){start, (size_t)(p - start)};
}

enum next
conn_refuse_head(struct conn *c, int status)
{
	struct str line = conn_read_broken_line(c);

	if (!conn_read_begin_exchange(c))
		return NEXT_CLOSE;
	c->cn_ex->ex_request.rq_texts.qt_line = line;
	return conn_read_refuse(c, status);
}

static enum next
conn_read_looked_up(struct conn *c, bool ready)
{
	c->cn_state = ready ? CONN_SEND : CONN_LOOKUP;
	if (ready)
		return NEXT_GO;
	conn_await_disk(c);
	return c->cn_hup && !conn_client_stays(c) ? NEXT_CLOSE : NEXT_WAIT;
}

enum next
conn_look(struct conn *c)
{
	return conn_read_looked_up(c, exchange_continue(c->cn_ex));
}

static void
conn_read_count_request(struct conn *c)
{
	struct request *rq = &c->cn_ex->ex_request;

	if (conn_requests_left(c) == 1 && rq->rq_keepalive) {
		counter_add(&c->cn_worker->wk_service.svc_stats
				 .sta_capped[CAP_REQUESTS],
		    1);
		rq->rq_keepalive = false;
	}
	c->cn_requests++;
}

static enum next
conn_read_begin_request(struct conn *c)
{
	struct request *rq;
	struct str head;
	enum next next;
	int status;

	if (!conn_read_begin_exchange(c))
		return NEXT_CLOSE;
	/*
	 * Shrinks the buffer, because it holds the head until the response ends, and a slow client
	 * takes long.
	 */
	buf_shrink(&c->cn_in, conn_bufs(c));
	head = (struct str){c->cn_in.b_data + c->cn_head.hd_skip,
	    c->cn_head.hd_len - c->cn_head.hd_skip};
	rq = &c->cn_ex->ex_request;
	/* The socket held only this request, and an edge will report the next one. */
	if (c->cn_drained)
		c->cn_readable = false;
	status = request_parse(rq, head, BODY_DATA, conn_bufs(c));
	if (c->cn_proxied)
		exchange_name_client(c->cn_ex);
	if (status == 400 || status == 501)
		return conn_read_refuse(c, status);
	if (status == 0)
		c->cn_body =
		    rq->rq_chunked ? body_chunked() : body_sized(rq->rq_body);
	/* Closes after the response if the body is too large, or may never arrive (Expect). */
	if (status != 0 ||
	    (rq->rq_expect.s_ptr != NULL && !body_ended(&c->cn_body)))
		rq->rq_keepalive = false;
	conn_read_count_request(c);
	next = conn_read_looked_up(c, exchange_respond(c->cn_ex, status));
	if (c->cn_ex->ex_response.rs_ready != NULL)
		known_learn(c->cn_worker->wk_header_cache, &c->cn_known_header,
		    c->cn_ex, head, c->cn_proxied);
	return next;
}

/*
 * Sends responses to known requests.  Returns NEXT_WAIT, and changes nothing, if no request is
 * known.
 */
static enum next
conn_read_respond_known(struct conn *c)
{
	if (c->cn_in.b_len == 0 || !c->cn_writable || c->cn_worker->wk_draining)
		return NEXT_WAIT;
	conn_bound(c);
	switch (fast_path_run(c)) {
	case FAST_PATH_NONE:
		return NEXT_WAIT;
	case FAST_PATH_FAILED:
		return NEXT_CLOSE;
	case FAST_PATH_BEGUN:
		c->cn_state = CONN_SEND;
		break;
	case FAST_PATH_SENT:
		c->cn_head = (struct head){0};
		break;
	}
	conn_timer(c, TIMER_NONE);
	if (c->cn_drained)
		c->cn_readable = false;
	return conn_ended(c);
}

/*
 * Discards empty lines that some clients send after a body (RFC 9112, 2.2).  Does not restart the
 * timer of an idle connection.
 */
static void
conn_read_forget_blank(struct conn *c)
{
	const struct buf *in = &c->cn_in;
	size_t i;

	if (c->cn_item.it_timer == TIMER_HEAD || in->b_len % 2 != 0)
		return;
	for (i = 0; i < in->b_len; i += 2)
		if (memcmp(in->b_data + i, "\r\n", 2) != 0)
			return;
	i += c->cn_head.hd_before;
	if (i > HEAD_BLANK) /* head_check refuses more */
		return;
	buf_consume(&c->cn_in, in->b_len);
	c->cn_head = (struct head){.hd_before = i};
}

/* Waits for more input.  Frees the buffer of an idle connection. */
static enum next
conn_read_await_request(struct conn *c)
{
	if (c->cn_in.b_len > 0)
		conn_read_forget_blank(c);
	if (c->cn_in.b_len == 0) {
		buf_release(&c->cn_in, conn_bufs(c));
		if (c->cn_item.it_timer == TIMER_NONE)
			conn_patience(c, min_rate_ended(c));
	} else if (c->cn_item.it_timer != TIMER_HEAD)
		conn_timer(c, TIMER_HEAD);
	return NEXT_WAIT;
}

static enum next
conn_read_receive_head(struct conn *c)
{
	struct buf *in = &c->cn_in;
	size_t got, room = in->b_len < BUF_SIZE ? BUF_SIZE : in->b_len + 1;
	enum next next;

	if (!buf_reserve(in, conn_bufs(c), room))
		return NEXT_CLOSE;
	next = conn_read_receive(
	    c, in->b_data + in->b_len, in->b_cap - in->b_len, &got);
	in->b_len += got;
	return next == NEXT_WAIT ? conn_read_await_request(c) : next;
}

bool
conn_lacks_memory(struct conn *c)
{
	struct worker *wk = c->cn_worker;

	if (wk->wk_short)
		counter_add(&wk->wk_service.svc_stats.sta_capped[CAP_HEAP], 1);
	return wk->wk_short;
}

enum next
conn_read(struct conn *c)
{
	const struct head_limits limits =
	    service_head_limits(&c->cn_worker->wk_service);
	int status = HEAD_MORE;
	enum next next = conn_read_respond_known(c);

	if (next != NEXT_WAIT)
		return next;
	if (c->cn_in.b_len > c->cn_head.hd_scanned)
		status = head_check(
		    c->cn_in.b_data, c->cn_in.b_len, &limits, &c->cn_head);
	if (status == HEAD_MORE &&
	    !(c->cn_in.b_len >= BUF_SIZE && conn_lacks_memory(c)))
		return conn_read_receive_head(c);
	if (status == HEAD_MORE || (status == 0 && conn_lacks_memory(c)))
		status = 503;
	if (status == 505 && conn_speaks_http2(c))
		return conn_begin_http2(c);
	if (status != 0)
		return conn_refuse_head(c, status);
	return conn_read_begin_request(c);
}

/* Stores the bytes after the body, which begin the next request. */
static enum next
read_behind(struct conn *c, const char *data, size_t len)
{
	c->cn_state = CONN_READ;
	conn_timer(c, TIMER_NONE);
	if (len > 0)
		buf_add(&c->cn_in, conn_bufs(c), data, len);
	return c->cn_in.b_failed ? NEXT_CLOSE : NEXT_GO;
}

enum next
conn_skip(struct conn *c)
{
	char data[BUF_SIZE];
	enum next next;
	size_t got, used;

	for (int n = 0; n < LINGER_READS; n++) {
		next = conn_read_receive(c, data, sizeof(data), &got);
		if (next != NEXT_GO)
			return next;
		switch (body_skip(&c->cn_body, data, got, &used)) {
		case BODY_END:
			return read_behind(c, data + used, got - used);
		case BODY_BAD:
			return conn_linger(c);
		case BODY_MORE:
			break;
		}
	}
	return NEXT_AGAIN;
}
