/*
 * send: sends a response, then starts the next step: the rest of the body, the next request, or the
 * close.
 */
#include "server/conn/conn_priv.h"
#include "server/content/pace.h"

/*
 * Enters CONN_SKIP to discard the rest of the body, or CONN_READ for the next request.  Returns
 * false if the body is malformed: nothing after a malformed body may be read.
 */
static bool
conn_send_next_request(struct conn *c)
{
	struct buf *in = &c->cn_in;
	enum body_status status;
	size_t n;

	buf_consume(in, c->cn_head.hd_len);
	c->cn_head = (struct head){0};
	status = body_skip(&c->cn_body, in->b_data, in->b_len, &n);
	buf_consume(in, n);
	c->cn_state = status == BODY_MORE ? CONN_SKIP : CONN_READ;
	if (status == BODY_MORE)
		conn_timer(c, TIMER_HEAD);
	return status != BODY_BAD;
}

static enum next
conn_send_sent(struct conn *c)
{
	uint64_t bytes = response_sent(&c->cn_ex->ex_response);
	bool end = c->cn_ex->ex_response.rs_close;

	c->cn_slice_sent += bytes;
	c->cn_unseen += bytes;
	c->cn_rate = c->cn_ex->ex_rate;
	exchange_free(&c->cn_ex);
	conn_timer(c, TIMER_NONE);
	if (end || !conn_send_next_request(c))
		return conn_linger(c);
	return conn_ended(c);
}

/* Returns true if the rate limit allows sending now.  Otherwise starts a pause. */
static bool
conn_send_may_go_on(struct conn *c)
{
	uint64_t until = c->cn_ex->ex_paced ? pace_wait(c->cn_ex) : 0;

	if (until > 0)
		sched_pause(&c->cn_worker->wk_sched, &c->cn_item, until);
	return until == 0;
}

/*
 * Returns NEXT_CLOSE if the client has reset the connection.  The check is needed because one event
 * may report a request and a reset.
 */
static enum next
conn_send_pause_begun(struct conn *c)
{
	return transport_is_broken(&c->cn_transport) ? NEXT_CLOSE : NEXT_WAIT;
}

/* Returns true if no other response can replace this one: see response_replaced. */
static bool
conn_send_is_final(const struct response *rs)
{
	return response_sent(rs) > 0 ||
	       (rs->rs_file == NULL && rs->rs_stream == NULL);
}

/*
 * Frees memory while the response waits for the client, the disk or the rate limit.  Frees the head
 * of the request unless it is small.  If the connection closes after the response, frees all input:
 * the length of a refused head is unknown.  Does nothing if another response may replace this one,
 * because that response needs the head.
 */
static void
conn_send_settle(struct conn *c)
{
	const struct response *rs = &c->cn_ex->ex_response;
	struct buf *in = &c->cn_in;

	if ((in->b_cap <= BUF_SMALL &&
		c->cn_ex->ex_request.rq_joined.b_cap == 0) ||
	    c->cn_ex->ex_settled || !conn_send_is_final(rs) ||
	    exchange_settle(c->cn_ex, SIZE_MAX) < 0)
		return;
	buf_consume(in, rs->rs_close ? in->b_len : c->cn_head.hd_len);
	c->cn_head = (struct head){0};
	if (in->b_len == 0)
		buf_release(in, conn_bufs(c));
	else
		buf_fit(in, conn_bufs(c));
}

/* Calls conn_send_settle.  Returns `next`. */
static enum next
conn_send_put_off(struct conn *c, enum next next)
{
	conn_send_settle(c);
	return next;
}

enum next
conn_send(struct conn *c)
{
	enum pw_send_status status;

	if (!c->cn_writable)
		return conn_send_put_off(c, NEXT_WAIT);
	if (!conn_send_may_go_on(c))
		return conn_send_put_off(c, conn_send_pause_begun(c));
	conn_bound(c);
	status = response_step(c->cn_ex);
	exchange_sent(c->cn_ex);
	if (c->cn_item.it_timer == TIMER_CLOSED &&
	    response_sent(&c->cn_ex->ex_response) > 0)
		conn_timer(c, TIMER_NONE);
	if (status != PW_SEND_DONE && status != PW_SEND_ERROR)
		conn_send_settle(c);
	switch (status) {
	case PW_SEND_DONE:
		return conn_send_sent(c);
	case PW_SEND_WANT_WRITE:
		c->cn_writable = false;
		return min_rate_full(c) ? NEXT_WAIT : NEXT_CLOSE;
	case PW_SEND_AGAIN:
		return conn_send_may_go_on(c) ? NEXT_AGAIN
					      : conn_send_pause_begun(c);
	case PW_SEND_PENDING:
		conn_await_disk(c);
		return c->cn_hup && !conn_client_stays(c) ? NEXT_CLOSE
							  : NEXT_WAIT;
	case PW_SEND_ERROR:
		break;
	}
	return response_replaced(c->cn_ex) ? NEXT_GO : NEXT_CLOSE;
}
